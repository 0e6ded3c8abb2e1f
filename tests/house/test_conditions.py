"""What counts conditions: which it finds, that it counts both ways, and leaves functions alone that were changed."""
import importlib
import sys

import conditions
from conditions import Conditions

SOURCE = """
def chosen(items, most, least=0):
    if not items or (most > 3 and least):
        return [item for item in items if item > least]
    while items and items[-1] > most:
        items.pop()
    return 1 if len(items) > 1 else len(items)
"""


def opened(tmp_path, monkeypatch):
    (tmp_path / "counted_here.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "counted_here", raising=False)
    monkeypatch.setattr(conditions, "source_of", lambda _: SOURCE)
    return importlib.import_module("counted_here"), Conditions(["counted_here"])


def test_each_condition_and_each_operand_is_counted_both_ways(tmp_path, monkeypatch):
    module, counted = opened(tmp_path, monkeypatch)
    with counted:
        assert module.chosen([1, 2, 9], 2) == 1
        assert module.chosen([], 5) == []
    assert module.chosen([4, 1], 5, 3) == [4]  # not counted
    assert {one.words: tuple(counts) for one, counts in zip(counted.found, counted.counts, strict=True)} == {
        "not items": (1, 1), "most > 3": (1, 0), "least": (0, 0), "most > 3 and least": (1, 0),
        "not items or (most > 3 and least)": (1, 1), "item > least": (0, 0), "items": (0, 2),
        "items[-1] > most": (1, 1),
        "items and items[-1] > most": (1, 1), "len(items) > 1": (0, 1)}
    assert ("chosen", "len(items) > 1", False) in counted.unseen()
    assert ("chosen", "not items", True) not in counted.unseen()


def test_a_function_that_was_changed_is_left_alone(tmp_path, monkeypatch):
    module, counted = opened(tmp_path, monkeypatch)
    other = (lambda items, most, least=0: 7).__code__
    module.chosen.__code__ = other
    with counted:
        assert module.chosen([1], 2) == 7
    assert module.chosen.__code__ == other
