"use strict";
const group = document.getElementById("group");
const search = document.getElementById("search");
const state = document.getElementById("status");
const sections = [...document.querySelectorAll("section")];
const mainTables = group.options[0].value;

function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let rows = 0;
  let tables = 0;
  for (const section of sections) {
    const found = new Set();
    for (const row of section.querySelectorAll("tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) found.add(row.dataset.actor);
    }
    section.hidden = words.length ? !found.size : !isChosen(section);
    if (!section.hidden) {
      rows += section.querySelectorAll("tbody tr:not([hidden])").length;
      tables += 1;
    }
    for (const mark of section.querySelectorAll("[data-actor].mark")) {
      mark.classList.toggle("faint", !found.has(mark.dataset.actor));
    }
  }
  state.textContent = `${count(rows, "row")} in ${count(tables, "table")}`;
}

function isChosen(section) {
  if (group.value === mainTables) return section.dataset.main === "yes";
  return group.value === "" || section.id === group.value;
}

function count(number, noun) {
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}

function sort(heading, column) {
  const body = heading.closest("table").tBodies[0];
  const isNumber = heading.classList.contains("number");
  const before = heading.getAttribute("aria-sort");
  const isUp = before ? before === "descending" : !isNumber;
  for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const value = (row) => row.children[column].dataset.value;
  const order = (a, b) => isNumber ? value(a) - value(b) : value(a).localeCompare(value(b));
  const unknown = (a, b) => (value(a) === "") - (value(b) === ""); // last, both ways
  const compare = (a, b) => unknown(a, b) || (isUp ? order(a, b) : order(b, a));
  body.append(...[...body.rows].sort(compare));
}

function follow() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (wanted && [...group.options].some((option) => option.value === wanted)) group.value = wanted;
  show();
}

for (const heading of document.querySelectorAll("thead th")) {
  const button = heading.querySelector("button");
  if (button) button.addEventListener("click", () => sort(heading, heading.cellIndex));
}
group.addEventListener("change", () => {
  history.replaceState(null, "", `#${encodeURIComponent(group.value)}`);
  show();
});
search.addEventListener("input", show);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", follow);
document.querySelector("form").hidden = false;
follow();
