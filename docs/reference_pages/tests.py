"""The page that says which tests answer for a room of the package."""
import sys
from pathlib import Path

from reference_pages.tables import table

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
import tests_of

HEAD = """# Which tests to run

For what you changed, `python tests/support/tests_of.py | xargs -r pytest -q` runs the tests that import it;
`python tests/support/tests_of.py FILE` lists those of a file or folder. The six that import most of a room are below,
without `test_` and `.py`.
"""


def tests_page() -> str:
    """Return the table of all rooms."""
    return "\n".join([HEAD, *table(("room of `subak`", "tests"), tests_of.table())])
