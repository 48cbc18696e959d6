"use strict";
// Specifications of the figures, for Vega-Lite. Each function returns {title, note, rows, spec}: rows are the data, of
// which the figure also has a table. Colors are variables of the style sheet, so that themes need no second drawing.

const palette = [0, 1, 2, 3, 4, 5, 6, 7].map(i => `var(--c${i})`);

// fewRuns is how many runs have several series in a figure over time, and confidence intervals in a distribution.
const fewRuns = 3;

const latencyNames = {ttft: "TTFT", tpot: "TPOT", e2e: "E2E", queue: "Queue"};
const latencyDocs = {
  ttft: "time to first token", tpot: "time per output token after the first",
  e2e: "time from arrival to the last token", queue: "time before the first batch",
};

const parts = ["retries", "admission and routing", "frontend", "queue", "prefill", "transfer wait", "transfer", "decode"];

const config = {
  background: null,
  font: "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif",
  padding: {left: 2, top: 4, right: 10, bottom: 2},
  view: {stroke: null},
  axis: {
    labelColor: "var(--muted)", titleColor: "var(--muted)", gridColor: "var(--grid)", domainColor: "var(--line)",
    tickColor: "var(--line)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400, labelFontWeight: 400,
    labelOverlap: true, titlePadding: 8,
  },
  legend: {
    labelColor: "var(--ink)", titleColor: "var(--muted)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400,
    orient: "top", layout: {top: {direction: "vertical", anchor: "start", margin: 2}}, symbolStrokeWidth: 3, symbolOpacity: 1, labelLimit: 240, offset: 6,
  },
};

// base is what all figures have in common.
function base(description, height, rest) {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json", description, width: "container", height, config,
    autosize: {type: "fit-x", contains: "padding"}, ...rest,
  };
}

// short writes a value of an axis: three digits, and k for thousands.
const short = "abs(datum.value) >= 1000 ? format(datum.value / 1000, '.3~r') + 'k' : format(datum.value, '.3~r')";

// powers are the ticks of a symmetric logarithmic axis from 0 on: 0, and powers of ten above the constant.
function powers(constant, largest) {
  const ticks = [0];
  for (let x = 10 ** Math.ceil(Math.log10(constant)); x <= largest; x *= 10) ticks.push(x);
  return ticks;
}

// logTicks are the ticks of a logarithmic axis: at 1, 2 and 5 times powers of ten, or at powers of ten if those are many,
// or at all digits if those are few.
function logTicks(low, high) {
  const ticks = digits => {
    const all = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      digits.forEach(d => all.push(Number(`${d}e${power}`)));
    }
    return all.filter(x => x >= low && x <= high);
  };
  const some = ticks([1, 2, 5]);
  return some.length > 9 ? ticks([1]) : some.length < 3 ? ticks([1, 2, 3, 4, 5, 6, 7, 8, 9]) : some;
}

function colors(names) {
  return {type: "nominal", scale: {domain: names, range: palette}, title: null, legend: names.length > 1 ? {} : null};
}

