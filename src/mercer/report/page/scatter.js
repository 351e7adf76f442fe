"use strict";
// Rows as points at their scores, coloured by classes or by numbers.
mercer.scatter = function () {
  const place = document.getElementById("scatter"), data = mercer.data.points;
  if (!place || !data) return;
  const rows = mercer.numbers(data.rows), n = rows.length;
  const errors = data.errors && mercer.numbers(data.errors);
  const pick = { x: document.getElementById("across"), y: document.getElementById("up"),
    colour: document.getElementById("colour") };
  // Okabe & Ito's colours and two of Tol's, which every kind of colour vision tells apart.
  const palettes = {
    light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b3a500",
      "#882255", "#332288"],
    dark: ["#3fa0dc", "#f07c2e", "#1fbf93", "#dd94bb", "#f2b333", "#8fd0f5", "#f2f2f2", "#f0e442",
      "#c2417c", "#8a7dff"],
  };
  const symbols = ["circle", "square", "triangle-up", "diamond", "triangle-down", "star"];

  // ---- what can be drawn
  const axes = data.axes.map((axis) => ({ name: axis.name, packed: axis.values }));
  if (errors) axes.push({ name: "Distance from the components", values: errors.map(Math.sqrt) });
  axes.push({ name: "Row number", values: Float64Array.from(rows) });
  const values = (i) => (axes[i].values ??= mercer.numbers(axes[i].packed));
  axes.forEach((axis, i) => {
    mercer.option(pick.x, axis.name, i);
    mercer.option(pick.y, axis.name, i);
  });
  pick.y.value = Math.min(1, axes.length - 1);

  const colours = data.colours.map((colour) => ({ ...colour }));
  const distance = errors && { name: "distance from the components", kind: "number", values: errors.map(Math.sqrt) };
  if (distance) colours.splice(data.given, 0, distance);
  colours.push({ name: "nothing", kind: "none" });
  colours.forEach((colour, i) => mercer.option(pick.colour, colour.name, i));
  const label = data.label ? colours[0] : null;
  pick.colour.value = 0;
  for (const colour of colours) {
    if (colour.codes) colour.codes = mercer.numbers(colour.codes);
    if (colour.kind === "number" && colour.values.data) colour.values = mercer.numbers(colour.values);
  }

  // ---- WebGL where there is one, and where it is needed
  const many = data.many;
  const canvas = document.createElement("canvas");
  const webgl = many && Boolean(canvas.getContext("webgl") || canvas.getContext("experimental-webgl"));
  let shown = Array.from({ length: n }, (_, i) => i);
  if (many && !webgl && n > 5000) {
    const step = n / 5000;
    shown = Array.from({ length: 5000 }, (_, i) => Math.floor(i * step));
    document.getElementById("fallback").textContent =
      "This browser has no WebGL: every " + step.toFixed(1) + "-th of them is shown.";
  }
  const type = webgl ? "scattergl" : "scatter";
  const size = n > 10000 ? 3.5 : n > 2000 ? 4.5 : n > 500 ? 6 : 8;
  const opacity = n > 2000 ? 0.75 : 0.85;

  // ---- traces: one for every class, or one for all
  function gather(source, at) {
    const out = new Float64Array(at.length);
    for (let i = 0; i < at.length; i++) out[i] = source[at[i]];
    return out;
  }

  function trace(at, marker, name) {
    const edge = { color: mercer.style("--paper"), width: webgl ? 0 : 0.5 };
    return {
      type, mode: "markers", name, rows: at, hoverinfo: "none",
      x: gather(values(pick.x.value), at), y: gather(values(pick.y.value), at),
      marker: { size, opacity, line: edge, ...marker },
    };
  }

  function classes(colour) {
    const grey = mercer.style("--soft");
    const palette = palettes[document.documentElement.dataset.theme];
    const groups = Array.from({ length: colour.own + 2 }, () => []), names = [];
    for (const i of shown) {
      const code = colour.codes[i], group = code < 0 ? colour.own + 1
        : Math.min(colour.places[code], colour.own);  // the same colour, whoever is drawn
      groups[group].push(i);
      names[group] = colour.names[code];
    }
    const traces = groups.flatMap((at, g) => {
      if (!at.length) return [];
      if (g >= colour.own) {
        const name = g === colour.own ? `${colour.others} others` : "missing";
        const marker = { color: grey, symbol: "circle-open", line: { color: grey, width: 1 } };
        return [{ ...trace(at, marker, name), legendrank: 2000 + g }];
      }
      const marker = { color: palette[g % palette.length],
        symbol: symbols[Math.floor(g / palette.length) % symbols.length] };
      return [{ ...trace(at, marker, mercer.plain(names[g])), legendrank: 1000 + g }];
    });
    // Rows of no class lie lowest, then large classes: a small one is not covered. The legend
    // keeps the order of the classes.
    const rest = (one) => Number(one.legendrank < 2000);
    return traces.sort((a, b) => rest(a) - rest(b) || b.rows.length - a.rows.length);
  }

  function scale(colour) {
    const there = shown.filter((i) => Number.isFinite(colour.values[i]));
    const absent = shown.filter((i) => !Number.isFinite(colour.values[i]));
    const found = gather(colour.values, there);
    const bar = {
      title: { text: mercer.plain(colour.name, 24), side: "top", font: { size: 12 } },
      thickness: 12, outlinewidth: 0, len: 0.9, tickfont: { color: mercer.style("--soft") },
    };
    // The far end of a few values would leave one colour to all others.
    const sorted = found.slice().sort();
    const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
    const marker = { color: found, colorscale: "Viridis", colorbar: bar, cmin: at(0.005), cmax: at(0.995) };
    if (colour.dates && there.length) {
      bar.tickvals = [0, 1, 2, 3, 4].map((i) => marker.cmin + (i / 4) * (marker.cmax - marker.cmin));
      const day = 864e5, short = marker.cmax - marker.cmin < 8 * day;
      bar.ticktext = bar.tickvals.map((x) => mercer.date(short ? x : Math.round(x / day) * day));
    }
    const traces = there.length ? [trace(there, marker, mercer.plain(colour.name))] : [];
    if (absent.length) {
      const grey = mercer.style("--soft");
      traces.push(trace(absent, { color: grey, symbol: "circle-open", line: { color: grey, width: 1 } }, "missing"));
    }
    return traces;
  }

  function draw() {
    const colour = colours[pick.colour.value];
    const traces = colour.kind === "class" ? classes(colour) : colour.kind === "number"
      ? scale(colour) : [trace(shown, { color: mercer.style("--accent") }, "rows")];
    const narrow = place.clientWidth < 640;
    const layout = mercer.layout({
      uirevision: `${pick.x.value} ${pick.y.value}`, hovermode: "closest",
      showlegend: colour.kind === "class" || traces.length > 1,
      legend: narrow ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", itemsizing: "constant" }
        : { itemsizing: "constant", font: { size: 12 } },
    });
    if (colour.kind === "number") layout.legend = { orientation: "h", y: 1.08 };
    layout.xaxis.title.text = axes[pick.x.value].name;
    layout.yaxis.title.text = axes[pick.y.value].name;
    hide();
    Plotly.react(place, traces, layout, mercer.config);
  }

  // ---- what a row is
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

  function told(colour, i) {
    if (colour.kind === "number") {
      return !Number.isFinite(colour.values[i]) ? "missing"
        : colour.dates ? mercer.date(colour.values[i]) : mercer.figure(colour.values[i]);
    }
    return colour.codes[i] < 0 ? "missing" : colour.names[colour.codes[i]];
  }

  function picture(i) {
    const [height, width, channels = 1] = data.pixels.shape;
    data.pixels.bytes ??= mercer.numbers(data.pixels);
    const picture = document.createElement("canvas");
    Object.assign(picture, { width, height });
    const image = new ImageData(width, height), size = width * height * channels;
    for (let p = 0; p < width * height; p++) {
      for (let c = 0; c < 3; c++) {
        image.data[4 * p + c] = data.pixels.bytes[i * size + p * channels + (channels === 3 ? c : 0)];
      }
      image.data[4 * p + 3] = 255;
    }
    picture.getContext("2d").putImageData(image, 0, 0);
    return picture;
  }

  function describe(i) {
    const title = document.createElement("strong"), bdi = document.createElement("bdi");
    bdi.textContent = `Row ${data.ids ? data.ids[i] : rows[i]}`;
    title.append(bdi);
    const parts = [title];
    if (label) parts.push(line(label.name, told(label, i)));
    const drawn = new Set([pick.x.value, pick.y.value].map(Number));
    if (errors) drawn.add(data.axes.length);  // the distance stands after the axes
    for (const axis of drawn) parts.push(line(axes[axis].name, mercer.figure(values(axis)[i])));
    const colour = colours[pick.colour.value];
    if (colour !== label && colour !== distance && colour.kind !== "none") parts.push(line(colour.name, told(colour, i)));
    if (data.texts) {
      const text = document.createElement("p");
      text.textContent = data.texts[i];
      parts.push(text);
    }
    if (data.pixels) parts.push(picture(i));
    tip.replaceChildren(...parts);
  }

  function show(event) {
    const point = event.points[0], frame = place.getBoundingClientRect();
    describe(point.data.rows[point.pointIndex ?? point.pointNumber]);
    tip.hidden = false;
    const self = tip.getBoundingClientRect();
    const x = event.event?.clientX ?? frame.left + frame.width / 2;
    const y = event.event?.clientY ?? frame.top + frame.height / 2;
    const left = x + 14 + self.width > innerWidth ? x - 14 - self.width : x + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - self.height - 4, y - self.height / 2))}px`;
  }

  let listening = false;
  mercer.charts.push(function () {
    draw();
    if (listening) return;
    listening = true;
    place.on("plotly_hover", show);
    place.on("plotly_unhover", hide);
  });
  for (const select of Object.values(pick)) select.addEventListener("change", draw);
  addEventListener("scroll", hide, { passive: true });
};
