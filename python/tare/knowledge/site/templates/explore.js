"use strict";
// Compares any arms of the stores by block, and keeps the view in the address. Without it, the answers are shown.
const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("chosen");
const NAMES = ["store", "beside", "metric", "baseline", "claims", "text"];
const STEPS = [-0.99, -0.9, -0.75, -0.5, -0.25, -0.1, -0.05, -0.02, 0, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 9, 99];
const WIDTH = 300, EDGE = 10, APART = 44;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => data.stores.find((each) => each.id === id);

function fill(select, options, keep) {
  select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
  select.value = options.some(([value]) => value === keep) ? keep : options[0][0];
}

// The paired log ratio's 95 % t interval over the blocks that both arms have.
function paired(metric, arm, baseline) {
  const [a, b] = [metric.values[arm] || {}, metric.values[baseline] || {}];
  const logs = Object.keys(a).filter((block) => block in b).map((block) => Math.log(a[block] / b[block]));
  const n = logs.length;
  if (!n) return null;
  const mean = logs.reduce((sum, each) => sum + each, 0) / n;
  const spread = Math.sqrt(logs.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (n - 1));
  if (n < 3 || !(spread > 1e-9)) return { point: mean, low: null, high: null, n };
  const reach = data.t[Math.min(n - 1, data.t.length) - 1] * spread / Math.sqrt(n);
  return { point: mean, low: mean - reach, high: mean + reach, n };
}

// Against the study's own baseline, its own estimate; against another, the interval by blocks.
function effect(store, metric, arm, baseline) {
  const own = store.arms.find((each) => each.name === arm);
  const against = baseline || own.baseline;
  if (arm === against) return null;
  const found = against === own.baseline ? metric.own[arm] : null;
  if (!found || found[0] === null) return paired(metric, arm, against);
  const [point, low, high, n] = found;
  return { point: Math.log1p(point), low: low === null ? null : Math.log1p(low), high: high === null ? null : Math.log1p(high), n };
}

const percent = (log, digits) => {
  const value = 100 * Math.expm1(log);
  return `${value > 0 ? "+" : value < 0 ? "\u2212" : ""}${Math.abs(value).toFixed(digits)}`;
};
function words(of) {
  if (of.low === null || of.high === null) return of.point === null ? "" : `${percent(of.point, 1)}\u00a0%, no interval`;
  const digits = Math.expm1(of.high) - Math.expm1(of.low) >= 0.1 ? 0 : 1;
  const ends = `[${percent(of.low, digits)}, ${percent(of.high, digits)}]\u00a0%`;
  return of.point === null ? ends : `${percent(of.point, digits)}\u00a0% ${ends}`;
}

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// The least length of the side of `sign` that holds one labelled mark beside a side of this length.
function room(longer, sign) {
  const inside = APART / 2 + 1 - EDGE, width = WIDTH - 2 * EDGE;
  for (const step of STEPS.filter((each) => each * sign > 0).sort((a, b) => Math.abs(a) - Math.abs(b))) {
    const at = Math.abs(Math.log1p(step)), side = (at + longer * inside / width) / (1 - inside / width);
    if (at * width >= APART * (side + longer)) return side;
  }
  return longer;
}

function axisOf(effects) {
  const ends = effects.flatMap((each) => [each.point, each.low, each.high]).filter((each) => each !== null && Number.isFinite(each));
  let low = 1.04 * Math.min(-0.05, ...ends), high = 1.04 * Math.max(0.05, ...ends);
  high = Math.max(high, room(-low, 1));
  low = Math.min(low, -room(high, -1));
  const axis = { low, high };
  axis.x = (log) => EDGE + (Math.min(Math.max(log, axis.low), axis.high) - axis.low) / (axis.high - axis.low) * (WIDTH - 2 * EDGE);
  axis.marks = [0];
  for (const step of [...STEPS].sort((a, b) => Math.abs(b) - Math.abs(a))) {
    const at = Math.log1p(step);
    const inside = at > axis.low && at < axis.high && axis.x(at) > APART / 2 && axis.x(at) < WIDTH - APART / 2;
    if (inside && axis.marks.every((mark) => Math.abs(axis.x(mark) - axis.x(at)) >= APART)) axis.marks.push(at);
  }
  return axis;
}

function drawn(effects, axis, title) {
  const height = 10 + 12 * effects.length;
  const made = svg("svg", { class: "forest", width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title });
  made.append(svg("line", { class: "zero", x1: axis.x(0), x2: axis.x(0), y1: 0, y2: height }));
  effects.forEach(({ of, kind }, at) => {
    const y = 11 + 12 * at;
    const [low, high] = [of.low ?? (of.point === null ? axis.low : null), of.high ?? (of.point === null ? axis.high : null)];
    if (low !== null && high !== null) {
      made.append(svg("line", { class: `${of.point === null ? "range" : "interval"} ${kind}`, x1: axis.x(low), x2: axis.x(high), y1: y, y2: y }));
    }
    if (of.point !== null) made.append(svg("circle", { class: `point ${kind}${low === null ? " alone" : ""}`, cx: axis.x(of.point), cy: y, r: 4 }));
  });
  return made;
}

function row(name, link, lines, plot, weak) {
  const made = document.createElement("div");
  made.className = weak ? "row weak" : "row";
  const head = document.createElement("div");
  const target = link ? Object.assign(document.createElement("a"), { href: link }) : document.createElement("b");
  target.textContent = name;
  head.append(target);
  const figures = document.createElement("div");
  for (const [text, kind] of lines) {
    const line = document.createElement("div");
    line.className = kind;
    line.textContent = text;
    figures.append(line);
  }
  made.append(head, figures, plot);
  return made;
}

