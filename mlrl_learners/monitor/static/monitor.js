// What the monitor does in the browser: renews what is live, reads values off charts, listens to
// keys. Every page works without it, but stands still. Nothing is loaded from anywhere else.
"use strict";

document.documentElement.classList.add("js");

// ---- Regions that renew themselves: data-live is where from -----------------------------------

const RENEW_MS = 1000;
const tags = new Map();

async function renew(region) {
  const address = region.dataset.live;
  const known = tags.get(region);
  const headers = known && known.address === address ? { "If-None-Match": known.tag } : {};
  const answer = await fetch(address, { headers, cache: "no-store" });
  if (answer.status === 304 || !answer.ok || region.dataset.live !== address) return;
  const text = await answer.text();
  const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = region.scrollTop;
  const fresh = new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
  if (!tags.has(region) && fresh.innerHTML === region.innerHTML) {
    tags.set(region, { address, tag: answer.headers.get("ETag") });
    return;
  }
  region.replaceChildren(...fresh.childNodes);
  region.scrollTop = scrolled;
  tags.set(region, { address, tag: answer.headers.get("ETag") });
  if (focused) document.getElementById(focused)?.focus();
  filterList();
}

async function renewAll() {
  if (!document.hidden) {
    for (const region of document.querySelectorAll("[data-live]")) {
      try {
        await renew(region);
        document.body.classList.remove("cut-off");
      } catch {
        document.body.classList.add("cut-off"); // the server is gone; try again
      }
    }
  }
  setTimeout(renewAll, RENEW_MS);
}

// ---- The choice of runs, axis and smoothing ------------------------------------------------------

const view = document.getElementById("view");

function choose() {
  const query = new URLSearchParams(new FormData(view));
  history.replaceState(null, "", `/?${query}`);
  document.getElementById("charts").dataset.live = `/charts?${query}`;
  document.getElementById("runs").dataset.live = `/runs?${query}`;
  renew(document.getElementById("charts")).catch(() => {});
}

function filterList() {
  const box = document.querySelector("[data-filter]");
  if (!box) return;
  const wanted = box.value.trim().toLowerCase();
  for (const label of document.querySelectorAll(box.dataset.filter)) {
    label.closest(".run").hidden = !label.textContent.toLowerCase().includes(wanted);
  }
}

view?.addEventListener("change", (event) => {
  if (event.target.name) choose();
});
view?.addEventListener("submit", (event) => {
  event.preventDefault();
  choose();
});
document.querySelector("[data-filter]")?.addEventListener("input", filterList);

// ---- Fields that say nothing are left out of addresses -------------------------------------------

document.querySelector("form.search")?.addEventListener("submit", (event) => {
  for (const field of event.target.elements) {
    if (field.name && field.value === "") field.disabled = true;
  }
});
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form.search :disabled")) field.disabled = false;
});

// ---- Keys ----------------------------------------------------------------------------------------

const help = document.getElementById("keys");
document.getElementById("show-keys")?.addEventListener("click", () => help.showModal());

function moveInList(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement);
  const to = at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step;
  rows[Math.max(0, Math.min(rows.length - 1, to))].focus();
  return true;
}

function isTyping(target) {
  return target.matches("select, textarea, input:not([type=checkbox])");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const inList = event.target.matches("[data-row]");
  const steps = { j: 1, k: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1 } : {}) };
  let done = true;
  if (event.key === "/") document.querySelector("[data-search]")?.focus();
  else if (event.key === "?") help.showModal();
  else if (event.key in steps && moveInList(steps[event.key])) done = true;
  else {
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    done = Boolean(link);
  }
  if (done) event.preventDefault();
});

// ---- Values under the pointer --------------------------------------------------------------------

const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("aria-hidden", "true");

function span(text) {
  const [low, high, from, to] = text.split(" ").map(Number);
  return (place) => low + ((place - from) / (to - from)) * (high - low);
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

function nearest(line, place) {
  let best = null;
  for (const point of line.points) {
    if (!best || Math.abs(point.x - place) < Math.abs(best.x - place)) best = point;
  }
  return best;
}

function showValues(event) {
  const drawing = event.target.closest?.("svg[data-x]");
  document.querySelector(".cursor")?.remove();
  if (!drawing) return tip.remove();
  const box = drawing.getBoundingClientRect();
  const unit = drawing.viewBox.baseVal.width / box.width;
  const place = (event.clientX - box.left) * unit;
  const [x, y] = [span(drawing.dataset.x), span(drawing.dataset.y)];
  const said = [];
  let at = null;
  for (const line of drawing.querySelectorAll("g.series:not(.faint) polyline")) {
    const point = nearest(line, at ?? place);
    at ??= point.x;
    const name = line.parentElement.dataset.name;
    const where = Math.abs(point.x - at) > 1 ? ` (at ${short(x(point.x))})` : "";
    said.push(`${name ? `${name}: ` : ""}${short(y(point.y))}${where}`);
  }
  if (at === null) return tip.remove();
  tip.textContent = [`at ${short(x(at))}`, ...said].join("\n");
  mark(drawing, at);
  const figure = drawing.parentElement;
  figure.append(tip);
  const outer = figure.getBoundingClientRect();
  const left = at / unit + (box.left - outer.left);
  const isRight = left > outer.width / 2;
  tip.style.top = `${box.top - outer.top + 8}px`;
  tip.style.left = isRight ? "" : `${left + 12}px`;
  tip.style.right = isRight ? `${outer.width - left + 12}px` : "";
}

function mark(drawing, at) {
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const [, , bottom, top] = drawing.dataset.y.split(" ").map(Number);
  for (const [name, value] of Object.entries({ x1: at, x2: at, y1: bottom, y2: top })) {
    line.setAttribute(name, value);
  }
  line.setAttribute("class", "cursor");
  drawing.append(line);
}

document.addEventListener("pointermove", showValues);
document.addEventListener("pointerleave", showValues);

renewAll();
