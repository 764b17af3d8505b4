"use strict";
(() => {
  const whole = 1200;
  const frames = [...document.querySelectorAll("g.f")].map((g) => ({
    g, rect: g.querySelector("rect"), text: g.querySelector("text"), name: g.dataset.n, us: +g.dataset.u,
    x: +g.dataset.x, w: +g.dataset.w, depth: +g.dataset.d,
  }));
  const told = document.getElementById("told");

  function draw(of) {
    const scale = whole / of.w;
    for (const f of frames) {
      const isAround = f.depth < of.depth && f.x <= of.x + 0.01 && f.x + f.w >= of.x + of.w - 0.01;
      const isWithin = f.depth >= of.depth && f.x >= of.x - 0.01 && f.x + f.w <= of.x + of.w + 0.01;
      f.g.style.display = isAround || isWithin ? "" : "none";
      const x = isAround ? 0 : (f.x - of.x) * scale;
      const w = isAround ? whole : f.w * scale;
      f.rect.setAttribute("x", x.toFixed(2));
      f.rect.setAttribute("width", w.toFixed(2));
      f.text.setAttribute("x", (x + 3).toFixed(2));
      const letters = Math.floor(w / 7.3);
      f.text.textContent = letters < 3 ? "" : f.name.length <= letters ? f.name : f.name.slice(0, letters - 1) + "…";
    }
  }

  function search() {
    const asked = window.prompt("Regular expression, or a part of a function's name:", "");
    if (asked === null) return;
    let pattern;
    try { pattern = new RegExp(asked); } catch { pattern = { test: (name) => name.includes(asked) }; }
    // Of nested hits the outermost one counts, so that no time is counted twice.
    let us = 0, end = -1;
    const hits = frames.filter((f) => asked !== "" && pattern.test(f.name));
    for (const f of frames) f.g.classList.toggle("hit", hits.includes(f));
    for (const f of [...hits].sort((a, b) => a.x - b.x || a.depth - b.depth)) {
      if (f.x >= end - 0.01) { us += f.us; end = f.x + f.w; }
    }
    told.textContent = asked === "" ? "" : `${asked}: ${us.toPrecision(3)} µs, ${(100 * us / frames[0].us).toFixed(1)} %`;
  }

  for (const f of frames) f.g.addEventListener("click", () => draw(f));
  document.getElementById("reset").addEventListener("click", () => draw(frames[0]));
  document.getElementById("search").addEventListener("click", search);
  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "f") { event.preventDefault(); search(); }
  });
})();
