"""What MkDocs asks while it builds the site: pages that are kept elsewhere, and links between them all."""
import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path
from reference_pages.pages import titles

ROOT = Path(__file__).parent.parent
DOCS, DECISIONS = "docs/", "decisions/index.md"
OUTSIDE = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md",
           "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md",
           "docs/tutorial.ipynb": "notebook.md", "docs/decisions": DECISIONS}
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """List the pages of the reference, and the decisions."""
    places = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    places.insert(0, {"All pages": "reference/index.md"})
    places += [{group: [{title: f"reference/{path}"} for title, path in pages]} for group, pages in titles()]
    listed = [{"All": DECISIONS}, *({title(path): f"decisions/{path.name}"} for path in decisions())]
    config.nav.append({"Decisions": listed})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in this folder, or no Markdown."""
    pages = {name: (ROOT / source).read_text() for source, name in OUTSIDE.items() if source.endswith(".md")}
    pages["notebook.md"] = notebook_text(ROOT / "docs/tutorial.ipynb")
    pages[DECISIONS] = "\n".join(["# Decisions\n", *(f"- [{title(path)}]({path.name})" for path in decisions()), ""])
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links lead within the site; where they lead to a file of the sources, say its name."""
    name = page.file.src_uri
    source = next((source for source, other in OUTSIDE.items() if other == name), DOCS + name)
    if name == DECISIONS:
        return markdown

    def linked(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        place = OUTSIDE.get(target) or target.removeprefix(DOCS)
        if place == target:
            return f"{found[1]} (`{target}`)"
        return f"[{found[1]}]({posixpath.relpath(place, posixpath.dirname(name) or '.')}{found[3] or ''})"

    return LINK.sub(linked, markdown)


def decisions() -> list[Path]:
    """Return the files of decisions, in the order of their numbers."""
    return sorted((ROOT / "docs/decisions").glob("*.md"))


def title(path: Path) -> str:
    """Return a page's first heading."""
    return path.read_text().split("\n", 1)[0].removeprefix("# ")


def notebook_text(path: Path) -> str:
    """Return a notebook as Markdown: its text, and its cells as blocks of code."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) if cell["cell_type"] == "markdown"
                       else f"```python\n{''.join(cell['source'])}\n```" for cell in cells) + "\n"
