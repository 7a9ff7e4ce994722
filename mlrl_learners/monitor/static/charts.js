// The cursor of the charts: one x value, marked in every chart, with the values of one of them in a
// strip above. It follows pointer, touch and arrow keys, and stays when the charts are renewed.
"use strict";

const DRAWINGS = "#charts svg[data-x]";
const SVG = "http://www.w3.org/2000/svg";
let cursor = null; // { key: chart with the values, value: on the x axis, isHeld: until dismissed }

const strip = document.getElementById("values");
const hint = strip?.innerHTML;
const spoken = document.createElement("p");
spoken.className = "unseen";
spoken.setAttribute("role", "status");
document.body.append(spoken);

function titleOf(drawing) {
  return drawing.closest("figure").querySelector("figcaption").textContent.trim();
}

function keyOf(drawing) {
  return `${drawing.getAttribute("class")} ${titleOf(drawing)}`;
}

function chartOf(key) {
  return [...document.querySelectorAll(DRAWINGS)].find((drawing) => keyOf(drawing) === key);
}

function axis(text) {
  const [low, high, from, to] = text.split(" ").slice(0, 4).map(Number);
  const isLog = text.endsWith("log");
  const [a, b] = isLog ? [Math.log10(low), Math.log10(high)] : [low, high];
  const linear = (place) => a + ((place - from) / (to - from)) * (b - a);
  return {
    from,
    to,
    value: (place) => (isLog ? 10 ** linear(place) : linear(place)),
    place: (value) => from + (((isLog ? Math.log10(value) : value) - a) / (b - a)) * (to - from),
  };
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

function linesOf(drawing) {
  return [...drawing.querySelectorAll("g.series:not(.faint) polyline")];
}

function nearest(points, place) {
  let best = null;
  for (const point of points) {
    if (!best || Math.abs(point.x - place) < Math.abs(best.x - place)) best = point;
  }
  return best;
}

function moveCursor(drawing, place, isHeld) {
  const lines = linesOf(drawing);
  if (!lines.length) return;
  const value = axis(drawing.dataset.x).value(nearest(lines[0].points, place).x);
  cursor = { key: keyOf(drawing), value, isHeld };
  paintCursor();
  if (isHeld) spoken.textContent = strip.textContent;
}

function dropCursor() {
  cursor = null;
  paintCursor();
}

function paintCursor() {
  for (const line of document.querySelectorAll(".cursor")) line.remove();
  if (!strip) return;
  if (!cursor) strip.innerHTML = hint; // made by the server
  else {
    for (const drawing of document.querySelectorAll(DRAWINGS)) {
      const x = axis(drawing.dataset.x);
      const place = x.place(cursor.value);
      if (!drawing.getClientRects().length || place < x.from - 1 || place > x.to + 1) continue;
      mark(drawing, place);
      if (keyOf(drawing) === cursor.key) showValues(drawing, place);
    }
  }
}

function mark(drawing, at) {
  const y = axis(drawing.dataset.y);
  drawing.append(shape("line", { x1: at, x2: at, y1: y.from, y2: y.to, class: "cursor" }));
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function part(className, ...children) {
  const made = document.createElement("span");
  made.className = className;
  made.append(...children);
  return made;
}

function showValues(drawing, at) {
  const [x, y] = [axis(drawing.dataset.x), axis(drawing.dataset.y)];
  const shown = [part("at", `${titleOf(drawing)} at ${short(x.value(at))}`)];
  for (const line of linesOf(drawing)) {
    const group = line.parentElement;
    const point = nearest(line.points, at);
    const where = Math.abs(point.x - at) > 1 ? ` (at ${short(x.value(point.x))})` : "";
    const color = [...group.classList].find((name) => /^c\d+$/.test(name));
    const name = group.dataset.name ? `${group.dataset.name} ` : "";
    const value = document.createElement("b");
    value.textContent = short(y.value(point.y));
    shown.push(part(`value ${color}`, part("dot"), name, value, where));
  }
  strip.replaceChildren(...shown.flatMap((each) => [each, " "]));
}

// ---- Pointer, touch, keys ------------------------------------------------------------------------

function placeOf(drawing, event) {
  const box = drawing.getBoundingClientRect();
  const unit = drawing.viewBox.baseVal.width / box.width;
  return [(event.clientX - box.left) * unit, (event.clientY - box.top) * unit];
}

function followPointer(event) {
  const drawing = event.target.closest?.(DRAWINGS);
  if (drawing) moveCursor(drawing, placeOf(drawing, event)[0], event.pointerType === "touch");
  else if (cursor && (!cursor.isHeld || event.type === "pointerdown")) dropCursor();
}

document.addEventListener("pointermove", followPointer);
document.addEventListener("pointerdown", followPointer);
document.addEventListener("pointerleave", (event) => {
  if (event.pointerType !== "touch") followPointer(event);
});

// Returns whether the key was for a chart.
function moveByKey(event) {
  const drawing = event.target.closest?.(DRAWINGS);
  const [line] = drawing ? linesOf(drawing) : [];
  if (!line) return false;
  if (event.key === "Escape") dropCursor();
  else if (!toolKey(drawing, event.key)) {
    const points = [...line.points];
    const isHere = cursor?.key === keyOf(drawing);
    const place = isHere ? axis(drawing.dataset.x).place(cursor.value) : Infinity;
    const at = isHere ? points.indexOf(nearest(points, place)) : points.length;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: points.length - 1 }[event.key];
    if (to === undefined) return false;
    moveCursor(drawing, points[Math.max(0, Math.min(points.length - 1, to))].x, true);
  }
  event.preventDefault();
  return true;
}
