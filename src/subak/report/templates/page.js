"use strict";
// What goes wrong is kept on the page itself, where a reader's report and the tests find it.
const problems = [];
function problem(text) {
  problems.push(text);
  document.documentElement.dataset.problems = problems.join("\n");
}
addEventListener("error", (event) => problem(String(event.message)));
addEventListener("unhandledrejection", (event) => problem(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => problem(`refused: ${event.blockedURI}`));
for (const level of ["error", "warn"]) {
  const write = console[level].bind(console);
  console[level] = (...words) => { problem(words.join(" ")); write(...words); };
}

const configs = JSON.parse(document.getElementById("chart-configs").textContent);
const views = new Map();
const specs = new Map();
// To look things up in. Vega-Embed changes what it is given, so it is given a copy; one for each move of a pointer cost 4 ms.
const readSpec = (figure) => {
  if (!specs.has(figure)) specs.set(figure, JSON.parse(figure.querySelector("script").textContent));
  return specs.get(figure);
};
const specOf = (figure) => structuredClone(readSpec(figure));

// -- charts ----------------------------------------------------------------------------------------------------------

const AXIS = 66; // pixels that an axis with its title takes beside a chart or a panel
const SYMBOL = 40; // pixels of a legend entry's symbol and of the space around it
const LABEL = 150; // pixels after which a label is cut
const pen = document.createElement("canvas").getContext("2d");

// A legend that is wider than its chart is cut off: as many columns as fit beside the axis.
function legendColumns(names, width) {
  pen.font = `12px ${configs.page.font}`;
  const longest = Math.max(0, ...names.map((name) => Math.min(LABEL, pen.measureText(name).width)));
  return Math.max(1, Math.floor((width - AXIS) / (longest + SYMBOL)));
}

const sized = (spec, width) => spec.usermeta?.facets ? { ...spec, width: width - AXIS } : spec;

async function draw(figure) {
  const spec = specOf(figure), width = figure.clientWidth;
  delete spec.title; // the page's heading says it
  const own = Boolean(spec.config); // a chart with a look of its own keeps it
  const columns = own ? 1 : legendColumns(spec.usermeta?.legend ?? [], width);
  const known = views.get(figure);
  if (known?.columns === columns && (known.width === width || !spec.usermeta?.facets)) return;
  known?.result?.finalize();
  views.set(figure, { columns, width });
  const result = await vegaEmbed(figure.querySelector(".chart"), sized(spec, width), {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false,
    config: own ? {} : { ...configs.page, legend: { ...configs.page.legend, columns } },
  });
  views.set(figure, { columns, width, result });
  figure.dataset.drawn = "yes";
}

// Saved pictures are light, and those that fill the page are of one size, whatever the screen.
async function save(figure, format) {
  const spec = { ...specOf(figure), background: "white" };
  if (spec.width === "container") spec.width = configs.picture_width;
  const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false };
  const columns = legendColumns(spec.usermeta?.legend ?? [], configs.picture_width ?? 0);
  const config = { ...configs.picture, legend: { ...configs.picture?.legend, columns } };
  const { view } = await vegaEmbed(document.createElement("div"), sized(spec, spec.width), { ...options, config: spec.config ? {} : config });
  const link = document.createElement("a");
  link.href = await view.toImageURL(format, 2);
  link.download = `${figure.id}.${format}`;
  link.click();
  view.finalize();
}

// -- numbers as text: what subak/report/number_text.py does, for values that are read off a chart ----------------------

const NOTHING = "–";
const fixed = (value, digits) => value.toLocaleString(
  "en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven" });

function numberText(value) {
  const size = Math.abs(value);
  if (size >= 99.95 || Number.isInteger(value)) return fixed(value, 0);
  if (size >= 9.995) return fixed(value, 1);
  return size >= 0.9995 ? fixed(value, 2) : String(Number(value.toPrecision(3)));
}

