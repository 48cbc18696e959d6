"use strict";
// Draws the figures, their tables, and the explorer of decisions.

const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement, byID = id => document.getElementById(id);
// views are the drawn figures by name, for tests and the curious.
window.report = {data, views: {}, pending: 0, errors: []};

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  Object.entries(attributes || {}).forEach(([name, value]) => e.setAttribute(name, value));
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

// Tooltips of marks, at the pointer.
function tip(handler, event, item, value) {
  const box = byID("tip");
  if (!value) { box.hidden = true; return; }
  box.textContent = typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k}: ${v}`).join("\n") : String(value);
  box.hidden = false;
  const {width, height} = box.getBoundingClientRect();
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + "px";
  box.style.top = (event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 16) + "px";
}

// drawn are the figures and their places by name. printing is true while they have the size of a page.
const drawn = new Map();
let printing = false;

// draw fills the figure with a drawing, its caption and the table of its numbers; without one it is hidden.
function draw(name, figure) {
  const at = document.querySelector(`figure[data-figure="${name}"]`);
  if (!at) return;
  if (window.report.views[name]) window.report.views[name].finalize();
  delete window.report.views[name];
  drawn.delete(name);
  at.replaceChildren();
  at.hidden = !figure;
  if (!figure) return;
  const chart = element("div", {class: "chart"});
  at.append(element("figcaption", {}, figure.title, element("span", {}, figure.note)), chart, numbers(figure));
  drawn.set(name, {figure, chart, wide: at.classList.contains("wide")});
  render(name);
}

// render draws a figure as wide as its place, or as half a printed page or a whole one.
function render(name) {
  const {figure, chart, wide} = drawn.get(name), page = wide ? 680 : 320;
  if (window.report.views[name]) window.report.views[name].finalize();
  chart.replaceChildren();
  // Entries of the legend in as many columns as fit.
  const widest = Math.max(...(figure.legend || []).map(name => 7 * Math.min(name.length, 34) + 40), 1);
  const columns = Math.max(1, Math.floor(((printing ? page : chart.clientWidth) - 50) / widest));
  const spec = {...figure.spec, config: {...config, legend: {...config.legend, columns}}, ...(printing && {width: page})};
  try {
    const runtime = vega.parse(vegaLite.compile(spec).spec);
    const view = new vega.View(runtime, {renderer: "svg", container: chart, hover: true, tooltip: tip, logLevel: vega.Error});
    window.report.views[name] = view;
    view.run();
  } catch (error) {
    window.report.errors.push(name + ": " + error);
    chart.textContent = "This figure cannot be drawn: " + error.message;
    console.error(name, error);
  }
}

// numbers is the table of a figure, which is filled when it is opened.
function numbers(figure) {
  const box = element("details", {}, element("summary", {}, "Numbers of this figure"));
  box.addEventListener("toggle", () => {
    if (!box.open || box.children.length > 1) return;
    const names = Object.keys(figure.rows[0]).filter(n => !(figure.hide || []).includes(n));
    const cell = v => typeof v === "number" ? element("td", {class: "n"}, String(Math.round(v * 1e6) / 1e6)) : element("td", {}, String(v));
    box.append(element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers of " + figure.title},
      element("table", {}, element("thead", {}, element("tr", {}, ...names.map(n => element("th", {scope: "col"}, n)))),
        element("tbody", {}, ...figure.rows.map(r => element("tr", {}, ...names.map(n => cell(r[n]))))))));
  });
  return box;
}

function options(select, list) {
  select.replaceChildren(...list.map(([value, text]) => element("option", {value}, text)));
}

const runOf = id => data.runs[Number(byID(id).value) || 0];

function drawReplicas() {
  const run = runOf("replica-run");
  draw("replica-waiting", replica(data, run, "waiting", "Waiting requests", "mean number", 1));
  draw("replica-running", replica(data, run, "running", "Running requests", "mean number", 0));
  draw("replica-kv", replicaKV(data, run));
}

function drawHeats() {
  data.runs.forEach((run, i) => draw("heat-" + i, heat(data, run, byID("heat-latency").value)));
}

const number = (x, digits) => x === undefined ? "–" : x.toLocaleString("en", {maximumFractionDigits: digits ?? 1});

function listDecisions() {
  const list = (runOf("decision-run")[byID("decision-order").value] || []).filter(q => q.choice);
  options(byID("decision-request"), list.map((q, i) => [i, `${q.id} – ${number(q.spent_ms, 0)} ms` +
    (q.choice.hindsight_ms > 0 ? `, regret ${number(q.choice.hindsight_ms, 0)} ms` : "")]));
  byID("decision-request").disabled = !list.length;
  showDecision();
}

// showDecision shows one request, its decision and what each candidate would have given.
function showDecision() {
  const list = (runOf("decision-run")[byID("decision-order").value] || []).filter(q => q.choice);
  const q = list[Number(byID("decision-request").value) || 0], box = byID("decision");
  if (!q) {
    box.replaceChildren(element("p", {class: "note"}, byID("decision-order").value === "regrets"
      ? "No regrets were recorded: blis-sim --counterfactual estimates them." : "This run has no decisions."));
    return;
  }
  const c = q.choice;
  const of = data.runs.length > 1 ? [["run", runOf("decision-run").name]] : [];
  const facts = [...of, ["request", q.id], ["class", q.class || "–"], ["arrived", number(q.arrival_s, 3) + " s"],
    ["sent to", `${c.replica}, one of ${c.of}`], ["because", [c.reason, c.rule].filter(Boolean).join(", ") || "–"],
    ["prompt", `${number(q.input_tokens)} tokens, ${number(q.cached_tokens)} cached`], ["output", number(q.output_tokens) + " tokens"],
    ["TTFT", number(q.ttft_ms) + " ms"], ["E2E", number(q.e2e_ms) + " ms"],
    ["targets", q.met === undefined ? "none" : q.met ? "met" : "missed"]];
  if (c.hindsight_ms !== undefined) facts.push(["regret in hindsight", number(c.hindsight_ms) + " ms"]);
  if (c.avoidable_ms !== undefined) facts.push(["avoidable", number(c.avoidable_ms) + " ms"]);
  const columns = [["replica", k => k.replica], ["score", k => number(k.score, 4)],
    ...(c.scorers || []).map((s, i) => [s, k => number((k.terms || [])[i], 3)]), ["in flight", k => number(k.inflight)],
    ["queue", k => number(k.queue)], ["running", k => number(k.running)], ["KV used", k => k.kv === undefined ? "–" : number(100 * k.kv) + " %"],
    ["matched blocks", k => number(k.matched)], ["TTFT there, ms", k => number(k.ttft_ms)], ["E2E there, ms", k => number(k.e2e_ms)],
    ["E2E saved, ms", k => number(k.own_e2e_ms)]].filter(([, of], i) => i === 0 || c.candidates.some(k => of(k) !== "–"));
  const row = k => element("tr", k.chosen ? {class: "chosen"} : {}, element("th", {scope: "row"}, k.replica + (k.filtered ? " (excluded)" : "")),
    ...columns.slice(1).map(([, of]) => element("td", {class: "n"}, of(k))));
  box.replaceChildren(
    element("div", {class: "facts"}, ...facts.map(([name, value]) => element("div", {}, element("span", {class: "note"}, name), element("b", {}, value)))),
    element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Candidates"}, element("table", {id: "candidates"},
      element("thead", {}, element("tr", {}, ...columns.map(([name], i) => element("th", i ? {scope: "col", class: "n"} : {scope: "col"}, name)))),
      element("tbody", {}, ...c.candidates.map(row)))));
}

function setTheme(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  byID("theme").setAttribute("aria-pressed", String(dark));
}

function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches);
  dark.addEventListener("change", e => setTheme(e.matches));
  byID("theme").addEventListener("click", () => setTheme(root.dataset.theme !== "dark"));
  byID("print").addEventListener("click", () => print());
  // Print explanations, replicas and facts, too, and figures in the width of the page.
  let closed = [];
  const redraw = printed => {
    printing = printed;
    [...drawn.keys()].forEach(render);
  };
  addEventListener("beforeprint", () => {
    redraw(true);
    closed = [...document.querySelectorAll("article details, section > details:not(#licenses)")].filter(d => !d.open);
    closed.forEach(d => { d.open = true; });
  });
  addEventListener("afterprint", () => {
    closed.forEach(d => { d.open = false; });
    redraw(false);
  });
  byID("theme").hidden = byID("print").hidden = false;
  root.classList.toggle("single", document.querySelectorAll("h1 .run").length < 2);
  root.classList.toggle("several", document.querySelectorAll("h1 .run").length > 1);
  if (!data.runs || !data.runs.length) return;

  const known = Object.keys(latencyNames).filter(l => data.runs.some(r => r.distributions.some(d => d.latency === l)));
  for (const id of ["heat-latency", "time-latency"]) options(byID(id), known.map(l => [l, latencyNames[l]]));
  document.querySelectorAll("[data-run-select]").forEach(s => options(s, data.runs.map((r, i) => [i, r.name])));
  byID("cdfs").append(...known.map(l => element("figure", {"data-figure": "cdf-" + l})));
  byID("heats").append(...data.runs.map((r, i) => element("figure", {"data-figure": "heat-" + i, ...(data.runs.length < 2 && {class: "wide"})})));
  byID("latency").hidden = byID("time-latency").parentElement.hidden = !known.length;
  byID("worst").hidden = !data.runs.some(r => r.worst.some(q => q.parts.length));
  if (!data.runs.some(r => r.regrets && r.regrets.length)) byID("decision-order").value = "worst";

  known.forEach(l => draw("cdf-" + l, cdf(data, l)));
  draw("changes", changes(data));
  drawHeats();
  draw("rate", rate(data));
  draw("requests", requests(data));
  draw("percentiles", percentilesOverTime(data, byID("time-latency").value));
  drawReplicas();
  draw("waterfall", waterfall(data, runOf("worst-run")));
  listDecisions();

  byID("heat-latency").addEventListener("change", drawHeats);
  byID("time-latency").addEventListener("change", e => draw("percentiles", percentilesOverTime(data, e.target.value)));
  byID("replica-run").addEventListener("change", drawReplicas);
  byID("worst-run").addEventListener("change", () => draw("waterfall", waterfall(data, runOf("worst-run"))));
  byID("decision-run").addEventListener("change", listDecisions);
  byID("decision-order").addEventListener("change", listDecisions);
  byID("decision-request").addEventListener("change", showDecision);
}

start();
