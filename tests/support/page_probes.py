"""Questions to a page in Chromium (`asked` of test_page_in_chromium.py), each a function of a page and its window."""

# Every group of the page, one after the other: how tall the page is, what is wider than its box, what legends and
# labels do. Boxes may differ by a pixel of rounding.
LAYOUT = """async (page, window) => {
  const found = {}, root = page.documentElement;
  const tabs = [...page.querySelectorAll('[role=tab]')];
  const name = (each) => `${each.tagName} ${each.id || each.getAttribute("class")} ${each.textContent.slice(0, 30)}`;
  const near = (one, other, gap) => one.left < other.right + gap && other.left < one.right + gap &&
    one.top < other.bottom - 1 && other.top < one.bottom - 1;
  const wide = (group) => [...group.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth + 1);
  const outside = (group) => [...group.querySelectorAll("section, p, dl, dd, table, figure, svg, h2, h3, summary")]
    .filter((each) => each.getBoundingClientRect().right > root.clientWidth + 1);
  for (const tab of tabs) {
    tab.click();
    await new Promise((done) => window.setTimeout(done, 60));
    const group = page.querySelector(tab.hash);
    const boxes = wide(group), right = outside(group);
    const legends = [], touching = [], cut = [];
    let labels = 0, entries = 0;
    for (const figure of group.querySelectorAll("figure")) {
      const frame = figure.querySelector("svg").getBoundingClientRect();
      for (const entry of figure.querySelectorAll(".role-legend-label text, .role-legend-symbol path")) {
        const box = entry.getBoundingClientRect();
        entries++;
        if (box.right > frame.right + 1 || box.left < frame.left - 1) legends.push(`${figure.id}: ${name(entry)}`);
      }
      const texts = [...figure.querySelectorAll("svg text")].filter((text) =>
        text.textContent && window.getComputedStyle(text).opacity !== "0" && text.getAttribute("opacity") !== "0");
      labels += texts.length;
      cut.push(...texts.filter((text) => {
        const box = text.getBoundingClientRect();
        return box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 1;
      }).map((text) => `${figure.id}: ${text.textContent}`));
      texts.forEach((text, number) => texts.slice(number + 1).forEach((other) => {
        if (near(text.getBoundingClientRect(), other.getBoundingClientRect(), 2)) {
          touching.push(`${figure.id}: ${text.textContent} | ${other.textContent}`);
        }
      }));
    }
    const height = root.scrollHeight, width = root.scrollWidth;
    for (const details of group.querySelectorAll("details")) details.open = true;
    await new Promise((done) => window.setTimeout(done, 60));
    const opened = [...wide(group), ...outside(group)].map(name), taller = root.scrollHeight - height;
    for (const details of group.querySelectorAll("details")) details.open = false;
    await new Promise((done) => window.setTimeout(done, 60));
    found[tab.hash.slice(1)] = { height, width, wide: boxes.map(name), right: right.map(name), opened, taller,
                                 legends, touching, cut, labels, entries };
  }
  return { groups: found, width: root.clientWidth };
}"""

# A grid of places over every panel of every chart of lines: how many are answered with a value of each scheduler.
TOOLTIPS = """async (page, window) => {
  const probes = {}, ACROSS = 12, DOWN = 5;
  const reader = page.getElementById("reader");
  for (const tab of page.querySelectorAll('[role=tab]')) {
    tab.click();
    for (const figure of page.querySelectorAll(`${tab.hash} figure`)) {
      const meta = JSON.parse(figure.querySelector("script").textContent).usermeta;
      if (!meta?.reading) continue;
      figure.scrollIntoView({ behavior: "instant" });
      const schedulers = [...new Set(meta.lines.map((line) => line.scheduler))];
      const area = meta.facets ? "svg .cell > g > path.background" : "svg .root > g > path.background";
      const panels = [...figure.querySelectorAll(area)].map((path) => path.getBoundingClientRect());
      let hits = 0, asked = 0;
      for (const box of panels) for (let i = 0; i < ACROSS; i++) for (let j = 0; j < DOWN; j++) {
        const x = box.left + box.width * (i + 0.5) / ACROSS, y = box.top + box.height * (j + 0.5) / DOWN;
        const target = page.elementFromPoint(x, y);
        reader.hidden = true;
        const finger = j % 2, kind = finger ? "pointerdown" : "pointermove", pointerType = finger ? "touch" : "mouse";
        const event = { clientX: x, clientY: y, bubbles: true, buttons: finger, pointerType };
        target?.dispatchEvent(new window.PointerEvent(kind, event));
        const names = [...reader.querySelectorAll("tbody th")].map((cell) => cell.textContent);
        const values = [...reader.querySelectorAll("tbody td")].map((cell) => cell.textContent);
        asked++;
        if (reader.offsetWidth > 0 && names.join() === schedulers.join() && values.every((text) => text) &&
            values.some((text) => text !== "\\u2013")) hits++;
      }
      probes[figure.id] = [hits, asked];
    }
  }
  return { probes };
}"""

# How values read that are read off a chart, of every kind, in the words of page.js.
WORDS = """async (page, window) => {
  SOURCE
  const said = {};
  for (const kind of ["number", "ratio", "share", "seconds"]) said[kind] = VALUES.map((value) => words[kind](value));
  return { said };
}"""

# A page of a reproduction, on which nothing runs: what is wider than its box, where verdicts stand, how often a title
# is seen, and in which units charts and tables are.
REPRODUCTION = """async (page, window) => {
  const root = page.documentElement;
  const name = (each) => `${each.tagName} ${each.getAttribute("class")} ${each.textContent.slice(0, 40)}`;
  const boxes = "header, main, section, p, li, table, tr, th, td, figure, svg, h1, h2, .scroll";
  const all = [...page.querySelectorAll(boxes)].filter((each) => each.getBoundingClientRect().width > 0);
  const narrow = (cell) => cell.getBoundingClientRect().width < 60;
  const outside = all.filter((each) => each.getBoundingClientRect().right > root.clientWidth + 1);
  const wide = all.filter((each) => each.matches(".scroll, figure, section, main") &&
    each.scrollWidth > each.clientWidth + 1);
  const cut = [...page.querySelectorAll("td, tbody th")].filter((each) => each.scrollWidth > each.clientWidth + 1);
  const shown = page.body.innerText;
  const sections = [...page.querySelectorAll("main > section")].map((section) => {
    const title = section.querySelector("h2").textContent;
    return { title, times: shown.split(title).length - 1,
      first: section.querySelector("h2").nextElementSibling?.getAttribute("aria-label") ?? "",
      heads: [...section.querySelectorAll("table")].map((table) => table.querySelector("thead th").textContent),
      narrow: [...section.querySelectorAll("tbody td")].filter(narrow).length,
      drawn: [...section.querySelectorAll("svg .role-axis-title text, svg text")].map((text) => text.textContent),
      columns: [...section.querySelectorAll("table:last-of-type thead th")].map((cell) => cell.textContent) };
  });
  const header = [...page.querySelector("header").children].map((each) => each.tagName);
  return { width: root.clientWidth, scroll: root.scrollWidth, outside: outside.map(name), wide: wide.map(name),
           cut: cut.map(name), sections, header, verdict: page.querySelector("header .verdict").textContent };
}"""
