// Draws the charts of a report page from the data in it, in the colours of the reader's theme.
"use strict";

const report = JSON.parse(document.getElementById("report").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
// Plotly can offer to send a chart to its makers' servers; a report goes nowhere.
const config = {
  responsive: true, displaylogo: false, displayModeBar: "hover", showSendToCloud: false, plotlyServerURL: "",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendDataToCloud", "sendChartToCloud"],
};

function theme() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["paper", "raised", "ink", "quiet", "line", "grid"].map(
    (name) => [name, style.getPropertyValue("--" + name).trim()]));
}

function themed(layout) {
  const { paper, raised, ink, quiet, line, grid } = theme();
  const axis = {
    gridcolor: grid, linecolor: line, zerolinecolor: line, tickfont: { color: quiet },
    title: { font: { color: quiet, size: 13 }, standoff: 8 }, automargin: true, showline: true, zeroline: false,
  };
  const font = { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink };
  const template = {
    layout: {
      font, paper_bgcolor: paper, plot_bgcolor: paper, xaxis: axis, yaxis: axis, margin: { l: 60, r: 16, t: 16, b: 48 },
      hoverlabel: { bgcolor: raised, bordercolor: line, font: { ...font, size: 12 } }, hovermode: "closest",
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { color: ink } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: quiet, activecolor: ink }, dragmode: "zoom",
      shapedefaults: { line: { color: quiet } }, annotationdefaults: { font: { color: quiet } },
    },
  };
  return { ...layout, template };
}

function draw(id, figure) {
  Plotly.react(id, figure.data, themed(figure.layout), config);
}