// cdf: the share of requests with at most a latency; of several runs, or of the classes of one.
function cdf(data, latency) {
  const many = data.runs.length > 1, rows = [], marks = [], names = [];
  data.runs.forEach(run => {
    const own = run.distributions.filter(d => d.latency === latency);
    const shown = own.filter(d => many || own.length === 1 ? !d.class : true);
    shown.forEach(d => {
      const name = many ? run.name : d.class || (own.length > 1 ? "all" : run.name);
      names.push(name);
      const kind = run.measured ? "recording" : "simulation";
      d.ms.forEach((ms, i) => rows.push({series: name, kind, share: data.permilles[i] / 1000, ms}));
      const target = run.classes.find(c => c.name === d.class || run.classes.length === 1);
      if (!many && target && target[latency]) marks.push({series: name, ms: target[latency], target: target.name});
    });
  });
  if (!rows.length) return null;
  const largest = Math.max(...rows.map(r => r.ms)), smallest = Math.min(...rows.map(r => r.ms).filter(x => x > 0));
  const scale = rows.some(r => r.ms <= 0) ? {type: "symlog", constant: Math.max(smallest, largest / 1e4)} : {type: "log", nice: false};
  const right = Math.max(largest, ...marks.map(m => m.ms));
  const values = scale.type === "log" ? logTicks(smallest, right) : powers(scale.constant, right);
  const x = {field: "ms", type: "quantitative", scale, title: "ms", axis: {labelExpr: short, labelFlush: false, values}};
  const ranges = cdfRanges(data, latency, names);
  const color = {field: "series", ...colors(names)};
  if (many) color.scale.range = names.map(name => palette[data.runs.findIndex(run => run.name === name)]);
  const kinds = new Set(rows.map(r => r.kind)).size > 1 ? {strokeDash: {field: "kind", type: "nominal", title: null,
    scale: {domain: ["simulation", "recording"], range: [[1, 0], [5, 3]]}}} : {};
  const tips = [{field: "series", title: "of"}, {field: "share", title: "share", format: ".1%"},
    {field: "ms", title: "ms at most", format: ",.2f"}];
  return {
    title: latencyNames[latency], rows, hide: ["kind"], legend: names,
    note: latencyDocs[latency] + (ranges.length ? "; thick bars are 95 % confidence intervals of percentiles" : ""),
    spec: base(`Cumulative distribution of ${latencyNames[latency]}`, 230, {
      encoding: {color},
      layer: [
        {data: {name: "rows", values: rows}, mark: {type: "line", strokeWidth: 2, clip: true},
          encoding: {x, y: {field: "share", type: "quantitative", title: "share of requests", scale: {domain: [0, 1]},
            axis: {format: "%", tickCount: 5}}, ...kinds}},
        {data: {name: "ranges", values: ranges}, mark: {type: "rule", strokeWidth: 7, opacity: 0.35, strokeCap: "round", clip: true},
          encoding: {x: {...x, field: "lo"}, x2: {field: "hi"}, y: {field: "share", type: "quantitative"},
            tooltip: [{field: "series", title: "of"}, {field: "percentile"}, {field: "lo", title: "from, ms", format: ",.2f"},
              {field: "hi", title: "to, ms", format: ",.2f"}]}},
        {data: {values: rows}, mark: {type: "point", opacity: 0, size: 80},
          encoding: {x, y: {field: "share", type: "quantitative"}, tooltip: tips}},
        {data: {values: marks}, mark: {type: "rule", strokeDash: [4, 3], strokeWidth: 1.5},
          encoding: {x: {field: "ms", type: "quantitative", scale},
            tooltip: [{field: "target", title: "SLO target of"}, {field: "ms", title: "ms"}]}},
      ],
    }),
  };
}

// cdfRanges: the confidence intervals of the percentiles of all requests of each run.
function cdfRanges(data, latency, names) {
  const ranges = [];
  if (data.runs.length > fewRuns) return ranges; // they would cover each other
  data.runs.forEach((run, i) => Object.entries(data.intervals[i]).forEach(([path, [lo, hi]]) => {
    const [name, percentile] = path.split(".p"), series = names.includes("all") ? "all" : run.name;
    if (name === latency && percentile) ranges.push({series, share: Number(percentile) / 100, percentile: "p" + percentile, lo, hi});
  }));
  return ranges;
}

// ofRun names the run of a figure of one run among several.
function ofRun(data, run) { return data.runs.length > 1 ? ", " + run.name : ""; }

// heat: how many requests arrived at a time and had a latency.
function heat(data, run, latency) {
  const h = run.heat.find(x => x.latency === latency);
  if (!h) return null;
  const floorOf = edges => edges[0] > 0 ? edges[0] : edges[1] / 1.6;
  const all = data.runs.map(r => r.heat.find(x => x.latency === latency)).filter(x => x); // with the same axes
  const latest = Math.max(...all.map(x => x.width_s * (1 + Math.max(...x.cells.map(c => c[0])))));
  const bottom = Math.min(...all.map(x => floorOf(x.edges))), top = Math.max(...all.map(x => x.edges[x.edges.length - 1]));
  const floor = i => h.edges[i] > 0 ? h.edges[i] : floorOf(h.edges);
  const rows = h.cells.map(([t, l, n]) => ({
    from: t * h.width_s, to: (t + 1) * h.width_s, low: h.edges[l], high: h.edges[l + 1], requests: n,
    bottom: floor(l),
  }));
  const largest = Math.max(...rows.map(r => r.requests));
  return {
    title: latencyNames[latency] + " by arrival" + ofRun(data, run),
    note: "stronger: more requests, at most " + largest.toLocaleString("en") + " in a cell", rows, hide: ["bottom"],
    spec: base(`Requests by arrival and ${latencyNames[latency]}`, 250, {
      data: {name: "rows", values: rows}, mark: {type: "rect", color: palette[Math.max(data.runs.indexOf(run), 0)]},
      encoding: {
        x: {field: "from", type: "quantitative", title: "arrival, s", scale: {nice: false, domain: [0, latest]}, axis: {grid: false}}, x2: {field: "to"},
        y: {field: "bottom", type: "quantitative", title: latencyNames[latency] + ", ms", scale: {type: "log", nice: false,
          domain: [bottom, top]}, axis: {labelExpr: short, values: logTicks(bottom, top), grid: false}}, y2: {field: "high"},
        opacity: {field: "requests", type: "quantitative", scale: {type: "sqrt", domain: [0, largest], range: [0.08, 1]}, legend: null},
        tooltip: [{field: "from", title: "arrival, s", format: ".2f"}, {field: "low", title: "from, ms"},
          {field: "high", title: "to, ms"}, {field: "requests", title: "requests"}],
      },
    }),
  };
}

