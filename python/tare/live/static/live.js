// Fills the page's parts with what the server sends. HTML comes escaped; everything else is set as text.
"use strict";

const STATES = { g: "good", a: "good after failed attempts", f: "failed so far", r: "under way", p: "planned", s: "not needed" };
const WHO = ["SUT", "client", "engine", "host"];
const charts = new Map();
let specifications = null;
let clockSkew = 0;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function say(text) {
  const banner = document.getElementById("connection");
  banner.textContent = text;
  banner.hidden = !text;
}

// --- the plan: a row an arm, a cell a run -------------------------------------------------------------------------

function drawGrid(told) {
  const body = document.getElementById("grid");
  // Rows stay, so that a reader's focus does: a run that ends changes cells only.
  told.arms.forEach((arm, number) => {
    if (gridRows.length <= number) { gridRows.push(gridRow(number)); body.append(gridRows[number]); }
    fillRow(gridRows[number], arm);
  });
  gridRows.splice(told.arms.length).forEach((row) => row.remove());
  filterArms();
}

const gridRows = [];

function gridRow(number) {
  const row = element("tr");
  const head = element("th");
  head.scope = "row";
  const button = element("button", "arm");
  button.type = "button";
  button.dataset.arm = String(number);
  button.setAttribute("aria-expanded", "false");
  head.append(button);
  const cells = element("td");
  const strip = element("span", "strip");
  strip.setAttribute("role", "img");
  cells.append(strip);
  row.append(head, cells);
  return row;
}

function fillRow(row, arm) {
  row.querySelector("button.arm").textContent = arm.name;
  const strip = row.querySelector(".strip");
  strip.setAttribute("aria-label", inWords(arm.cells));
  strip.replaceChildren(...[...arm.cells].flatMap((state, at) => {
    if (state === " ") return [];
    const cell = element("i", `cell ${state}`);
    cell.title = `block ${at + 1}: ${STATES[state]}`;
    return [cell];
  }));
}

function inWords(cells) {
  return Object.entries(STATES)
    .map(([state, words]) => [[...cells].filter((cell) => cell === state).length, words])
    .filter(([count]) => count)
    .map(([count, words]) => `${count} ${words}`)
    .join(", ");
}

function filterArms() {
  const wanted = document.getElementById("filter").value.toLowerCase();
  for (const row of gridRows) row.hidden = !row.querySelector("button.arm").textContent.toLowerCase().includes(wanted);
  const open = openArm === null ? null : gridRows[Number(openArm)];
  document.getElementById("arm").closest("tr").hidden = !open || open.hidden;
}

let openArm = null;

// What is told of an arm stands in a row below its own; `null`: of none.
async function showArm(number) {
  const place = document.getElementById("arm");
  if (number !== openArm) place.replaceChildren();
  openArm = number;
  for (const button of document.querySelectorAll("button.arm")) {
    button.setAttribute("aria-expanded", String(button.dataset.arm === number));
  }
  const row = place.closest("tr");
  // What is moved loses the focus.
  if (number !== null && row.previousElementSibling !== gridRows[Number(number)]) gridRows[Number(number)].after(row);
  filterArms();
  if (number === null) return;
  const answer = await fetch(`arm/${number}`);
  if (answer.ok && openArm === number) refill(place, await answer.text());
}

// New content; what a reader has opened, scrolled to or focused stays so. A text that was read to its end stays there.
function refill(place, html) {
  const reach = "a[href], button, input, summary, [tabindex='0']";
  const named = (node) => node.closest("details")?.dataset.name;
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const before = focused && { at: [...place.querySelectorAll(reach)].indexOf(focused), name: named(focused), tag: focused.tagName };
  const scrolled = [...place.querySelectorAll("pre, .scroll")].map((one) => ({
    name: named(one), tag: one.tagName, left: one.scrollLeft, top: one.scrollTop,
    end: one.scrollTop + one.clientHeight >= one.scrollHeight - 4,
  }));
  const open = new Set([...place.querySelectorAll("details[open]")].map((one) => one.dataset.name));
  place.innerHTML = html;
  place.querySelectorAll("details").forEach((one) => { if (open.has(one.dataset.name)) one.open = true; });
  place.querySelectorAll("pre, .scroll").forEach((one) => {
    const was = scrolled.find((each) => each.name === named(one) && each.tag === one.tagName);
    one.scrollLeft = was ? was.left : 0;
    one.scrollTop = was && !was.end ? was.top : one.scrollHeight;
  });
  if (!before) return;
  const now = [...place.querySelectorAll(reach)];
  (now.find((one) => before.name && named(one) === before.name && one.tagName === before.tag) || now[before.at])?.focus({ preventScroll: true });
}

// --- charts ---------------------------------------------------------------------------------------------------------

async function draw(place, kind, key, title, rows, label) {
  let chart = charts.get(key);
  if (!chart) {
    const figure = element("figure", "chart");
    const canvas = element("div", "canvas");
    figure.append(element("figcaption", "", title), canvas);
    place.append(figure);
    chart = { figure, canvas, view: null, rows: null, drawn: null };
    charts.set(key, chart);
    chart.ready = embed(chart, kind, rows);
  }
  if (chart.figure.parentNode !== place) place.append(chart.figure);
  chart.figure.firstChild.textContent = title;
  chart.label = label;
  chart.rows = rows;
  await chart.ready;
  // Not before: Vega takes its place's role and name away when it begins.
  chart.canvas.setAttribute("role", "img");
  chart.canvas.setAttribute("aria-label", chart.label);
  if (chart.view && chart.rows === rows && chart.drawn !== rows) await chart.view.data("rows", rows).runAsync();
}

