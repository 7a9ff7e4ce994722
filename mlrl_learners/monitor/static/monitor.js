// Behaviour of the monitor in the browser: renews what is live, chooses runs, listens to keys. Every
// page works without it, but stands still. Nothing is loaded from anywhere else.
"use strict";

document.documentElement.classList.add("js");

// ---- Regions that renew themselves: data-live is where from -----------------------------------

const RENEW_MS = 1000;
const PATIENCE_MS = 30000;
const tags = new Map();
const regions = [...document.querySelectorAll("[data-live]")];
const asLoaded = new Map(regions.map((region) => [region, region.innerHTML]));
prepareCharts(); // changes them

async function renew(region) {
  const address = region.dataset.live;
  const known = tags.get(region);
  const headers = known && known.address === address ? { "If-None-Match": known.tag } : {};
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const answer = await fetch(address, { headers, cache: "no-store", signal });
  if (answer.status === 304 || region.dataset.live !== address || drag) return;
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const text = await answer.text();
  const active = region.contains(document.activeElement) ? document.activeElement : null;
  const chart = active?.matches(DRAWINGS) ? keyOf(active) : "";
  const scrolled = region.scrollTop;
  const fresh = new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
  if (!tags.has(region) && fresh.innerHTML === asLoaded.get(region)) {
    tags.set(region, { address, tag: answer.headers.get("ETag") });
    return;
  }
  region.replaceChildren(...fresh.childNodes);
  region.scrollTop = scrolled;
  tags.set(region, { address, tag: answer.headers.get("ETag") });
  prepareCharts();
  const again = chart ? chartOf(chart) : active?.id && document.getElementById(active.id);
  again?.focus?.();
  filterList();
}

async function renewAll() {
  if (!document.hidden) {
    let isAnswered = true;
    for (const region of regions) {
      await renew(region).catch(() => (isAnswered = false));
    }
    showConnection(isAnswered);
  }
  setTimeout(renewAll, RENEW_MS);
}

const lost = document.createElement("p");
lost.className = "notice cut-off";
lost.setAttribute("role", "status");
lost.hidden = true;
document.querySelector("main").prepend(lost);

function showConnection(isAnswered) {
  if (!isAnswered && lost.hidden) {
    const since = new Date().toLocaleTimeString();
    lost.textContent = `The server has not answered since ${since}; the page shows what it was then.`;
  }
  lost.hidden = isAnswered;
}

// ---- The choice of runs, axis and smoothing ------------------------------------------------------

const view = document.getElementById("view");

function choose() {
  const said = [...new FormData(view)].filter(([, value]) => value !== "");
  const query = new URLSearchParams(said);
  history.replaceState(null, "", `/?${query}`);
  document.getElementById("charts").dataset.live = `/charts?${query}`;
  document.getElementById("runs").dataset.live = `/runs?${query}`;
  for (const id of ["charts", "runs"]) renew(document.getElementById(id)).catch(() => {});
}

function filterList() {
  const box = document.querySelector("[data-filter]");
  if (!box) return;
  const wanted = box.value.trim().toLowerCase();
  for (const label of document.querySelectorAll(box.dataset.filter)) {
    label.closest(".run, tr").hidden = !label.textContent.toLowerCase().includes(wanted);
  }
}

// Fields of the form may stand outside it, where its own listeners hear nothing.
document.addEventListener("change", (event) => {
  if (!view || event.target.form !== view || !event.target.name) return;
  if (event.target.name === "axis") {
    dropCursor(); // its value belongs to the axis before
    zoom("", "");
  } else choose();
});
document.addEventListener("input", (event) => {
  const shown = event.target.name === "smoothing" && document.getElementById("smoothing");
  if (shown) shown.textContent = event.target.value;
});
view?.addEventListener("submit", (event) => {
  event.preventDefault();
  choose();
});
document.querySelector("[data-filter]")?.addEventListener("input", filterList);

// ---- A search goes on by itself until a page is full; a list shows the row it was left at ---------

async function continueSearch() {
  focusRow();
  for (let link; (link = document.querySelector("a[data-continue]")); ) {
    const answer = await fetch(link.href, { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const rows = document.querySelector("table.episodes tbody");
    const more = next.querySelectorAll("table.episodes tbody tr");
    if (rows) rows.append(...more);
    for (const id of rows ? ["count", "pages"] : ["count", "hits", "pages"]) {
      document.getElementById(id).replaceChildren(...next.getElementById(id).childNodes);
    }
    focusRow();
  }
}

function focusRow() {
  const row = location.hash.startsWith("#row-") && document.getElementById(location.hash.slice(1));
  if (row && document.activeElement === document.body) row.focus();
}

continueSearch().catch(() => {}); // the link to continue stays

// ---- Fields that say nothing are left out of addresses -------------------------------------------

document.querySelector("form.search")?.addEventListener("submit", (event) => {
  for (const field of event.target.elements) {
    if (field.name && field.value === "") field.disabled = true;
  }
});
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form.search :disabled")) field.disabled = false;
});

// ---- Copying ------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  navigator.clipboard.writeText(button.dataset.copy).then(() => {
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
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
  if (moveByKey(event)) return;
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

renewAll();
