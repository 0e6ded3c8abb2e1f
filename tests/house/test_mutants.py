"""What tries mutants: the changes it finds, how they are made, and that its table names what is there."""
import ast
import subprocess
import sys

from checkout import file_of
from mutants import (
    EQUIVALENT,
    MODULES,
    ROOMS,
    ROOT,
    carry,
    change_code,
    drawn_of,
    in_process,
    instrumented,
    modules_of,
    mutants,
    path_of,
    places_of,
    said_elsewhere,
    source_of,
)

SOURCE = '''
"""1 + 1 in words is no code."""
LIMIT = 3


class Box:
    def add(self, amount: int = 7) -> bool:
        """Return whether 1 more fits."""
        if amount < self.room and not self.shut:
            self.room -= amount
            return True
        raise ValueError(f"{amount + 1} is too much")


def outer(items):
    def inner(item):
        return min(item, 0)
    note(items, zip(items, items, strict=True))
    return [inner(item) for item in items]
'''


def test_each_change_of_what_functions_do_is_found():
    assert [(each.function, each.line, each.change) for each in mutants(ast.parse(SOURCE))] == [
        ("Box.add", 9, "amount < self.room and (not self.shut)  ->  amount < self.room or not self.shut"),
        ("Box.add", 9, "amount < self.room and (not self.shut)  ->  not (amount < self.room and (not self.shut))"),
        ("Box.add", 9, "amount < self.room  ->  amount <= self.room"),
        ("Box.add", 9, "not self.shut  ->  self.shut"),
        ("Box.add", 10, "self.room -= amount  ->  pass"),
        ("Box.add", 11, "True  ->  False"),
        ("Box.add", 12, "raise ValueError(f'{amount + 1} is too much')  ->  pass"),
        ("outer", 17, "min(item, 0)  ->  max(item, 0)"),
        ("outer", 17, "0  ->  1"),
        ("outer", 17, "0  ->  -1"),
        ("outer", 18, "note(items, zip(items, items, strict=True))  ->  pass"),
    ]


def test_changes_that_are_said_alike_are_told_apart_by_a_number():
    source = "def pair():\n    return both(0, 0)\n"
    places = [("pair", "return both(0, 0)", f"0  ->  {other}", number) for number in (1, 2) for other in (1, -1)]
    assert places_of(list(mutants(ast.parse(source))), source.splitlines()) == places


def test_a_change_is_made_in_the_function_that_others_have_imported(tmp_path, monkeypatch):
    (tmp_path / "changed_here.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    from changed_here import Box

    box = Box()
    for number, expected in ((2, True), (3, False)):
        box.room, box.shut = 7, False
        tree = ast.parse(SOURCE)
        list(mutants(tree))[number].make()
        change_code("changed_here", tree, None, "Box.add")
        try:
            assert box.add(7) is expected
        except ValueError:
            assert not expected
    monkeypatch.delitem(sys.modules, "changed_here")


def test_a_change_is_made_in_what_is_computed_once_for_an_object(tmp_path, monkeypatch):
    """It was made nowhere, and every change of such a function was said to be noticed by no test."""
    source = "import functools\n\n\nclass Box:\n    @functools.cached_property\n    def room(self):\n        return 7\n"
    (tmp_path / "kept_here.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    from kept_here import Box

    tree = ast.parse(source)
    next(iter(mutants(tree))).make()
    change_code("kept_here", tree, None, "Box.room")
    assert Box().room != 7
    monkeypatch.delitem(sys.modules, "kept_here")


def test_each_statement_says_that_it_is_reached(tmp_path, monkeypatch):
    (tmp_path / "told_here.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    from told_here import Box

    import mutants as under_test

    monkeypatch.setattr(under_test, "source_of", lambda _: SOURCE)
    reached, box = set(), Box()
    change_code("told_here", instrumented("told_here"), reached.add)
    box.room, box.shut = 3, False
    assert box.add(2)
    assert {int(step.rpartition(":")[2]) for step in reached} == {8, 9, 10, 11}  # not 12, where it raises
    monkeypatch.delitem(sys.modules, "told_here")


def test_processes_that_tests_start_have_the_change_and_say_what_they_reach(tmp_path, monkeypatch):
    import mutants as under_test

    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "apart_here.py").write_text("def main():\n    return 4\n\n\nprint(main())\n")
    for name in ("SUBAK_CHANGED_MODULES", "SUBAK_REACHED_STATEMENTS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "home"))
    monkeypatch.setattr(under_test, "source_of", lambda _: (tmp_path / "home" / "apart_here.py").read_text())

    def printed():
        return subprocess.run([sys.executable, "-m", "apart_here"], capture_output=True, text=True, check=True).stdout

    assert printed() == "4\n"
    folder = tmp_path / "changed"
    carry(folder, "apart_here", instrumented("apart_here"))
    assert printed() == "4\n"
    assert said_elsewhere(folder) == {"apart_here:2"} and said_elsewhere(folder) == set()
    tree = ast.parse(under_test.source_of(""))
    next(iter(mutants(tree))).make()
    carry(folder, "apart_here", tree)
    assert printed() == "5\n"


def test_a_seed_draws_the_same_of_all_modules_together():
    samples = {module: {f"d {number} {module}.py:{number} f: {number}  ->  pass": (module, number)
                        for number in range(50)} for module in "ab"}
    drawn = drawn_of(samples, 30, 36)
    assert drawn == drawn_of(samples, 30, 36) != drawn_of(samples, 30, 37)
    assert sum(map(len, drawn.values())) == 30
    assert all(drawn[module].items() <= samples[module].items() for module in samples)
    assert drawn_of(samples, 1000, 36) == samples


def test_a_seed_draws_the_same_again_when_code_was_written_before_it():
    def at(lines, more=()):
        names = [*more, *(f"f{number}: {number}  ->  pass" for number in range(90))]
        return {"m": {f"{lines:012x} {place} m.py:{place + lines} {name}": place for place, name in enumerate(names)}}

    before, after = ({key.split(" ", 3)[3] for key in drawn_of(samples, 30, 36)["m"]}
                     for samples in (at(1), at(7, more=["g: 1  ->  2", "g: 3  ->  4"])))
    assert len(before) == len(after) == 30 and len(before & after) >= 28


def test_a_process_of_its_own_answers_or_is_ended():
    def loop():
        while True:
            pass

    assert in_process(lambda: {"a": [1]}, 5) == {"a": [1]}
    assert in_process(lambda: 1 // 0, 5) is None
    assert in_process(loop, 1) is None


def test_the_table_names_what_is_there():
    rooms = [(module, words) for room, (_, words) in ROOMS.items() for module in modules_of(room)]
    assert len(rooms) > 20
    for module, words in (*MODULES.items(), *rooms):
        assert (ROOT / path_of(module)).is_file(), module
        for word in words:
            assert not word.startswith("test_") or file_of(word)


def test_what_nothing_could_notice_is_still_there_to_be_noticed():
    tried = {*MODULES, *(module for room in ROOMS for module in modules_of(room))}
    there = {place for module in tried
             for place in places_of(list(mutants(ast.parse(source_of(module)))), source_of(module).splitlines())}
    assert set(EQUIVALENT) - there - {place[:3] for place in there} == set()