async function embed(chart, kind, rows) {
  if (!window.vegaEmbed) return;
  if (!specifications) specifications = fetch("charts.json").then((answer) => answer.json());
  // No tooltips, which bring a style of their own; no warnings, which come of intervals that are not there yet.
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: false, logLevel: 1 };
  const made = await window.vegaEmbed(chart.canvas, { ...(await specifications)[kind], datasets: { rows } }, options);
  chart.view = made.view;
  chart.drawn = rows;
}

function prune(prefix, kept) {
  for (const [key, chart] of charts) {
    if (!key.startsWith(prefix) || kept.has(key)) continue;
    if (chart.view) chart.view.finalize();
    chart.figure.remove();
    charts.delete(key);
  }
}

function drawTrail(told) {
  const place = document.getElementById("trail");
  const arms = [...new Set(told.points.map((point) => point.arm))];
  arms.forEach((arm) => {
    const rows = told.points.filter((point) => point.arm === arm);
    const last = rows[rows.length - 1];
    const bounds = last.low === null ? "no interval yet" : `${last.low} to ${last.high} %`;
    draw(place, "trail", `trail/${arm}`, arm, rows, `Chart: effect of ${arm} after each block; now ${last.point} %, ${bounds}`);
  });
  prune("trail/", new Set(arms.map((arm) => `trail/${arm}`)));
  document.getElementById("trail-note").textContent = arms.length && told.arms > arms.length
    ? `The ${arms.length} arms of ${told.arms} of which least is known.` : "";
}

function drawSeries(told) {
  const place = document.getElementById("series");
  const title = document.getElementById("series-of");
  title.textContent = told.runs.length
    ? `${told.live ? "Now" : "The last finished run"}: ${told.runs.map((run) => run.run).join("; ")}` : "";
  const latency = told.runs.find((run) => run.latency)?.latency;
  const unit = told.runs.find((run) => run.unit)?.unit || "operations";
  const panels = { throughput: [1, `Throughput, ${unit}/s`], latency: [2, `Latency, ms${latency ? ` (${latency})` : ""}`] };
  const kept = new Set();
  for (const [name, [column, caption]] of Object.entries(panels)) {
    const rows = told.runs.flatMap((run) => run.points.filter((point) => point[column] !== null)
      .map((point) => ({ run: run.run, second: point[0], value: point[column] })));
    if (!rows.length) continue;
    kept.add(`series/${name}`);
    draw(place, "line", `series/${name}`, caption, rows, `Chart: ${caption}; last ${rows[rows.length - 1].value}`);
  }
  prune("series/", kept);
  document.getElementById("series-none").hidden = kept.size > 0 || !told.awaited;
}

function drawTrace(told) {
  const place = document.getElementById("trace");
  const panels = [...new Set(told.map((line) => line.panel))];
  for (const panel of panels) {
    const lines = told.filter((line) => line.panel === panel);
    const rows = lines.flatMap((line) => line.points.map((point) => ({ run: line.run, who: line.who, second: point[0], value: point[1] })));
    const last = lines.map((line) => `${line.who} ${line.points[line.points.length - 1][1]}`).join(", ");
    draw(place, "trace", `trace/${panel}`, panel, rows, `Chart: ${panel}; last ${last}`);
  }
  prune("trace/", new Set(panels.map((panel) => `trace/${panel}`)));
  document.getElementById("trace-section").hidden = panels.length === 0;
  document.getElementById("trace-of").textContent = [...new Set(told.map((line) => line.run))].join("; ");
  const there = new Set(told.map((line) => line.who));
  for (const who of WHO) document.getElementById(`who-${who}`).hidden = !there.has(who);
}

// --- what comes from the server --------------------------------------------------------------------------------------

const DRAWN = { grid: drawGrid, trail: drawTrail, series: drawSeries, trace: drawTrace };

function take(part) {
  if (DRAWN[part.name]) { DRAWN[part.name](part.content); return; }
  refill(document.getElementById(part.name), part.content);
  if (part.name === "now") { tick(); if (openArm !== null) showArm(openArm); }
}

function listen() {
  const source = new EventSource("events");
  source.addEventListener("open", () => say(""));
  source.addEventListener("clock", (event) => { clockSkew = Number(event.data) - Date.now() / 1000; });
  source.addEventListener("part", (event) => take(JSON.parse(event.data)));
  source.addEventListener("end", () => say("The page’s server has ended; what is shown is what it saw last. `tare serve` shows the store again."));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) {
      say("The page was started anew with another link: it stands where `tare serve` was called.");
      setTimeout(listen, 5000);
    } else if (document.getElementById("connection").hidden) {
      say("The connection is lost; trying again. The page shows the last known state.");
    }
  });
}

function tick() {
  const now = Date.now() / 1000 + clockSkew;
  for (const place of document.querySelectorAll("[data-since]")) {
    const seconds = Math.max(0, now - Number(place.dataset.since));
    if (place.tagName === "PROGRESS") { place.value = Math.min(seconds, place.max); continue; }
    const whole = Math.floor(seconds);
    place.textContent = whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  }
}

document.getElementById("filter").addEventListener("input", filterArms);
document.getElementById("grid").addEventListener("click", (event) => {
  const button = event.target.closest("button.arm");
  if (button) showArm(openArm === button.dataset.arm ? null : button.dataset.arm);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || openArm === null || event.target.id === "filter") return;
  const button = gridRows[Number(openArm)].querySelector("button.arm");
  showArm(null);
  button.focus();
});
setInterval(tick, 1000);
listen();
