"""The tests that answer for what changed are those that import it."""
import subprocess
import sys
from pathlib import Path

import pytest

import tests_of

ROOT = Path(__file__).parents[2]


def test_every_room_has_tests():
    assert len(tests_of.rooms()) > 60
    assert [room for room, tests in tests_of.table() if not tests] == []


def test_the_closest_come_first_and_a_module_that_none_imports_has_those_of_its_room(tmp_path, monkeypatch):
    """Of two tests one imports two names of the module; another imports a module of its room, and one none."""
    room = tmp_path / "src" / "subak" / "queues"
    room.mkdir(parents=True)
    for name in ("tree", "lanes", "quiet"):
        (room / f"{name}.py").touch()
    tests = {"test_a": "from subak.queues.tree import Queue\n", "test_b": "from subak.queues.tree import Queue, Tree\n",
             "test_c": "from subak.queues import lanes\n", "test_d": "import os\n"}
    for name, text in tests.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(tests_of, "TESTS", tmp_path)
    monkeypatch.setattr(tests_of, "SOURCES", tmp_path / "src")
    assert [test.stem for test in tests_of.tests_of("subak.queues.tree")] == ["test_b", "test_a"]
    assert [test.stem for test in tests_of.tests_of("subak.queues.lanes")] == ["test_c"]
    assert [test.stem for test in tests_of.tests_of("subak.queues.quiet")] == ["test_b", "test_a", "test_c"]
    assert tests_of.module_of(room / "__init__.py") == tests_of.module_of(room) == "subak.queues"


def test_it_says_what_to_run():
    asked = [sys.executable, ROOT / "tests" / "support" / "tests_of.py", ROOT / "src" / "subak" / "queues" / "tree.py"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "tests/queues/test_queue_tree.py" and all((ROOT / each).is_file() for each in said)


def test_new_files_count_and_no_change_is_an_error(tmp_path, monkeypatch):
    """New files are those that git does not know yet."""
    me = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for asked in (["init", "-q", "-b", "main"], [*me, "commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(["git", *asked], cwd=tmp_path, check=True)
    monkeypatch.setattr(tests_of, "ROOT", tmp_path)
    assert tests_of.changed() == []
    with pytest.raises(SystemExit, match="no file of src differs from main"):
        tests_of.main([])
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "new.py").touch()
    assert tests_of.changed() == [tmp_path / "src" / "new.py"]
