"""The site that `make docs` builds: every page and name is there, and nothing is loaded from elsewhere."""
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import subak

ROOT = Path(__file__).parents[2]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
CHROMIUM_S = 120


class Loaded(HTMLParser):
    """Collects what a page loads by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        address = dict(attributes).get(LOADS.get(tag, ""))
        if address:
            self.found.append(address)


def loaded_by(text):
    reader = Loaded()
    reader.feed(text)
    return reader.found


def elsewhere(addresses):
    return [each for each in addresses if re.match(r"(?:\w+:)?//", each)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once; a warning fails it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder], cwd=ROOT, check=False,
        capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page(site):
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    kept = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages == kept | {"index", "architecture", "changelog", "contributing", "security", "notebook",
                            "decisions/index", "404"}


def test_nothing_is_loaded_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text()
        assert loaded_by(text), page
        assert not elsewhere(loaded_by(text)), page
        assert 'class="mermaid"' not in text, page  # for which the theme's script would load another
    for style in site.rglob("*.css"):
        assert not elsewhere(re.findall(r"""(?:url\(|@import )["']?([^"')]*)""", style.read_text())), style


def test_what_comes_from_elsewhere_is_noticed():
    page = '<script src="https://unpkg.com/x"></script><img src=//a.org/b.png><link href="a.css"><a href="https://b.org">'
    assert elsewhere(loaded_by(page)) == ["https://unpkg.com/x", "//a.org/b.png"]


def test_the_interface_is_on_its_page(site):
    text = (site / "api.html").read_text()
    for name in subak.__all__:
        assert f"subak.{name}" in text, name
    for words in ("Load a workload and its machines, and check both.", "run in a page of numbers",
                  "seconds, shares of one and bytes", "from subak.policy import next_fitting, policy"):
        assert words.replace(" ", "") in re.sub(r"<[^>]*>|\s", "", text), words
    assert "seconds that lost attempts had run, over all tasks" in text  # a comment beside a field


def test_links_lead_to_pages_of_the_site(site):
    text = (site / "index.html").read_text()
    assert 'href="tutorial.html"' in text and 'href="notebook.html"' in text and 'href="decisions/index.html"' in text
    assert "src/subak/data/google2011/README.md" in text
    assert 'href="reference/scenario-file.html"' in (site / "notebook.html").read_text()
    assert 'href="../architecture.html' in "".join(path.read_text() for path in (site / "decisions").glob("*.html"))


def test_the_search_knows_the_reference(site):
    index = json.loads((site / "search" / "search_index.js").read_text().removeprefix("var __index = "))
    assert any("--global-masters" in entry["text"] for entry in index["docs"])
