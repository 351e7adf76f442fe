"use strict";
// Rows as points at their scores, colored by classes or by numbers.
mercer.scatter = function () {
  const place = document.getElementById("scatter"), data = mercer.data.points;
  if (!place || !data) return;
  const rows = mercer.numbers(data.rows), n = rows.length;
  const errors = data.errors && mercer.numbers(data.errors);
  const select = { x: document.getElementById("across"), y: document.getElementById("up"),
    color: document.getElementById("color") };
  // Okabe & Ito's colors and two of Tol's, distinct in every kind of color vision.
  const palettes = {
    light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b3a500",
      "#882255", "#332288"],
    dark: ["#3fa0dc", "#f07c2e", "#1fbf93", "#dd94bb", "#f2b333", "#8fd0f5", "#f2f2f2", "#f0e442",
      "#c2417c", "#8a7dff"],
  };
  const symbols = ["circle", "square", "triangle-up", "diamond", "triangle-down", "star"];

  // ---- what can be drawn
  const axes = data.components.map(({ name, values }) => ({ name, packed: values }));
  if (errors) axes.push({ name: "Distance from the components", values: errors.map(Math.sqrt) });
  axes.push({ name: "Row number", values: Float64Array.from(rows) });
  const values = (i) => (axes[i].values ??= mercer.numbers(axes[i].packed));
  axes.forEach((axis, i) => {
    mercer.option(select.x, axis.name, i);
    mercer.option(select.y, axis.name, i);
  });
  select.y.value = Math.min(1, axes.length - 1);

  const colors = data.colors.map((color) => ({ ...color }));
  for (const color of colors) {
    if (color.kind === "class") color.codes = mercer.numbers(color.codes);
    else color.values = mercer.numbers(color.values);
  }
  const label = data.labeled ? colors[0] : null;
  const distance = errors && { name: "distance from the components", kind: "number", values: errors.map(Math.sqrt) };
  if (distance) colors.splice(data.passed, 0, distance);
  colors.push({ name: "nothing", kind: "none" });
  colors.forEach((color, i) => mercer.option(select.color, color.name, i));
  select.color.value = 0;

  // ---- WebGL where it is needed and available
  const canvas = document.createElement("canvas");
  const webgl = data.webgl && Boolean(canvas.getContext("webgl") || canvas.getContext("experimental-webgl"));
  let shown = Array.from({ length: n }, (_, i) => i);
  if (data.webgl && !webgl && n > 5000) {
    const step = n / 5000;
    shown = Array.from({ length: 5000 }, (_, i) => Math.floor(i * step));
    document.getElementById("fallback").textContent = "This browser has no WebGL, so only 5000 of them are shown.";
  }
  const type = webgl ? "scattergl" : "scatter";
  const size = n > 10000 ? 3.5 : n > 2000 ? 4.5 : n > 500 ? 6 : 8;
  const opacity = n > 2000 ? 0.75 : 0.85;

  // ---- traces: one per class, or one for all
  function take(source, at) {
    const out = new Float64Array(at.length);
    for (let i = 0; i < at.length; i++) out[i] = source[at[i]];
    return out;
  }

  function trace(at, marker, name) {
    const edge = { color: mercer.style("--paper"), width: webgl ? 0 : 0.5 };
    return {
      type, mode: "markers", name, rows: at, hoverinfo: "none",
      x: take(values(select.x.value), at), y: take(values(select.y.value), at),
      marker: { size, opacity, line: edge, ...marker },
    };
  }

  function grayTrace(at, name) {
    const gray = mercer.style("--soft");
    return trace(at, { color: gray, symbol: "circle-open", line: { color: gray, width: 1 } }, name);
  }

  function classTraces(color) {
    const palette = palettes[document.documentElement.dataset.theme];
    const groups = Array.from({ length: color.own + 2 }, () => []), names = [];
    for (const i of shown) {
      const code = color.codes[i];
      // A class has the same color whichever rows are drawn.
      const group = code < 0 ? color.own + 1 : Math.min(color.groups[code], color.own);
      groups[group].push(i);
      names[group] = color.names[code];
    }
    const traces = groups.flatMap((at, g) => {
      if (!at.length) return [];
      if (g >= color.own) {
        const name = g === color.own ? `${color.others} others` : "missing";
        return [{ ...grayTrace(at, name), legendrank: 2000 + g }];
      }
      const marker = { color: palette[g % palette.length],
        symbol: symbols[Math.floor(g / palette.length) % symbols.length] };
      return [{ ...trace(at, marker, mercer.escape(names[g])), legendrank: 1000 + g }];
    });
    // Rows without a class are lowest, then large classes, and small ones on top. The legend keeps
    // the order of the classes.
    const hasClass = (one) => Number(one.legendrank < 2000);
    return traces.sort((a, b) => hasClass(a) - hasClass(b) || b.rows.length - a.rows.length);
  }

  function scaleTraces(color) {
    const known = shown.filter((i) => Number.isFinite(color.values[i]));
    const missing = shown.filter((i) => !Number.isFinite(color.values[i]));
    const numbers = take(color.values, known);
    const bar = {
      title: { text: mercer.escape(color.name, 28), side: "top", font: { size: 12 } },
      thickness: 12, outlinewidth: 0, len: 0.9, tickfont: { color: mercer.style("--soft") },
    };
    // A few extreme values would leave one color to all others.
    const sorted = numbers.slice().sort();
    const quantile = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
    const marker = { color: numbers, colorscale: "Viridis", colorbar: bar, cmin: quantile(0.005), cmax: quantile(0.995) };
    if (color.dates && known.length) {
      bar.tickvals = [0, 1, 2, 3, 4].map((i) => marker.cmin + (i / 4) * (marker.cmax - marker.cmin));
      const day = 864e5, days = marker.cmax - marker.cmin >= 8 * day;
      bar.ticktext = bar.tickvals.map((x) => mercer.date(days ? Math.round(x / day) * day : x));
    }
    const traces = known.length ? [trace(known, marker, mercer.escape(color.name))] : [];
    return missing.length ? [...traces, grayTrace(missing, "missing")] : traces;
  }

  function draw() {
    const color = colors[select.color.value];
    const traces = color.kind === "class" ? classTraces(color) : color.kind === "number"
      ? scaleTraces(color) : [trace(shown, { color: mercer.style("--accent") }, "rows")];
    const narrow = place.clientWidth < 640;
    const layout = mercer.layout({
      uirevision: `${select.x.value} ${select.y.value}`, hovermode: "closest",
      showlegend: color.kind === "class" || traces.length > 1,
      legend: narrow ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", itemsizing: "constant" }
        : { itemsizing: "constant", font: { size: 12 } },
    });
    if (color.kind === "number") layout.legend = { orientation: "h", y: 1.08 };
    layout.xaxis.title.text = axes[select.x.value].name;
    layout.yaxis.title.text = axes[select.y.value].name;
    hide();
    Plotly.react(place, traces, layout, mercer.config);
  }

  // ---- the tooltip of a row
  const tip = document.getElementById("tip");
  function hide() { tip.hidden = true; }

  function line(name, value) {
    const row = document.createElement("div");
    for (const text of [name, value]) {
      const part = document.createElement("span"), inner = document.createElement("bdi");
      inner.textContent = text;
      part.append(inner);
      row.append(part);
    }
    return row;
  }

  function text(color, i) {
    if (color.kind === "class") return color.codes[i] < 0 ? "missing" : color.names[color.codes[i]];
    if (!Number.isFinite(color.values[i])) return "missing";
    return (color.dates ? mercer.date : mercer.number)(color.values[i]);
  }

  function image(i) {
    const [height, width, channels = 1] = data.pixels.shape;
    data.pixels.bytes ??= mercer.numbers(data.pixels);
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height });
    const pixels = new ImageData(width, height), size = width * height * channels;
    for (let p = 0; p < width * height; p++) {
      for (let c = 0; c < 3; c++) {
        pixels.data[4 * p + c] = data.pixels.bytes[i * size + p * channels + (channels === 3 ? c : 0)];
      }
      pixels.data[4 * p + 3] = 255;
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }

  function describe(i) {
    const title = document.createElement("strong"), bdi = document.createElement("bdi");
    bdi.textContent = `Row ${data.ids ? data.ids[i] : rows[i]}`;
    title.append(bdi);
    const parts = [title];
    if (label) parts.push(line(label.name, text(label, i)));
    const drawn = new Set([select.x.value, select.y.value].map(Number));
    if (errors) drawn.add(data.components.length);  // the distance comes after the components
    for (const axis of drawn) parts.push(line(axes[axis].name, mercer.number(values(axis)[i])));
    const color = colors[select.color.value];
    if (color !== label && color !== distance && color.kind !== "none") parts.push(line(color.name, text(color, i)));
    if (data.texts) {
      const paragraph = document.createElement("p");
      paragraph.textContent = data.texts[i];
      parts.push(paragraph);
    }
    if (data.pixels) parts.push(image(i));
    tip.replaceChildren(...parts);
  }

  function show(event) {
    const point = event.points[0], frame = place.getBoundingClientRect();
    describe(point.data.rows[point.pointIndex ?? point.pointNumber]);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = event.event?.clientX ?? frame.left + frame.width / 2;
    const y = event.event?.clientY ?? frame.top + frame.height / 2;
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - box.height - 4, y - box.height / 2))}px`;
  }

  let listening = false;
  mercer.charts.push(function () {
    draw();
    if (listening) return;
    listening = true;
    place.on("plotly_hover", show);
    place.on("plotly_unhover", hide);
  });
  for (const one of Object.values(select)) one.addEventListener("change", draw);
  addEventListener("scroll", hide, { passive: true });
};
