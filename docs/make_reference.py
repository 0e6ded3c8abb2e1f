"""Write docs/reference, map.md, job.schema.json and the keywords of Python from the program itself.

With --check, only say whether they are current.
"""
import sys
from pathlib import Path

from reference_pages.keywords import keywords_module
from reference_pages.pages import reference
from reference_pages.rooms import map_page, unreadable

from subak.live.jobfile.schema import schema_text

HERE = Path(__file__).parent
FOLDER = HERE / "reference"
PACKAGE = HERE.parent / "src" / "subak"
KEYWORDS = PACKAGE / "api" / "keywords.py"


def made() -> dict[Path, str]:
    """Return what each file is to hold."""
    return {**{FOLDER / path: text for path, text in reference().items()}, HERE / "map.md": map_page(PACKAGE),
            HERE / "job.schema.json": schema_text(), KEYWORDS: keywords_module()}


def faults(files: dict[Path, str]) -> list[str]:
    """Return what is wrong with the files that are there: one that is not current, missing, or of no page any more."""
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text() != text]
    left = [path for path in sorted(FOLDER.rglob("*.md")) if path not in files]
    return [*(f"{_place(path)}: not current; run make docs" for path in stale),
            *(f"{_place(path)}: is no page any more; run make docs" for path in left)]


def _place(path: Path) -> Path:
    return path.relative_to(HERE if path.is_relative_to(HERE) else HERE.parent)


def main() -> None:
    """Write all files, or say of all whether they are current."""
    files = made()
    if "--check" in sys.argv[1:]:
        wrong = faults(files) + unreadable(PACKAGE)
        print("\n".join(wrong or ["reference, map.md, job.schema.json, keywords.py: current"]))
        sys.exit(1 if wrong else 0)
    for path in FOLDER.rglob("*.md"):
        if path not in files:
            path.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
