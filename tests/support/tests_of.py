"""Which tests to run for what you changed: those that import it, the closest first.

    python tests/support/tests_of.py                              for the files of src that differ from main
    python tests/support/tests_of.py src/subak/queues/tree.py     for some files or folders
    python tests/support/tests_of.py | xargs -r pytest -q         runs them

A module that no test imports is answered for by the tests of its room. `make test` runs everything.
"""
import ast
import functools
import subprocess
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
SOURCES = ROOT / "src"
SHOWN = 6  # of a room's tests, in the table


@functools.cache
def imported(test: Path) -> Counter[str]:
    """Return how many names a test imports from each module of the package."""
    found: Counter[str] = Counter()
    for node in ast.walk(ast.parse(test.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "subak":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found[whole if is_module(whole) else str(node.module)] += 1
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.split(".")[0] == "subak")
    return found


def is_module(name: str) -> bool:
    """Whether a dotted name is that of a module, or of a room, of the package."""
    path = SOURCES / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def module_of(path: Path) -> str:
    """Return the dotted name of a file or folder of src."""
    return ".".join(path.resolve().relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


def tests_of(name: str) -> list[Path]:
    """Return the tests that import a module, or something of a room; if none does, those of the room around it."""
    counts = {test: sum(count for module, count in imported(test).items() if f"{module}.".startswith(f"{name}."))
              for test in sorted(TESTS.rglob("test_*.py"))}
    found = sorted((test for test, count in counts.items() if count), key=lambda test: (-counts[test], test.name))
    return found or (tests_of(name.rpartition(".")[0]) if "." in name else [])


def rooms() -> list[str]:
    """Return the rooms of the package that hold modules, in order."""
    folders = {path.parent for path in (SOURCES / "subak").rglob("*.py") if path.name != "__init__.py"}
    return sorted(module_of(folder) for folder in folders)


def table() -> list[tuple[str, str]]:
    """Return each room with the tests that import most of it, and how many more do."""
    rows = []
    for room in rooms():
        found = [f"`{test.stem.removeprefix('test_')}`" for test in tests_of(room)]
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        rows.append((f"`{room.removeprefix('subak.') if room != 'subak' else room}`", ", ".join(found[:SHOWN]) + more))
    return rows


def changed() -> list[Path]:
    """Return the files of src that differ from main, new ones and those that nobody has committed among them."""
    asked = (["git", "diff", "--name-only", "--diff-filter=d", "main", "--", "src"],
             ["git", "ls-files", "--others", "--exclude-standard", "--", "src"])
    said = "".join(subprocess.run(each, cwd=ROOT, check=True, capture_output=True, text=True).stdout for each in asked)
    return [ROOT / line for line in said.splitlines() if line.endswith(".py")]


def main(arguments: list[str]) -> None:
    """Print the tests of what is named, or has changed, each once."""
    paths = [Path(each) for each in arguments] or changed()
    if not paths:
        sys.exit("tests_of.py: no file of src differs from main; name files, or compare on a branch")
    found = dict.fromkeys(test for path in paths for test in tests_of(module_of(path)))
    print("\n".join(str(test.relative_to(ROOT)) for test in found))


if __name__ == "__main__":
    main(sys.argv[1:])