const STEPS = [[1e-3, 1e-6, "µs"], [1, 1e-3, "ms"], [120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]];
const words = {
  number: numberText,
  ratio: (value) => value !== 0 && Math.abs(value) < 9.995 ? fixed(value, 2) : numberText(value),
  share: (value) => value >= 0.9995 && value < 1 ? "> 99.9 %" : `${numberText(100 * value)} %`,
  seconds: (value) => {
    if (value === 0) return "0 s";
    const [, size, unit] = STEPS.find(([limit]) => Math.abs(value) < limit);
    return `${numberText(value / size)} ${unit}`;
  },
};

// -- reading values off a chart of lines -------------------------------------------------------------------------------

const reader = document.getElementById("reader"), ruler = document.getElementById("ruler");

function element(name, text, parent) {
  const made = parent.appendChild(document.createElement(name));
  made.textContent = text;
  return made;
}

// The panel of a chart in which the pointer is, or nothing.
function panelAt(figure, event) {
  const panels = [...figure.querySelectorAll(".chart svg .role-frame > g > path.background, .chart svg .cell > g > path.background")];
  const boxes = panels.map((panel) => panel.getBoundingClientRect());
  const facets = readSpec(figure).usermeta.facets;
  const inside = (box) => event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
  const cells = facets ? boxes.slice(-facets.length) : boxes;
  const number = cells.findIndex(inside);
  return number < 0 ? null : { box: cells[number], facet: facets?.[number] };
}

const rowsOf = (spec) => spec.datasets?.[spec.data.name] ?? spec.data.values;

function nearest(rows, x) {
  let low = 0, high = rows.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (rows[middle].x < x) low = middle; else high = middle;
  }
  return Math.abs(rows[low].x - x) <= Math.abs(rows[high].x - x) ? rows[low] : rows[high];
}

// The mean over a scheduler's runs, and their range where there are several.
function valueText(values, text) {
  const known = values.filter((value) => value !== undefined && value !== null);
  if (known.length === 0) return NOTHING;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const range = `${text(Math.min(...known))} to ${text(Math.max(...known))}`;
  return values.length === 1 ? text(mean) : `${text(mean)} (${range})`;
}

// An instant of the trace's calendar, to the minute where a chart is hours long or more, with the zone that the trace claims.
function instantText(reading, x) {
  const least = reading.unit < 60000 ? 1000 : 60000;
  const at = new Date(Math.round((reading.begins + x * reading.unit) / least) * least).toISOString();
  return `${at.slice(0, 10)} ${at.slice(11, least === 1000 ? 19 : 16)} ${reading.x}`.trim();
}

function fill(spec, row, facet) {
  const { reading, lines } = spec.usermeta;
  const whats = [...new Set(lines.map((line) => line.what))];
  const schedulers = [...new Set(lines.map((line) => line.scheduler))];
  const domain = spec.encoding.color.scale.domain;
  reader.replaceChildren();
  const table = reader.appendChild(document.createElement("table"));
  const title = reading.x_text === "instant" ? instantText(reading, row.x) : `${reading.x_text === "number" ? `${words.number(row.x)} ${reading.x}` : `${reading.x} ${words[reading.x_text](row.x)}`}`;
  element("caption", facet === undefined ? title : `${facet}, ${title}`, table);
  const head = table.appendChild(document.createElement("thead")).insertRow();
  element("th", "", head);
  for (const what of whats) element("th", what || reading.y, head);
  const body = table.createTBody();
  for (const scheduler of schedulers) {
    const line = body.insertRow(), name = element("th", "", line);
    const swatch = element("span", "", name);
    swatch.className = "swatch";
    swatch.style.setProperty("--swatch", `var(--${configs.series[domain.indexOf(scheduler) % configs.series.length]})`);
    name.append(scheduler);
    for (const what of whats) {
      const keys = lines.filter((each) => each.scheduler === scheduler && each.what === what).map((each) => each.line);
      element("td", valueText(keys.map((key) => row[key]), words[reading.y_text]), line);
    }
  }
}