// The Gantt chart: one line trace for each colour, so that thousands of stretches remain a few paths. Stretches stand
// in order of row and time, which makes the one under the pointer a binary search.
const gantt = {
  margin: { l: 70, r: 16, t: 4, b: 44 }, range: null, job: null, data: null, heads: null,

  show(data) {
    this.data = data;
    this.job = null;
    this.range = this.range && this.range[1] <= data.until ? this.range : [0, this.span_to_start(data)];
    this.heads = new Map();
    data.row.forEach((row, k) => {
      if (!this.heads.has(row)) this.heads.set(row, [k, k]);
      this.heads.get(row)[1] = k + 1;
    });
    this.choices();
    this.draw();
  },

  // About 60 stretches in a row can still be told apart.
  span_to_start(data) {
    const rows = Math.max(data.rows.reduce((sum, block) => sum + block.shown, 0), 1);
    const readable = data.until * 60 / Math.max(data.row.length / rows, 1);
    const distance = (span) => Math.abs(Math.log(span / readable));
    return this.spans(data).reduce((best, span) => (distance(span) < distance(best) ? span : best));
  },

  spans(data) {
    const hour = 3600;
    return [hour, 6 * hour, 24 * hour, 72 * hour, 168 * hour, 672 * hour].filter(
      (span) => span < data.until && span > data.until / 400).concat([data.until]);
  },

  choices() {
    const { data } = this;
    const bar = document.getElementById("gantt-spans");
    bar.replaceChildren();
    const names = { 3600: "1 hour", 21600: "6 hours", 86400: "1 day", 259200: "3 days", 604800: "1 week", 2419200: "4 weeks" };
    const spans = this.spans(data);
    for (const span of spans.length > 1 ? spans : []) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = span === data.until ? "everything" : names[span];
      button.dataset.span = span;
      button.addEventListener("click", () => this.move(this.range[0], span));
      bar.append(button);
    }
    const gap = document.createElement("span");
    gap.className = "gap";
    bar.append(gap);
    data.legend.forEach((name, k) => {
      const key = document.createElement("span");
      const swatch = document.createElement("i");
      key.className = "key";
      swatch.style.background = data.colours[k];
      key.append(swatch, name);
      bar.append(key);
    });
    const slider = document.getElementById("gantt-move");
    slider.oninput = () => this.move(Number(slider.value) / 1000 * (data.until - this.width()), this.width());
  },

  width() { return this.range[1] - this.range[0]; },

  move(from, width) {
    const start = Math.max(0, Math.min(from, this.data.until - width));
    this.range = [start, start + Math.min(width, this.data.until)];
    this.follow();
    Plotly.relayout("gantt-chart", { "xaxis.range": this.range.map((time) => time / this.data.unit_seconds) });
  },

  // Buttons and slider say what the axis shows, however it was moved.
  follow() {
    const { data } = this;
    const rest = data.until - this.width();
    const slider = document.getElementById("gantt-move");
    slider.hidden = rest <= data.until / 1000;
    slider.value = rest > 0 ? 1000 * this.range[0] / rest : 0;
    for (const button of document.querySelectorAll("#gantt-spans button")) {
      button.setAttribute("aria-pressed", Math.abs(Number(button.dataset.span) - this.width()) < 1e-3 * this.width());
    }
  },

  lines(wanted) {
    const { data } = this;
    const traces = data.colours.map(() => ({ x: [], y: [] }));
    for (let k = 0; k < data.row.length; k++) {
      if (wanted !== null && data.job[k] !== wanted && !(data.partner && data.partner[k] === wanted)) continue;
      const trace = traces[data.colour[data.job[k]]];
      trace.x.push(data.start[k] / data.unit_seconds, data.end[k] / data.unit_seconds, null);
      trace.y.push(data.row[k], data.row[k], null);
    }
    return traces;
  },

  draw() {
    const { data } = this;
    const { ink, quiet } = theme();
    const last = data.rows[data.rows.length - 1];
    const bottom = last ? last.first + last.shown : 1;
    const pixels = Math.max(4, Math.min(16, 760 / bottom));
    const line = (color, size) => ({ color, width: size, shape: "linear", simplify: false });
    const traces = this.lines(null).map((trace, k) => ({
      ...trace, type: "scatter", mode: "lines", hoverinfo: "skip", line: line(data.colours[k], 0.84 * pixels),
      opacity: this.job === null ? 1 : 0.3,
    }));
    if (this.job !== null) {
      const own = this.lines(this.job);
      const merged = { x: own.flatMap((trace) => trace.x), y: own.flatMap((trace) => trace.y) };
      traces.push({ ...merged, type: "scatter", mode: "lines", hoverinfo: "skip", line: line(ink, 0.84 * pixels) });
    }
    const ticks = data.rows.flatMap((block) => {
      const step = [1, 2, 4, 8, 16, 32].find((size) => size * pixels >= 22) || 32;
      return Array.from({ length: Math.ceil(block.shown / step) }, (_, k) => [block.first + k * step, String(k * step)]);
    });
    const layout = themed({
      height: pixels * (bottom + 1) + this.margin.t + this.margin.b, margin: this.margin, showlegend: false,
      dragmode: "pan",
      xaxis: {
        range: this.range.map((time) => time / data.unit_seconds), automargin: false, showgrid: true,
        minallowed: 0, maxallowed: data.until / data.unit_seconds,
        title: { text: "time since the start (" + data.unit_name + ")" },
      },
      yaxis: {
        range: [bottom + 0.5, -0.5], fixedrange: true, automargin: false, showgrid: false, showline: false,
        tickvals: ticks.map((tick) => tick[0]), ticktext: ticks.map((tick) => tick[1]), tickfont: { size: 10, color: quiet },
        title: { text: "worker" },
      },
      annotations: data.rows.map((block) => ({
        text: "<b>" + escaped(block.name) + "</b>  " + (block.shown < block.workers
          ? "first " + block.shown + " of " + block.workers + " workers" : counted(block.workers)),
        xref: "paper", x: 0, xanchor: "left", y: block.first - 0.6, yanchor: "bottom", showarrow: false, font: { size: 12 },
      })),
    });
    Plotly.react("gantt-chart", traces, layout, { ...config, scrollZoom: false }).then((place) => {
      this.follow();
      if (this.listening) return;
      this.listening = true;
      place.on("plotly_relayout", () => {
        this.range = place.layout.xaxis.range.map((value) => Math.max(0, value * this.data.unit_seconds));
        this.follow();
      });
      place.addEventListener("mousemove", (event) => this.tell(this.under(event, place), event));
      place.addEventListener("mouseleave", () => this.tell(-1));
      let down = null;
      place.addEventListener("mousedown", (event) => { down = [event.clientX, event.clientY]; }, true);
      // While a button is down, plotly covers the page to follow the pointer: the chart itself never sees it go up.
      document.addEventListener("mouseup", (event) => {
        const from = down;
        down = null;
        if (!from || Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 4) return;
        const k = this.under(event, place);
        const job = k < 0 ? null : this.data.job[k];
        if (job === this.job) return;
        this.job = job;
        this.draw();
      }, true);
    });
  },

  under(event, place) {
    const { data, margin } = this;
    const box = place.getBoundingClientRect();
    const across = (event.clientX - box.left - margin.l) / (box.width - margin.l - margin.r);
    const down = (event.clientY - box.top - margin.t) / (box.height - margin.t - margin.b);
    const [bottom, top] = place.layout.yaxis.range;
    const row = Math.round(top + down * (bottom - top));
    const time = this.range[0] + across * this.width();
    if (across < 0 || across > 1 || !this.heads.has(row)) return -1;
    let [low, high] = this.heads.get(row);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.end[middle] <= time) low = middle + 1; else high = middle;
    }
    return low < this.heads.get(row)[1] && data.start[low] <= time ? low : -1;
  },

  tell(k, event) {
    const tip = document.getElementById("gantt-tip");
    tip.hidden = k < 0;
    if (k < 0) return;
    const { data } = this;
    const name = (job) => {
      const [id, type, team, workers] = data.jobs[job];
      return ["job " + id, [type, team, counted(workers)].filter(Boolean).join(" · ")];
    };
    const block = data.rows.filter((rows) => rows.first <= data.row[k]).pop();
    const [title, about] = name(data.job[k]);
    const lines = [about, block.name + " worker " + (data.row[k] - block.first),
      clock(data.start[k]) + " – " + clock(data.end[k]) + " (" + span(data.end[k] - data.start[k]) + ")"];
    if (data.partner && data.partner[k] >= 0) lines.push("shared with " + name(data.partner[k]).join(", "));
    const head = document.createElement("b");
    head.textContent = title;
    tip.replaceChildren(head, ...lines.flatMap((text) => [document.createTextNode(text), document.createElement("br")]));
    const box = document.getElementById("gantt").getBoundingClientRect();
    const x = event.clientX - box.left;
    tip.style.top = (event.clientY - box.top + 16) + "px";
    tip.style.left = Math.max(0, x + 16 + tip.offsetWidth > box.width ? x - tip.offsetWidth - 12 : x + 16) + "px";
  },
};

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function counted(workers) {
  return workers === 1 ? "1 worker" : workers + " workers";
}

