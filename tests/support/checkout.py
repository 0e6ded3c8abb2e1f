"""Where the tests are, and whether others than root may read the package, as they may not in a home of mode 700."""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def file_of(test: str) -> str:
    """Return the path, from the root, of a file of tests that is known by its name, such as test_line.py."""
    return str(next((ROOT / "tests").rglob(test)).relative_to(ROOT))


def closed_to_others(path: Path) -> Path | None:
    """Return the folder that keeps others out of a path, if one does."""
    return next((each for each in (path, *path.parents) if not each.stat().st_mode & 0o001), None)


def skip_where_closed() -> None:
    """Skip a test that goes on as nobody, where nobody may not read the package, or the interpreter."""
    closed = closed_to_others(ROOT) or closed_to_others(Path(sys.executable).resolve().parent)
    if closed is not None:
        pytest.skip(f"others than root may not enter {closed}, so nothing here can be run as nobody")
