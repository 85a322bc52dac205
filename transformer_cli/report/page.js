"use strict";
// What the page can do beside being read: tell a curve's values under the pointer, and draw attention maps.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg"; // a name, never fetched
  const make = (name, attributes, text = "") => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  };

  // Curves

  for (const figure of document.querySelectorAll(".chart")) {
    const { range, left, right, lines } = data.charts[Number(figure.dataset.chart)];
    const svg = figure.querySelector("svg"), pointer = svg.querySelector(".pointer");
    const shown = [...figure.querySelectorAll(".key b")], at = figure.querySelector(".at");
    const last = [...shown.map((node) => node.textContent), at.textContent];
    const nearest = (points, step) => points.reduce((a, b) => (Math.abs(b[0] - step) < Math.abs(a[0] - step) ? b : a));
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      const wanted = range[0] + (x - left) / (right - left) * (range[1] - range[0]);
      const step = nearest(lines.flatMap((line) => line.points), wanted)[0];
      const place = left + (step - range[0]) / (range[1] - range[0]) * (right - left);
      pointer.setAttribute("x1", place);
      pointer.setAttribute("x2", place);
      pointer.setAttribute("visibility", "visible");
      lines.forEach((line, number) => { shown[number].textContent = String(nearest(line.points, step)[1]); });
      at.textContent = `near step ${step.toLocaleString("en")}`;
    });
    svg.addEventListener("pointerleave", () => {
      pointer.setAttribute("visibility", "hidden");
      shown.forEach((node, number) => { node.textContent = last[number]; });
      at.textContent = last[shown.length];
    });
  }

  // A printed page has nothing to click on.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((node) => { node.open = true; }));

  // Attention maps

  if (!data.maps.length) return;
  const [sentence, place, layer, head] = ["sentence", "place", "layer", "head"].map((name) => document.getElementById(`map-${name}`));
  const [map, thumbs, reading] = ["map", "map-thumbs", "map-reading"].map((name) => document.getElementById(name));
  for (const option of [...place.options]) if (!(option.value in data.maps[0].places)) option.remove();
  const CELL = 20, MEAN = 0, hint = reading.textContent;
  const named = (piece) => piece.replaceAll("\u2581", "·"); // SentencePiece's mark of a word's beginning, but lighter

  const offer = (select, options, chosen) => {
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    select.value = options.some(([value]) => String(value) === String(chosen)) ? chosen : options[0][0];
  };
  const sides = () => {
    const [src, tgt_in, tgt_out] = ["src", "tgt_in", "tgt_out"].map((side) => data.maps[sentence.value][side].map(named));
    return { encoder: [src, src], decoder: [tgt_in, tgt_in], cross: [tgt_out, src] }[place.value];
  };
  const layers = () => data.maps[sentence.value].places[place.value];

  // Weights of one head, or the mean of all, row by row.
  const weights = (number) => {
    const { heads, data: packed } = layers()[layer.value - 1];
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const size = bytes.length / heads;
    const chosen = number === MEAN ? [...Array(heads).keys()] : [number - 1];
    return Float32Array.from({ length: size }, (_, i) => chosen.reduce((sum, h) => sum + bytes[h * size + i], 0) / chosen.length / 255);
  };

  const draw = () => {
    const [rows, columns] = sides(), values = weights(Number(head.value));
    const svg = make("svg", { role: "img", "aria-label": `${place.value} attention, layer ${layer.value}, ${head.selectedOptions[0].text}` });
    const labels = make("g", {}), cells = make("g", {});
    svg.append(labels, cells);
    map.replaceChildren(svg);
    rows.forEach((text, row) => labels.append(make("text", { class: "row", x: 0, y: row * CELL + 14, "text-anchor": "end" }, text)));
    columns.forEach((text, column) => labels.append(make("text", { class: "column", transform: `translate(${column * CELL + 14} -6) rotate(-90)` }, text)));
    const most = (name) => Math.max(...[...labels.querySelectorAll(name)].map((node) => node.getComputedTextLength()));
    const left = most(".row") + 10, top = most(".column") + 12;
    labels.querySelectorAll(".row").forEach((node) => node.setAttribute("x", -6));
    for (const [index, value] of values.entries()) {
      const box = { x: index % columns.length * CELL, y: Math.floor(index / columns.length) * CELL, width: CELL, height: CELL };
      if (value > 0) cells.append(make("rect", { class: "cell", ...box, "fill-opacity": value.toFixed(3) }));
      cells.append(make("rect", { class: "ghost", ...box, "data-index": index }));
    }
    cells.append(make("rect", { class: "frame", x: 0, y: 0, width: columns.length * CELL, height: rows.length * CELL }));
    const total = [left + columns.length * CELL + 2, top + rows.length * CELL + 2];
    svg.setAttribute("viewBox", `${-left} ${-top} ${total.join(" ")}`);
    svg.setAttribute("width", total[0]);
    svg.setAttribute("height", total[1]);
    const tell = (event) => {
      const index = event.target.dataset?.index;
      if (index === undefined) return;
      const row = Math.floor(index / columns.length), column = index % columns.length;
      reading.textContent = `${rows[row]} looks at ${columns[column]}: ${(100 * values[index]).toFixed(1)} %`;
    };
    svg.addEventListener("pointerover", tell);
    svg.addEventListener("click", tell);
    reading.textContent = hint;
  };

  const drawThumbs = () => {
    const [rows, columns] = sides();
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--heat").trim().split(" ").map(Number);
    const made = [...head.options].map((option) => {
      const button = document.createElement("button"), canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [columns.length, rows.length];
      const image = new ImageData(columns.length, rows.length);
      weights(Number(option.value)).forEach((value, i) => image.data.set([...colour, 255 * value], 4 * i));
      canvas.getContext("2d").putImageData(image, 0, 0);
      button.type = "button";
      button.setAttribute("aria-pressed", option.value === head.value);
      button.append(canvas, option.value === String(MEAN) ? "mean" : `head ${option.value}`);
      button.addEventListener("click", () => { head.value = option.value; show(); });
      return button;
    });
    thumbs.replaceChildren(...made);
  };

  const show = () => {
    const found = layers();
    offer(layer, found.map((_, i) => [i + 1, `${i + 1} of ${found.length}`]), layer.value || Math.max(1, found.length - 1));
    const heads = found[layer.value - 1].heads;
    offer(head, [[MEAN, `mean of ${heads}`], ...Array.from({ length: heads }, (_, i) => [i + 1, `head ${i + 1}`])], head.value || MEAN);
    draw();
    drawThumbs();
  };
  for (const select of [sentence, place, layer, head]) select.addEventListener("change", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
})();