// lines: series over time. One run has a color for each series; several have a color each and a dash for each series.
// only names the series of several runs; those of more than fewRuns have one series, the first of only.
function lines(data, title, note, unit, series, only) {
  const many = data.runs.length > 1, rows = [];
  data.runs.forEach(run => series.forEach(s => {
    if (many && only && !only.slice(0, data.runs.length > fewRuns ? 1 : only.length).includes(s.name)) return;
    s.of(run).forEach((value, i) => {
      if (value !== null) rows.push({run: run.name, series: s.name, t: i * run.time.width_s, value});
    });
  }));
  if (!rows.length) return null;
  const names = series.map(s => s.name).filter(n => rows.some(r => r.series === n));
  const color = many ? {field: "run", ...colors(data.runs.map(r => r.name))} : {field: "series", ...colors(names)};
  const encoding = {
    x: {field: "t", type: "quantitative", title: "time, s", scale: {nice: false}, axis: {grid: false}},
    y: {field: "value", type: "quantitative", title: unit, axis: {tickCount: 5, labelExpr: short}}, color,
  };
  if (many && names.length > 1) {
    encoding.strokeDash = {field: "series", type: "nominal", title: null, scale: {domain: names, range: [[1, 0], [5, 3], [2, 2]]}};
  }
  const tooltip = [{field: "run"}, {field: "series", title: "what"}, {field: "t", title: "from, s", format: ".2f"},
    {field: "value", title: unit, format: ",.4~r"}];
  const alone = many && names.length === 1 && series.length > 1 ? names[0] + (note && ", ") : "";
  return {
    title, note: alone + note, rows, legend: many ? data.runs.map(r => r.name) : names,
    spec: base(title, 220, {data: {name: "rows", values: rows}, encoding, layer: [
      {mark: {type: "line", strokeWidth: 1.8}},
      {mark: {type: "point", opacity: 0, size: 60}, encoding: {tooltip}}]}),
  };
}

function rate(data) {
  const perSecond = list => run => run.time[list].map(n => n / run.time.width_s);
  return lines(data, "Rates", data.runs.length > fewRuns ? "" : "misses count by arrival", "requests/s", [
    {name: "arrivals", of: perSecond("arrived")}, {name: "completions", of: perSecond("completed")},
    {name: "missed targets", of: run => run.classes.some(c => c.ttft || c.tpot || c.e2e) ? perSecond("missed")(run) : []}], ["completions", "missed targets"]);
}

function requests(data) {
  return lines(data, "Requests in the system", "means of all replicas", "requests", [
    {name: "running", of: run => run.time.running}, {name: "waiting", of: run => run.time.waiting || []}], ["running", "waiting"]);
}

function percentilesOverTime(data, latency) {
  const of = which => run => (run.time.percentiles.find(p => p.latency === latency) || {p50: [], p99: []})[which];
  return lines(data, latencyNames[latency] + " over time", "of the requests that arrive in each interval", "ms", [
    {name: "p99", of: of("p99")}, {name: "median", of: of("p50")}], ["p99", "median"]);
}

// replica: a number of each replica over time. color is its place in the palette.
function replica(data, run, field, title, note, color) {
  const r = run.replicas, rows = [];
  (r[field] || []).forEach((values, i) => values.forEach((value, k) => {
    if (value !== null) rows.push({replica: r.names[i], from: k * r.width_s, to: (k + 1) * r.width_s, value});
  }));
  if (!rows.length) return null;
  const largest = Math.max(...rows.map(x => x.value), 1e-9);
  const share = field === "kv" && r.kv_share;
  const most = share ? (100 * largest).toFixed(0) + " %" : Number(largest.toPrecision(4));
  const omitted = r.of > r.names.length ? `, the ${r.names.length} of ${r.of} replicas that waited most` : "";
  return {
    title: title + ofRun(data, run), note: `${note}; strongest: ${most.toLocaleString("en")}${omitted}`, rows,
    spec: base(`${title} of each replica over time`, r.names.length * Math.max(12, Math.min(30, 300 / r.names.length)), {
      data: {name: "rows", values: rows}, mark: {type: "rect", color: palette[color]},
      encoding: {
        x: {field: "from", type: "quantitative", title: "time, s", scale: {nice: false}, axis: {grid: false}}, x2: {field: "to"},
        y: {field: "replica", type: "nominal", title: null, sort: null, scale: {padding: 0.12}, axis: {domain: false, ticks: false}},
        opacity: {field: "value", type: "quantitative", scale: {domain: [0, largest], range: [0.06, 1]}, legend: null},
        tooltip: [{field: "replica"}, {field: "from", title: "from, s", format: ".2f"},
          {field: "value", title: title.toLowerCase(), format: share ? ".1%" : ",.4~r"}],
      },
    }),
  };
}