function clock(seconds) {
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  return (days ? "day " + days + ", " : "") + two(seconds / 3600 % 24) + ":" + two(seconds / 60 % 60) + ":" + two(seconds % 60);
}

function span(seconds) {
  if (seconds >= 7200) return (seconds / 3600).toFixed(1) + " h";
  return seconds >= 120 ? (seconds / 60).toFixed(1) + " min" : seconds.toFixed(seconds < 10 ? 2 : 0) + " s";
}

let chosen = 0;

function detail(number) {
  chosen = number;
  document.querySelectorAll("#runs button").forEach((button, k) => button.setAttribute("aria-pressed", k === number));
  const { gantt: data, ...figures } = report.details[number];
  for (const [id, there] of Object.entries(report.details[number])) {
    const place = document.getElementById(id);
    if (!place) continue;
    place.hidden = !there;
    document.getElementById("no-" + id).hidden = Boolean(there);
  }
  if (data) gantt.show(data);
  for (const [id, figure] of Object.entries(figures)) if (figure) draw(id, figure);
}

function everything() {
  for (const [id, figure] of Object.entries(report.figures)) draw(id, figure);
  if (report.details.length) detail(chosen);
}

document.querySelectorAll("#runs button").forEach((button, k) => button.addEventListener("click", () => detail(k)));
dark.addEventListener("change", everything);
everything();
