"""The map of rooms and files: what each file of the package does, in the first line of its own docstring."""
import ast
from pathlib import Path

HEAD = """# The map of rooms and files

`make docs` writes this page: each line is the first line of the file's docstring. [The
architecture](../ARCHITECTURE.md) says how the rooms work together, and which may import which.
"""
LINE_MAX = 117  # characters


def map_page(package: Path) -> str:
    """Return the page: a heading for each room (a folder with `__init__.py`), below it its files."""
    parts = [HEAD]
    for room in sorted({path.parent for path in package.rglob("*.py")}):
        name = room.relative_to(package.parent).as_posix()
        files = [path for path in sorted(room.glob("*.py")) if path.name != "__init__.py"]
        parts += [f"{'##' if room.parent in (package, package.parent) else '###'} {name}\n",
                  f"{first_line(room / '__init__.py')}\n",
                  *(f"- `{path.name}`: {first_line(path)}" for path in files), *([""] if files else [])]
    return "\n".join(parts)


def first_line(path: Path) -> str:
    """Return the first line of a file's docstring; empty where there is none."""
    said = (ast.get_docstring(ast.parse(path.read_text())) or "") if path.is_file() else ""
    return said.split("\n", 1)[0]


def unreadable(package: Path) -> list[str]:
    """Return what is wrong with first lines: missing, going on in the next line, or too long."""
    wrong = []
    for room in sorted({path.parent for path in package.rglob("*.py")}):
        for path in sorted({room / "__init__.py", *room.glob("*.py")}):
            line = first_line(path)
            if not line.endswith(".") or len(line) > LINE_MAX:
                wrong.append(f"{path.relative_to(package.parent).as_posix()}: its docstring must begin with a sentence "
                             f"on one line, of at most {LINE_MAX} characters, with a full stop, not {line!r}")
    return wrong