function replicaKV(data, run) {
  return run.replicas.kv_share
    ? replica(data, run, "kv", "KV blocks used", "share that routing saw", 2)
    : replica(data, run, "kv", "KV blocks used", "mean number", 2);
}

// waterfall: the parts of the time of the slowest requests.
function waterfall(data, run) {
  const rows = [];
  run.worst.slice(0, 25).forEach(q => q.parts.forEach(p => rows.push({
    request: q.id, replica: q.replica || "–", class: q.class || "–", state: q.state, part: p.name, from: p.from, to: p.to, ms: p.to - p.from,
  })));
  if (!rows.length) return null;
  const shown = parts.filter(p => rows.some(r => r.part === p));
  return {
    title: "The slowest requests" + ofRun(data, run), note: "decode includes the time after preemptions", rows, legend: shown,
    spec: base("Parts of the time of the slowest requests", 20 * new Set(rows.map(r => r.request)).size, {
      data: {name: "rows", values: rows}, mark: {type: "bar", height: {band: 0.72}, cornerRadius: 2},
      encoding: {
        x: {field: "from", type: "quantitative", title: "ms since arrival", axis: {labelExpr: short}}, x2: {field: "to"},
        y: {field: "request", type: "nominal", sort: null, title: null, axis: {labelLimit: 150, domain: false, ticks: false}},
        color: {field: "part", type: "nominal", title: null, scale: {domain: shown, range: shown.map(p => partColors[p])}},
        tooltip: [{field: "request"}, {field: "part"}, {field: "ms", format: ",.2f"}, {field: "replica"}, {field: "class"}, {field: "state"}],
      },
    }),
  };
}

const partColors = {
  retries: "var(--c3)", "admission and routing": "var(--c7)", frontend: "var(--c4)", queue: "var(--c1)", prefill: "var(--c0)",
  "transfer wait": "var(--c6)", transfer: "var(--c5)", decode: "var(--c2)",
};

// changes: differences from the first run with their confidence intervals.
function changes(data) {
  const rows = data.changes || [];
  if (!rows.length) return null;
  const names = data.runs.map(r => r.name);
  const place = {y: {field: "name", type: "nominal", sort: null, title: null, axis: {labelLimit: 200, grid: true, domain: false, ticks: false}},
    yOffset: {field: "run", type: "nominal", sort: null}, color: {field: "run", ...colors(names)}};
  if (names.length > 2) place.color.scale = {domain: names.slice(1), range: palette.slice(1)};
  else place.color = {field: "run", type: "nominal", legend: null, scale: {domain: names.slice(1), range: palette.slice(1)}};
  // Some differences are a hundred times others: the axis is linear around 0 and logarithmic outside.
  const ends = rows.flatMap(r => [r.lo, r.hi]), low = Math.min(0, ...ends), high = Math.max(0, ...ends);
  const x = {field: "percent", type: "quantitative", title: `difference from ${names[0]}, %`};
  if (Math.max(-low, high) > 300) {
    x.scale = {type: "symlog", constant: 20};
    x.axis = {values: [-1000, -100, -50, -20, 0, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5].filter(v => v >= low && v <= high)};
  }
  return {
    title: "Differences", note: "lines are 95 % confidence intervals", rows, hide: ["path"], legend: names.length > 2 ? names.slice(1) : [],
    spec: base("Differences from the first run", new Set(rows.map(r => r.name)).size * Math.max(22, 10 * (names.length - 1)), {
      data: {name: "rows", values: rows}, encoding: place,
      layer: [
        {mark: {type: "rule", color: "var(--muted)"}, data: {values: [{}]}, encoding: {x: {datum: 0, scale: x.scale}, y: null, yOffset: null, color: null}},
        {mark: {type: "rule", strokeWidth: 2}, encoding: {x: {...x, field: "lo"}, x2: {field: "hi"}}},
        {mark: {type: "point", size: 60, strokeWidth: 2, fill: "var(--card)"}, encoding: {x, fillOpacity: {value: 1},
          tooltip: [{field: "run"}, {field: "name", title: "metric"}, {field: "percent", title: "%", format: "+.2f"},
            {field: "lo", title: "from, %", format: "+.2f"}, {field: "hi", title: "to, %", format: "+.2f"}]}},
        {mark: {type: "point", filled: true, size: 60}, transform: [{filter: "datum.differs"}], encoding: {x}},
      ],
    }),
  };
}
