"""A constant's name says one thing: no integer constant of one name has two values in two modules.

Otherwise an import from the wrong module compiles, and is wrong in silence.
"""
import ast
import importlib
from collections import defaultdict
from pathlib import Path

import numpy as np

import subak

SOURCE = Path(subak.__file__).parent


def assigned(text):
    """Return the names in capitals that a module assigns to at its outermost level."""
    for node in ast.parse(text).body:
        targets = {ast.Assign: lambda node: node.targets, ast.AnnAssign: lambda node: [node.target]}
        for target in targets.get(type(node), lambda _: [])(node):
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name) and each.id.isupper())


def integers(module, names):
    """Return name and value of those of *names* that are integers, of Python or of NumPy."""
    values = ((name, getattr(module, name, None)) for name in names)
    return {name: int(value) for name, value in values
            if isinstance(value, int | np.integer) and not isinstance(value, bool)}


def homonyms(constants):
    """Return the modules of each name that has several values; *constants* is {module: {name: value}}."""
    found = defaultdict(lambda: defaultdict(set))
    for module, values in constants.items():
        for name, value in values.items():
            found[name][value].add(module)
    return {name: set().union(*values.values()) for name, values in found.items() if len(values) > 1}


def test_no_integer_constant_has_one_name_and_two_values():
    constants = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "__main__.py":
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            constants[name] = integers(importlib.import_module(f"subak.{name}"), assigned(path.read_text()))
    assert sum(map(len, constants.values())) > 300, "constants are looked for where there are none"
    assert homonyms(constants) == {}


def test_homonyms_are_noticed():
    module = type("module", (), {"A": 1, "B": np.uint64(2), "C": "text", "D": True, "E": 5})
    names = list(assigned("A, B = range(2)\n(C): str = 'text'\nD = True\nlower = 3\ndef f():\n    E = 5\n"))
    assert names == ["A", "B", "C", "D"]
    assert integers(module, names) == {"A": 1, "B": 2}
    assert homonyms({"one": {"A": 1, "B": 2}, "two": {"A": 3, "B": 2}, "three": {"A": 1}}) == {
        "A": {"one", "two", "three"}}
