"""No module imports another that imports it, however far around: not in a function, nor for a type checker alone."""
import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"


def imports(source):
    """Return the modules that each module of a tree names in an import, wherever that is in its file."""
    paths = {".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
             for path in source.rglob("*.py")}
    return {name: {found for asked in named(path) if (found := known(asked, paths)) not in (None, name)}
            for name, path in paths.items()}


def named(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not followed here"
            yield from (f"{node.module}.{each.name}" for each in node.names)


def known(asked, paths):
    """Return the module that an import loads: that of the name, else the one that holds the name."""
    return next((name for name in (asked, asked.rpartition(".")[0]) if name in paths), None)


def circle_of(source):
    """Return the modules of a circle, each imported by the one before it; none where there is no circle."""
    try:
        TopologicalSorter(imports(source)).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def test_there_is_no_circle():
    assert circle_of(SRC) == []


def test_every_module_was_looked_at():
    found = imports(SRC)
    assert len(found) == len(list(SRC.rglob("*.py")))
    assert {"subak.errors", "subak.simulator.engine.run_loop"} <= found["subak.api.simulation"]
    assert "subak.live.role.global_master.base" in found["subak.live.role.removal"]


@pytest.mark.parametrize("closing", [
    "from p.one import thing\n", "import p.one\n", "from p import one\n", "def f():\n    from p.one import thing\n",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.one import thing\n"])
def test_an_import_that_closes_a_circle_is_noticed(tmp_path, closing):
    room = tmp_path / "p"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "one.py").write_text("from p import two\nthing = 1\n")
    (room / "two.py").write_text("from p.three import other\n")
    (room / "three.py").write_text("other = 1\n")
    assert circle_of(tmp_path) == []
    (room / "three.py").write_text(f"{closing}other = 1\n")
    assert sorted(set(circle_of(tmp_path))) == ["p.one", "p.three", "p.two"]
