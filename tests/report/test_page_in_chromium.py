"""The report's page in a real browser: every chart drawn, nothing wrong, nothing asked of the network."""
import html
import json
import re
import shutil
import subprocess

import polars as pl
import pytest

from fake_runs import write_comparison, write_run
from subak.measures.run_folders import load_runs
from subak.report.charts.runs import chart_makers
from subak.report.page import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")

QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr",
    "--proxy-server=127.0.0.1:9", "--virtual-time-budget=20000", "--hide-scrollbars", "--dump-dom",
]
DRAWN = 'root?.dataset.ready === "yes"'  # page.js says so; on other pages nothing runs
STILL = 'root && page.readyState === "complete" && page.querySelector("main")'
DARK = "--blink-settings=preferredColorScheme=0"

# A window is never narrower than 500 pixels, a frame is; the frame has its parent's origin, so it can be asked.
FRAME = """<!doctype html><meta charset="utf-8">
<iframe style="width:WIDTHpx;height:900px;border:0" srcdoc="PAGE"></iframe>
<pre id="facts"></pre><script>
const timer = setInterval(async () => {
  const page = document.querySelector("iframe").contentDocument, root = page.documentElement;
  if (!(READY)) return;
  clearInterval(timer);
  const facts = await (QUESTION)(page, page.defaultView);
  facts.problems = root.dataset.problems ?? "";
  document.getElementById("facts").textContent = JSON.stringify(facts);
}, 50);
</script>"""
LOOK = """(page, window) => {
  const root = page.documentElement;
  const style = (selector, name) => window.getComputedStyle(page.querySelector(selector))[name];
  return {
    requests: root.dataset.requests, width: root.clientWidth, scroll_width: root.scrollWidth,
    paper: style("body", "backgroundColor"), line: style("#chart-queue-length .mark-line path", "stroke"),
    right_ends: [...page.querySelectorAll(".chart svg")].map((svg) => svg.getBoundingClientRect().right),
  };
}"""
TABS = """async (page, window) => {
  const tabs = [...page.querySelectorAll("[role=tab]")];
  const seen = () => [...page.querySelectorAll(".group")]
    .filter((group) => window.getComputedStyle(group).visibility === "visible").map((group) => group.id).join();
  const clicked = {};
  for (const tab of tabs) { tab.click(); clicked[tab.hash.slice(1)] = seen(); }
  tabs[0].click();
  tabs[0].dispatchEvent(new window.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  const next = seen(), focused = page.activeElement.hash;
  page.defaultView.location.hash = "#utilisation-cpu"; // what a link to a chart does
  await new Promise((done) => setTimeout(done, 100));
  return { clicked, next, focused, linked: seen() };
}"""
SAVE = """async (page, window) => {
  const saved = [];
  window.HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href.slice(0, 5)]); };
  for (const button of page.querySelectorAll("#chart-queue-length button")) button.click();
  for (let wait = 0; wait < 100 && saved.length < 2; wait++) await new Promise((done) => setTimeout(done, 50));
  return { saved: saved.sort() };
}"""
WHEEL = """async (page, window) => {
  const chart = page.querySelector("#chart-queue-length svg");
  const labels = () => [...chart.querySelectorAll(".role-axis-label text")].map((text) => text.textContent).join();
  const turn = async (ctrlKey) => {
    const before = labels(), box = chart.getBoundingClientRect();
    const place = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    const event = new window.WheelEvent("wheel", { deltaY: -300, ctrlKey, bubbles: true, cancelable: true, ...place });
    chart.querySelector("path.background").dispatchEvent(event); // what a pointer between the lines meets
    await new Promise((done) => setTimeout(done, 500));
    return [event.defaultPrevented, labels() !== before];
  };
  return { plain: await turn(false), ctrl: await turn(true) };
}"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return write_comparison(tmp_path_factory.mktemp("chromium") / "R", tasks=2_000)


@pytest.fixture(scope="module")
def page(comparison):
    return write_report(comparison)


def opened(path, profile, *options):
    """Open a file and return what the document became, and what Chromium wrote of its console."""
    done = subprocess.run([CHROMIUM, *QUIET, f"--user-data-dir={profile}", *options, path.as_uri()],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def asked(question, page, folder, *options, width=900, ready=DRAWN):
    """Open the page in a frame of that width, and return its answer to a question when it is *ready*."""
    frame = FRAME.replace("WIDTH", str(width)).replace("QUESTION", question).replace("READY", ready)
    content = html.escape(page.read_text(encoding="utf-8"))
    (folder / "frame.html").write_text(frame.replace("PAGE", content), encoding="utf-8")
    document, console = opened(folder / "frame.html", folder / "profile", *options)
    assert console == []
    facts = json.loads(html.unescape(re.search(r'<pre id="facts">(.*?)</pre>', document, re.S)[1]))
    assert facts["problems"] == ""
    return facts


def root_of(document):
    return re.search(r"<html[^>]*>", document)[0]


def figures_of(document):
    return {name: body for name, body in re.findall(r"<figure ([^>]*)>(.*?)</figure>", document, re.S)}


def marks_in(figure):
    """Count drawn shapes: a path's outline inside the groups of lines and symbols."""
    drawing = figure[figure.index("<svg"):figure.index("</svg>")]
    groups = re.findall(r'<g class="mark-(?:line|symbol) role-mark[^>]*>(.*?)</g>', drawing, re.S)
    return sum(len(re.findall(r'<path[^>]* d="M', group)) for group in groups)


