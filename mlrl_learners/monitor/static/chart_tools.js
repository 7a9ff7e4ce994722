// Zoom by dragging and keys, one run singled out in all charts, a chart enlarged. The state stays
// when the charts are renewed; the zoom is part of the address, because the server draws it.
"use strict";

const NEAR = 14; // units of a drawing within which a line is meant
const DRAG = 8;
let singled = ""; // run or agent that stays highlighted
let enlarged = ""; // key of a chart
let drag = null; // { drawing, from, to }

// ---- Highlight -----------------------------------------------------------------------------------

function paintSingled(name = singled) {
  const charts = document.getElementById("charts");
  if (!charts) return;
  const lines = [...charts.querySelectorAll("g.series")];
  const isThere = lines.some((line) => line.dataset.run === name);
  charts.classList.toggle("dimmed", isThere);
  for (const line of lines) line.classList.toggle("on", line.dataset.run === name);
  for (const button of document.querySelectorAll("[data-single]")) {
    button.setAttribute("aria-pressed", String(button.dataset.single === singled));
  }
}

function single(name) {
  singled = singled === name ? "" : name;
  paintSingled();
}

function lineAt(drawing, [x, y]) {
  let best = { distance: NEAR, name: "" };
  for (const line of linesOf(drawing)) {
    const points = [...line.points];
    for (let i = 1; i < points.length; i += 1) {
      const [a, b] = [points[i - 1], points[i]];
      const length = (b.x - a.x) ** 2 + (b.y - a.y) ** 2 || 1;
      const share = ((x - a.x) * (b.x - a.x) + (y - a.y) * (b.y - a.y)) / length;
      const t = Math.max(0, Math.min(1, share));
      const distance = Math.hypot(a.x + t * (b.x - a.x) - x, a.y + t * (b.y - a.y) - y);
      if (distance < best.distance) best = { distance, name: line.parentElement.dataset.run ?? "" };
    }
  }
  return best.name;
}

document.addEventListener("pointerover", (event) => {
  const row = event.target.closest?.(".run[data-run]");
  if (row) paintSingled(singled || row.dataset.run);
  else if (!event.target.closest?.("#charts")) paintSingled();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-single]");
  if (button) single(button.dataset.single);
  const enlarge = event.target.closest?.("button.enlarge");
  if (enlarge) toggleEnlarged(keyOf(enlarge.closest("figure").querySelector("svg[data-x]")));
  if (event.target.id === "unzoom") zoom("", "");
});

// ---- Zoom ----------------------------------------------------------------------------------------

function zoom(from, to) {
  const form = document.getElementById("view");
  form.elements.from.value = from;
  form.elements.to.value = to;
  document.getElementById("unzoom").hidden = from === "" && to === "";
  choose();
}

function zoomBy(drawing, factor) {
  const x = axis(drawing.dataset.x);
  const [low, high] = [x.value(x.from), x.value(x.to)];
  const middle = cursor ? cursor.value : (low + high) / 2;
  const half = ((high - low) * factor) / 2;
  zoom(middle - half, middle + half);
}

document.addEventListener("pointerdown", (event) => {
  const drawing = event.target.closest?.(DRAWINGS);
  if (!drawing || event.button !== 0 || event.pointerType === "touch") return;
  const place = placeOf(drawing, event);
  drag = { drawing, start: place, box: shape("rect", { class: "drag" }) };
  drawing.append(drag.box);
});

document.addEventListener("pointermove", (event) => {
  const drawing = event.target.closest?.(DRAWINGS);
  if (drag) {
    const [left, right] = dragged(event);
    const y = axis(drag.drawing.dataset.y);
    const size = { x: left, width: right - left, y: y.to, height: y.from - y.to };
    for (const [name, value] of Object.entries(size)) drag.box.setAttribute(name, value);
  } else if (drawing) paintSingled(singled || lineAt(drawing, placeOf(drawing, event)));
});

document.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const [left, right] = dragged(event);
  const { drawing, start } = drag;
  drag.box.remove();
  drag = null;
  if (right - left > DRAG) {
    const x = axis(drawing.dataset.x);
    dropCursor();
    zoom(x.value(left), x.value(right));
  } else {
    const name = lineAt(drawing, start);
    if (name) single(name);
  }
});

function dragged(event) {
  const x = axis(drag.drawing.dataset.x);
  const ends = [drag.start[0], placeOf(drag.drawing, event)[0]].sort((a, b) => a - b);
  return ends.map((place) => Math.max(x.from, Math.min(x.to, place)));
}

// ---- Enlarging, keys, renewal --------------------------------------------------------------------

function toggleEnlarged(key) {
  enlarged = enlarged === key ? "" : key;
  paintEnlarged();
  chartOf(key)?.focus();
}

function paintEnlarged() {
  for (const drawing of document.querySelectorAll(DRAWINGS)) {
    drawing.closest("figure").classList.toggle("enlarged", keyOf(drawing) === enlarged);
  }
  document.documentElement.classList.toggle("has-enlarged", Boolean(enlarged));
}

// Returns whether the key was for the tools.
function toolKey(drawing, key) {
  const actions = {
    "+": () => zoomBy(drawing, 0.5),
    "-": () => zoomBy(drawing, 2),
    0: () => zoom("", ""),
    f: () => toggleEnlarged(keyOf(drawing)),
  };
  actions[key]?.();
  return key in actions;
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (enlarged) toggleEnlarged(enlarged);
  if (singled) single(singled);
});

function prepareCharts() {
  for (const drawing of document.querySelectorAll(DRAWINGS)) {
    if (drawing.tabIndex === 0) continue; // prepared before
    drawing.tabIndex = 0;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.textContent = "⤢";
    button.setAttribute("aria-label", `Enlarge ${titleOf(drawing)}`);
    drawing.closest("figure").append(button);
  }
  paintCursor();
  paintSingled();
  paintEnlarged();
}
