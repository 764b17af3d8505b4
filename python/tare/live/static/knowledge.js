// Shows the rows of a table that hold what was typed.
"use strict";

document.getElementById("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const row of document.getElementById("claims").rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