def assert_well(document, console):
    assert 'data-ready="yes"' in root_of(document), "the page did not come to an end"
    assert "data-problems" not in root_of(document), root_of(document)
    assert console == []
    assert 'data-requests="0"' in root_of(document)


def test_every_chart_is_drawn_without_a_word_or_a_request(page, comparison, tmp_path):
    document, console = opened(page, tmp_path / "profile")
    assert_well(document, console)
    figures = figures_of(document)
    assert len(figures) == len(chart_makers(load_runs(comparison))) > 5
    for attributes, body in figures.items():
        assert 'data-drawn="yes"' in attributes
        assert marks_in(body) >= 4, attributes
        assert "role-axis-title" in body


def test_a_request_would_be_noticed(page, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    asking = '<main><script src="https://example.org/x.js"></script><img src="https://example.org/x.png">'
    spoilt.write_text(page.read_text(encoding="utf-8").replace("<main>", asking), encoding="utf-8")
    document, console = opened(spoilt, tmp_path / "profile")
    assert 'data-ready="yes"' in root_of(document)
    assert "example.org" in " ".join(console)


def test_a_chart_that_fails_would_be_noticed(page, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    content = page.read_text(encoding="utf-8")
    spoilt.write_text(content.replace('"type":"symlog"', '"type":"no such scale"'), encoding="utf-8")
    document, _ = opened(spoilt, tmp_path / "profile")
    assert "data-problems" in root_of(document)


def test_the_page_fits_a_phone(page, tmp_path):
    facts = asked(LOOK, page, tmp_path, width=360)
    assert (facts["requests"], facts["width"]) == ("0", 360)
    assert facts["scroll_width"] <= 360
    assert max(facts["right_ends"]) <= 360


def test_dark_and_light_recolour_page_and_charts(page, tmp_path):
    for name in ("light", "dark"):
        (tmp_path / name).mkdir()
    light, dark = asked(LOOK, page, tmp_path / "light"), asked(LOOK, page, tmp_path / "dark", DARK)
    assert (light["paper"], dark["paper"]) == ("rgb(255, 255, 255)", "rgb(20, 24, 22)")
    assert (light["line"], dark["line"]) == ("rgb(11, 99, 176)", "rgb(76, 155, 232)")


def test_one_group_is_seen_at_a_time(page, tmp_path):
    facts = asked(TABS, page, tmp_path)
    assert facts["clicked"] == {name: name for name in ("overview", "waiting", "machines", "details")}
    assert (facts["next"], facts["focused"], facts["linked"]) == ("waiting", "#waiting", "machines")


def test_charts_can_be_saved_without_the_network(page, tmp_path):
    facts = asked(SAVE, page, tmp_path)
    assert [name for name, _ in facts["saved"]] == ["chart-queue-length.png", "chart-queue-length.svg"]
    assert {kind for _, kind in facts["saved"]} <= {"data:", "blob:"}


def test_the_wheel_scrolls_and_zooms_only_with_ctrl(page, tmp_path):
    facts = asked(WHEEL, page, tmp_path)
    assert (facts["plain"], facts["ctrl"]) == ([False, False], [True, True])


def test_text_from_outside_runs_nothing(tmp_path):
    nasty = '</script><script>document.documentElement.dataset.owned="yes"</script><b>'
    folder = write_run(tmp_path / "run", nasty, tasks=500, workload={"name": nasty, "licence": nasty})
    document, console = opened(write_report(folder), tmp_path / "profile")
    assert_well(document, console)
    assert "data-owned" not in root_of(document)


def test_a_run_in_which_nothing_started_still_draws(tmp_path):
    folder = write_run(tmp_path / "run", "stuck", tasks=500, wait_time={}, slowdown={})
    tasks = pl.read_parquet(folder / "tasks.parquet")
    none = [pl.lit(None, pl.Float64).alias(name) for name in ("start", "wait_time", "finish")]
    tasks.with_columns(none).write_parquet(folder / "tasks.parquet")
    document, console = opened(write_report(folder), tmp_path / "profile")
    assert_well(document, console)
    assert "No task started" in document
