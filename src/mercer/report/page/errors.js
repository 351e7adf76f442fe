"use strict";
// Histogram of the squared distances of rows from the components.
mercer.errors = function () {
  const place = document.getElementById("errors"), data = mercer.data.errors;
  if (!place || !data) return;
  const { counts, edges, log, threshold } = data;
  const middle = counts.map((_, i) =>
    log ? Math.sqrt(edges[i] * edges[i + 1]) : (edges[i] + edges[i + 1]) / 2);
  const width = counts.map((_, i) => edges[i + 1] - edges[i]);
  const text = counts.map((n, i) =>
    `${n} rows from ${mercer.number(edges[i])} to ${mercer.number(edges[i + 1])}`);

  mercer.charts.push(function () {
    const traces = [{
      type: "bar", x: log ? middle.map(Math.log10) : middle, y: counts, text,
      width: log ? counts.map((_, i) => Math.log10(edges[i + 1] / edges[i])) : width,
      textposition: "none", hovertemplate: "%{text}<extra></extra>",
      marker: { color: mercer.style("--bar"), line: { color: mercer.style("--paper"), width: 1 } },
    }];
    const layout = mercer.layout({ showlegend: false, uirevision: "errors", bargap: 0 });
    layout.xaxis.title.text = log ? "Squared distance (log scale)" : "Squared distance";
    layout.yaxis.title.text = "Rows";
    if (log) {
      const low = Math.floor(Math.log10(edges[0])), high = Math.ceil(Math.log10(edges.at(-1)));
      const step = Math.max(1, Math.ceil((high - low) / 6));
      const ticks = [];
      for (let t = low; t <= high; t += step) ticks.push(t);
      layout.xaxis.tickvals = ticks;
      layout.xaxis.ticktext = ticks.map((t) => mercer.number(Number(`1e${t}`)));
    }
    const top = counts.reduce((a, b) => Math.max(a, b), 0);
    const small = counts.filter((n) => n > 0).reduce((a, b) => Math.min(a, b), top);
    if (top > 200 * small) {  // one row would be invisible beside thousands
      layout.yaxis.type = "log";
      layout.yaxis.title.text = "Rows (log scale)";
    }
    layout.yaxis.showgrid = true;
    layout.xaxis.showgrid = false;
    if (threshold !== null && (threshold > 0 || !log)) {
      const x = log ? Math.log10(threshold) : threshold;
      layout.shapes = [{
        type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper",
        line: { color: mercer.style("--warm"), width: 1.5, dash: "dash" },
      }];
      layout.annotations = [{
        x, y: 1, yref: "paper", yanchor: "bottom", text: "threshold", showarrow: false,
        font: { color: mercer.style("--warm"), size: 12 },
      }];
    }
    Plotly.react(place, traces, layout, mercer.config);
  });
};
