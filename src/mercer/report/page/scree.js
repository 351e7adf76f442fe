"use strict";
// Shares of the variance, their cumulative sum, and the cutoffs of rules.
mercer.scree = function () {
  const place = document.getElementById("scree");
  if (!place) return;
  const { shares, cuts } = mercer.data.spectrum;
  const number = shares.map((_, i) => i + 1);
  let sum = 0;
  const sums = shares.map((x) => (sum += x));
  // Many small bars would be invisible under a line that ends at one: it gets an axis of its own.
  const top = Math.max(...shares), apart = top < 0.1 * sum;
  const marks = new Map();
  for (const cut of cuts) marks.set(cut.components, (marks.get(cut.components) || "") + cut.letter);

  mercer.charts.push(function () {
    const soft = mercer.style("--soft"), accent = mercer.style("--accent");
    const traces = [
      {
        type: "bar", name: "each", x: number, y: shares, marker: { color: mercer.style("--bar") },
        customdata: shares.map(mercer.percent), hovertemplate: "component %{x}: %{customdata}<extra></extra>",
      },
      {
        type: "scatter", name: "sums", x: number, y: sums, yaxis: apart ? "y2" : "y",
        mode: shares.length > 40 ? "lines" : "lines+markers",
        line: { color: mercer.style("--ink"), width: 1.6 }, marker: { size: 5 },
        customdata: sums.map(mercer.percent),
        hovertemplate: "components 1 to %{x}: %{customdata}<extra></extra>",
      },
    ];
    const layout = mercer.layout({
      bargap: shares.length > 40 ? 0 : 0.25, uirevision: "scree",
      showlegend: false,
      shapes: Array.from(marks.keys(), (k) => ({
        type: "line", x0: k + 0.5, x1: k + 0.5, y0: 0, y1: 1, yref: "paper",
        line: { color: soft, width: 1, dash: "dot" },
      })),
      annotations: Array.from(marks, ([k, letters]) => ({
        x: k + 0.5, y: 1, yref: "paper", yanchor: "bottom", text: letters, showarrow: false,
        font: { color: accent, size: 12 },
      })),
    });
    if (marks.size) layout.margin.t = 56;  // the letters of the rules are below the buttons
    layout.xaxis.title.text = "Component";
    layout.xaxis.range = [0.4, shares.length + 0.8];
    Object.assign(layout.xaxis, shares.length < 12 ? { dtick: 1 } : {}, { showgrid: false });
    layout.yaxis.title.text = "Explained variance";
    const whole = [0, Math.min(1.03, 1.1 * sum) || 1], percent = top < 0.05 ? ".1~%" : ".0%";
    Object.assign(layout.yaxis, { tickformat: apart ? percent : ".0%", range: apart ? [0, 1.1 * top] : whole });
    if (apart) {
      const right = { text: "Cumulative", font: layout.yaxis.title.font };
      layout.yaxis2 = {
        ...layout.yaxis, title: right, tickformat: ".0%", range: whole, tickmode: "auto", overlaying: "y", side: "right", showgrid: false,
      };
    }
    Plotly.react(place, traces, layout, mercer.config);
  });
};
