"use strict";
// Chooses claims by facets and text, and keeps the choice in the address. Without it, every claim is shown.
const form = document.getElementById("facets");
const rows = [...document.querySelectorAll("tbody tr")];
const names = [...form.querySelectorAll("select")].map((each) => each.name);

function apply() {
  const text = form.elements.text.value.trim().toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits = names.every((name) => !form.elements[name].value || row.dataset[name] === form.elements[name].value);
    row.hidden = !(fits && (!text || row.textContent.toLowerCase().includes(text)));
    shown += row.hidden ? 0 : 1;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector("tbody tr:not([hidden])");
  }
  document.getElementById("shown").value = `${shown} of ${rows.length} claims`;
  const chosen = new URLSearchParams();
  for (const name of [...names, "text"]) {
    if (form.elements[name].value) chosen.set(name, form.elements[name].value);
  }
  history.replaceState(null, "", chosen.size ? `#${chosen}` : location.pathname + location.search);
}

for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
  if (name === "text" || names.includes(name)) form.elements[name].value = value;
}
form.hidden = false;
form.addEventListener("input", apply);
form.addEventListener("reset", () => setTimeout(apply));
form.addEventListener("submit", (event) => event.preventDefault());
apply();