// Beside the pointer, on the side where there is room, and always inside the window.
function place(event, box, x) {
  const root = document.documentElement, gap = 14;
  const width = reader.offsetWidth, height = reader.offsetHeight;
  const right = event.clientX + gap, left = event.clientX - gap - width;
  const beside = right + width <= root.clientWidth ? right : Math.max(0, left);
  reader.style.left = `${Math.min(beside, Math.max(0, root.clientWidth - width))}px`;
  reader.style.top = `${Math.max(0, Math.min(event.clientY + gap, root.clientHeight - height))}px`;
  Object.assign(ruler.style, { left: `${x}px`, top: `${box.top}px`, height: `${box.height}px` });
}

function read(figure, event) {
  const dragged = event.buttons && event.pointerType === "mouse";
  const panel = dragged ? null : panelAt(figure, event), view = views.get(figure)?.result?.view;
  reader.hidden = ruler.hidden = !panel || !view;
  if (reader.hidden) return;
  const spec = readSpec(figure), scale = view.scale("x"), [first, last] = scale.range();
  const along = (event.clientX - panel.box.left) / panel.box.width;
  const rows = rowsOf(spec).filter((row) => panel.facet === undefined || row.facet === panel.facet);
  if (rows.length === 0) return;
  const row = nearest(rows, scale.invert(first + along * (last - first)));
  fill(spec, row, panel.facet);
  const reached = (scale(row.x) - first) / (last - first);
  place(event, panel.box, panel.box.left + Math.min(1, Math.max(0, reached)) * panel.box.width);
}

function readable(figure) {
  if (!readSpec(figure).usermeta?.reading) return;
  const chart = figure.querySelector(".chart");
  for (const kind of ["pointermove", "pointerdown"]) chart.addEventListener(kind, (event) => read(figure, event));
  chart.addEventListener("pointerleave", () => { reader.hidden = ruler.hidden = true; });
}

// -- groups and tables -------------------------------------------------------------------------------------------------

const tabs = [...document.querySelectorAll("[role=tab]")];

function show(name) {
  const target = document.getElementById(name), group = target?.closest(".group") ?? document.querySelector(".group");
  for (const tab of tabs) {
    const chosen = tab.hash === `#${group.id}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    document.getElementById(tab.hash.slice(1)).classList.toggle("away", !chosen);
  }
  return target && target !== group ? target : null;
}

function open(event) {
  event.preventDefault();
  if (location.protocol !== "about:") history.replaceState(null, "", event.currentTarget.hash); // a frame's own text has no address
  show(event.currentTarget.hash.slice(1));
  const top = document.querySelector("nav").offsetTop;
  if (scrollY > top) scrollTo({ top, behavior: "instant" });
}

function step(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  const next = tabs[(tabs.indexOf(event.currentTarget) + by + tabs.length) % tabs.length];
  next.click();
  next.focus();
}

// A table that is wider than its box has a line a cell instead, each under the name of its column.
function fit() {
  for (const box of document.querySelectorAll(".fits")) {
    box.classList.remove("stacked");
    box.classList.toggle("stacked", box.scrollWidth > box.clientWidth);
  }
}

async function start() {
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  for (const button of document.querySelectorAll("button[data-format]")) {
    button.onclick = () => save(button.closest("figure"), button.dataset.format);
  }
  for (const tab of tabs) {
    tab.onclick = open;
    tab.onkeydown = step;
  }
  for (const details of document.querySelectorAll("details")) details.ontoggle = fit;
  if (tabs.length) show(location.hash.slice(1));
  addEventListener("hashchange", () => tabs.length && show(location.hash.slice(1))?.scrollIntoView());
  fit();
  for (const figure of figures) {
    await draw(figure).catch((error) => problem(`${figure.id}: ${error.message}`));
    readable(figure);
  }
  addEventListener("resize", () => { fit(); figures.forEach(draw); });
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView(); // the charts moved it
  document.documentElement.dataset.requests = performance.getEntriesByType("resource").length;
  document.documentElement.dataset.ready = "yes";
}
start();
