"""What others published: known answers and what may be passed on stand in tests/data, other traces beside the project.

Those that are needed from there are named by the tests that are skipped without them.
"""
import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[1] / "data"
TRACES = DATA.parents[2] / "shared" / "traces"  # beside the project's folder


def answers(name: str) -> Any:
    """The known answers of one file."""
    return json.loads((DATA / "answers" / f"{name}.json").read_text())


def trace(*parts: str) -> Path:
    """Where a published file or folder is; without it, the test is skipped and says so."""
    found = next((path for path in (DATA.joinpath(*parts), TRACES.joinpath(*parts)) if path.exists()), None)
    if found is None:
        pytest.skip(f"{'/'.join(parts)} may not be passed on, or is large, and is not in {TRACES}")
    return found
