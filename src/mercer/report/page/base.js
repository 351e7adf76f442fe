"use strict";
// Shared by the charts. Texts from the data are set as text, never as HTML.
const mercer = { charts: [] };

mercer.data = JSON.parse(document.getElementById("data").textContent);

mercer.numbers = function (packed) {
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  const dtypes = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };
  return new dtypes[packed.dtype](bytes.buffer);
};

// Plotly interprets some HTML in names; escaped, they stay as they are.
mercer.escape = function (text, most = 32) {
  const letters = Array.from(text);
  const cut = letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
  return cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
};

mercer.number = function (x) {
  if (!Number.isFinite(x)) return "–";
  const whole = Number.isInteger(x) && Math.abs(x) < 1e9;  // row numbers are exact
  return String(whole ? x : Number(x.toPrecision(5))).replace("-", "−");
};

// A share, rounded down: 99.998 % is not 100 %.
mercer.percent = (x) => {
  const down = Math.floor(1e4 * x + 1e-6) / 100;
  return (down === 100 && x < 1 - 1e-12 ? 99.99 : down).toFixed(2) + "\u202f%";
};

mercer.date = function (x) {
  if (!(Math.abs(x) < 8.64e15)) return "–";  // the range of Date
  const text = new Date(x).toISOString().replace("T", " ").slice(0, 19);
  return text.endsWith(" 00:00:00") ? text.slice(0, -9) : text;
};

mercer.style = function (name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
};

mercer.layout = function (more) {
  const ink = mercer.style("--ink"), soft = mercer.style("--soft");
  const axis = () => ({
    gridcolor: mercer.style("--grid"), linecolor: mercer.style("--line"), zeroline: false,
    tickfont: { color: soft, size: 12 }, title: { font: { color: soft, size: 13 } },
    automargin: true,
  });
  const touch = matchMedia("(pointer: coarse)").matches;
  return Object.assign({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, color: ink, size: 13 },
    // On a phone the buttons are always visible, above the chart.
    margin: { l: 56, r: 12, t: touch ? 56 : 30, b: 48 }, xaxis: axis(), yaxis: axis(),
    dragmode: touch ? false : "zoom",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
    hoverlabel: {
      bgcolor: mercer.style("--paper"), bordercolor: mercer.style("--line"), font: { color: ink },
    },
  }, more);
};

mercer.config = {
  responsive: true, displaylogo: false,
  // By name: another version of Plotly may add one that uploads the chart.
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

mercer.option = function (select, text, value) {
  const option = document.createElement("option");
  option.textContent = text;
  option.value = value;
  select.append(option);
};