function draw() {
  const value = Object.fromEntries(NAMES.map((name) => [name, form.elements[name].value]));
  const store = byId(value.store), beside = byId(value.beside);
  const metric = store.metrics.find((each) => each.name === value.metric);
  const other = beside && beside.metrics.find((each) => each.name === value.metric);
  const text = value.text.trim().toLowerCase();
  const rows = [];
  for (const { name } of store.arms) {
    if (text && !name.toLowerCase().includes(text)) continue;
    const effects = [];
    const mine = effect(store, metric, name, value.baseline);
    if (mine) effects.push({ of: mine, kind: "a" });
    const has = (arm) => beside && beside.arms.some((each) => each.name === arm);
    const theirs = other && has(name) && (!value.baseline || has(value.baseline)) ? effect(beside, other, name, value.baseline) : null;
    if (theirs) effects.push({ of: theirs, kind: "b" });
    if (effects.length) rows.push({ name, link: null, effects, lines: effects.map(({ of, kind }) => [`${words(of)}, n\u00a0=\u00a0${of.n}`, kind]), weak: false });
  }
  if (value.claims) {
    for (const claim of data.claims) {
      if (claim.metric !== metric.name || (value.claims === "same" && claim.baseline !== "bare")) continue;
      if (text && !`${claim.id} ${claim.arm} ${claim.database}`.toLowerCase().includes(text)) continue;
      rows.push({ name: claim.id, link: `claims/${claim.id}.html`, effects: [{ of: claim, kind: "claim" }],
        lines: [[`${claim.words}`, "claim"], [`${claim.database}: ${claim.arm}, against ${claim.baseline}`, "claim"]], weak: claim.weak });
    }
  }
  const axis = axisOf(rows.flatMap((each) => each.effects.map(({ of }) => of)));
  const scale = svg("svg", { class: "forest", width: WIDTH, height: 18, viewBox: `0 0 ${WIDTH} 18`, "aria-hidden": "true" });
  for (const at of axis.marks) {
    const label = svg("text", { x: axis.x(at), y: 14, "text-anchor": "middle" });
    label.textContent = at ? `${percent(at, 0)} %` : "0 %";
    scale.append(label);
  }
  const head = row("", null, [], scale, false);
  head.classList.add("scale");
  const made = rows.map((each) => row(each.name, each.link, each.lines, drawn(each.effects, axis, `${each.name}: ${each.lines.map(([line]) => line).join("; ")}`), each.weak));
  document.getElementById("plot").replaceChildren(head, ...made);
  document.getElementById("key").textContent = `${metric.title}, against ${value.baseline || "the study's own baseline"}, with 95 % intervals` +
    (beside ? `. First line of an arm: ${store.name}; second: ${beside.name}.` : ".");
  document.getElementById("note").textContent = value.baseline
    ? "Against a baseline that you chose, a paired t interval over blocks; looks and other adjustments of the study are left out."
    : "The study's own estimates, as in its report.";
}

function choices() {
  const value = Object.fromEntries(NAMES.map((name) => [name, form.elements[name].value]));
  const store = byId(value.store);
  fill(form.elements.beside, [["", "no other"], ...data.stores.filter((each) => each.id !== store.id).map((each) => [each.id, each.name])], value.beside);
  fill(form.elements.metric, store.metrics.map((each) => [each.name, each.title]), value.metric);
  fill(form.elements.baseline, [["", "the study's own"], ...store.arms.map((each) => [each.name, each.name])], value.baseline);
}

function changed() {
  choices();
  draw();
  const kept = new URLSearchParams();
  for (const name of NAMES) if (form.elements[name].value) kept.set(name, form.elements[name].value);
  history.replaceState(null, "", `#${kept}`);
}

function opened() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!byId(asked.get("store"))) return;
  form.elements.store.value = asked.get("store");
  choices();
  for (const name of ["beside", "metric", "baseline", "claims", "text"]) {
    const field = form.elements[name], value = asked.get(name) || "";
    if (field.tagName !== "SELECT" || [...field.options].some((each) => each.value === value)) field.value = value;
  }
  changed();
  document.getElementById("explore").scrollIntoView();
}

function search() {
  const parts = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = parts.length ? data.search.filter(([title, more]) => parts.every((part) => `${title} ${more}`.toLowerCase().includes(part))) : [];
  const shown = fits.slice(0, 20).map(([title, , address]) => {
    const entry = document.createElement("li");
    entry.append(Object.assign(document.createElement("a"), { href: address, textContent: title }));
    return entry;
  });
  if (fits.length > shown.length) shown.push(Object.assign(document.createElement("li"), { textContent: `and ${fits.length - shown.length} more` }));
  if (parts.length && !fits.length) shown.push(Object.assign(document.createElement("li"), { textContent: "nothing found" }));
  document.getElementById("found").replaceChildren(...shown);
}

document.getElementById("finder").hidden = false;
document.getElementById("search").addEventListener("input", search);
const usable = data.stores.filter((each) => each.metrics.length);
if (usable.length) {
  fill(form.elements.store, usable.map((each) => [each.id, each.name]), usable[0].id);
  document.getElementById("explore").hidden = false;
  for (const each of document.querySelectorAll(".explore")) each.hidden = false;
  choices();
  draw();
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", opened);
  opened();
}
