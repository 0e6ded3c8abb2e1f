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

const specOf = (figure) => JSON.parse(figure.querySelector("script").textContent);
// A legend that is wider than its chart is cut off: as many columns as fit beside 60 pixels of axis.
const legendColumns = (figure) => Math.max(1, Math.floor((figure.clientWidth - 60) / configs.entry_width));

async function draw(figure) {
  const spec = specOf(figure);
  delete spec.title; // the page's heading says it
  const columns = spec.config ? 1 : legendColumns(figure); // a chart with a look of its own keeps it
  if (views.get(figure)?.columns === columns) return;
  views.get(figure)?.result?.finalize();
  views.set(figure, { columns });
  const result = await vegaEmbed(figure.querySelector(".chart"), spec, {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false,
    config: spec.config ? {} : { ...configs.page, legend: { ...configs.page.legend, columns } },
  });
  views.set(figure, { columns, result });
  figure.dataset.drawn = "yes";
}

// Saved pictures are light, and those that fill the page are of one size, whatever the screen.
async function save(figure, format) {
  const spec = { ...specOf(figure), background: "white" };
  if (spec.width === "container") spec.width = 720;
  const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false };
  const { view } = await vegaEmbed(document.createElement("div"), spec, { ...options, config: spec.config ? {} : configs.picture });
  const link = document.createElement("a");
  link.href = await view.toImageURL(format, 2);
  link.download = `${figure.id}.${format}`;
  link.click();
  view.finalize();
}

function sortBy(button) {
  const header = button.closest("th");
  const body = button.closest("table").tBodies[0];
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of button.closest("tr").cells) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const column = Number(button.dataset.column);
  const key = (row) => row.cells[column].dataset.value ?? "";
  const compare = (one, other) => {
    if (key(one) === "" || key(other) === "") return (key(one) === "") - (key(other) === ""); // nothing comes last
    const difference = Number(key(one)) - Number(key(other));
    const order = Number.isNaN(difference) ? key(one).localeCompare(key(other)) : difference;
    return descending ? -order : order;
  };
  body.append(...[...body.rows].sort(compare));
}

async function start() {
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  for (const button of document.querySelectorAll("button[data-column]")) button.onclick = () => sortBy(button);
  for (const button of document.querySelectorAll("button[data-format]")) {
    button.onclick = () => save(button.closest("figure"), button.dataset.format);
  }
  for (const figure of figures) await draw(figure).catch((error) => problem(`${figure.id}: ${error.message}`));
  addEventListener("resize", () => figures.forEach(draw));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView(); // the charts moved it
  document.documentElement.dataset.requests = performance.getEntriesByType("resource").length;
  document.documentElement.dataset.ready = "yes";
}
start();
