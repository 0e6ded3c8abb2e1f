"""Small compressed files that hold much more than they seem to: memory stays bounded, and lines keep their numbers."""
import gzip
import importlib
import pkgutil
import subprocess
import sys

import pytest

from subak.errors import InputError
from subak.workload import readers
from subak.workload.readers import READERS
from subak.workload.readers.files import json_text
from subak.workload.readers.files.json_text import json_values
from subak.workload.readers.files.stream import BLOCK_SIZE, LINE_BYTES_MAX, blocks, fields, ignore_progress
from subak.workload.readers.options import Options

JOB = "1 0 3 4 1 -1 -1 1 4 -1 1 3 -1 -1 1 -1 -1 -1"


def packed(path, *repeated):
    """Write a gz file of (text, how often)."""
    with gzip.open(path, "wb", compresslevel=6) as file:
        for text, times in repeated:
            file.write(text * times)
    return path


def read(name, path, **options):
    return READERS[name].read(path, Options(**options), ignore_progress)


def test_every_reader_is_in_the_table():
    modules = [importlib.import_module(each.name)
               for each in pkgutil.walk_packages(readers.__path__, f"{readers.__name__}.")]
    assert {id(module.READER) for module in modules if hasattr(module, "READER")} == set(map(id, READERS.values()))


@pytest.mark.parametrize("unit", [b"\0", b"1 "])
def test_a_line_without_end_is_refused_before_it_is_unpacked(tmp_path, unit):
    path = packed(tmp_path / "x.gz", (b"1 1 1 1\n", 1), (unit, 4 * LINE_BYTES_MAX // len(unit)))
    with pytest.raises(InputError, match="line 2: must be at most 32 MiB long"):
        list(blocks(path))
    read_bytes = []
    with pytest.raises(InputError, match="line 2: must be at most 32 MiB long"):
        READERS["tr"].read(path, Options(), read_bytes.append)
    assert sum(read_bytes) < path.stat().st_size / 2


def test_a_long_line_is_read(tmp_path):
    """A job of a million tasks, over several blocks."""
    count = 2 * BLOCK_SIZE // 20
    path = packed(tmp_path / "a.gz", (b"0 %d 1.5 " % count, 1), (b"1.00000000000000001 ", count), (b"\n1 1 2 2\n", 1))
    assert sum(block.text.count(b"\n") for block in blocks(path)) == 2
    assert read("tr", path).workload.tasks["run_time"].to_list() == [1.0] * count + [2.0]


def test_memory_is_a_few_blocks(tmp_path):
    """A file of 200 kB that unpacks to 200 MB took 2.1 GB."""
    packed(tmp_path / "a.tr.gz", (b"\0", 200_000_000))
    code = ("import resource, sys; from subak.workload.readers import READERS; "
            "from subak.workload.readers.options import Options; from pathlib import Path\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "try: READERS['tr'].read(Path(sys.argv[1]), Options(), lambda read: None)\n"
            "except Exception as error: print(type(error).__name__)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)")
    command = [sys.executable, "-c", code, tmp_path / "a.tr.gz"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    error, kilobytes = done.stdout.split()
    assert error == "InputError"
    assert int(kilobytes) < 8 * LINE_BYTES_MAX / 1024


# Only a line feed ends a line


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(tmp_path, character):
    (tmp_path / "a.swf").write_text(f"; Note: a{character}b\n{JOB}\nx {JOB}\n", encoding="utf-8", newline="")
    with pytest.raises(InputError, match=r"a.swf, line 3: number must be a finite number, not x"):
        read("swf", tmp_path / "a.swf", max_lost=0.0)


def test_columns_are_counted_in_the_right_line(tmp_path):
    (tmp_path / "batch_task.csv").write_text("a,1,j,1,Terminated,1,2,100,0.5\rx\nb,1\n", encoding="utf-8", newline="")
    with pytest.raises(InputError, match="line 2: needs 9 columns, has 2"):
        read("alibaba2018", tmp_path / "batch_task.csv")


def test_empty_lines_count(tmp_path):
    (tmp_path / "a.tr").write_text("\n\n \t \r\n1 1 1 1\n\n2 1 1 1", encoding="utf-8", newline="")
    lines = [row for block in blocks(tmp_path / "a.tr", size=4) for row in fields(block).rows()]
    assert lines == [(4, ["1", "1", "1", "1"]), (6, ["2", "1", "1", "1"])]


# JSON


def values(tmp_path, text, known=frozenset({"a", "b"})):
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    return json_values(tmp_path / "x.json", ignore_progress, known)


def test_values_stand_one_after_another_or_in_lists(tmp_path):
    text = ' {"a": 1}\n[{"a": 2, "c": [{"b": 3}, 4]} , 5,[6,[7]]] [] [ ]{"b": {"a": 8, "d": 9}} 10'
    assert list(values(tmp_path, text)) == [{"a": 1}, {"a": 2}, 5, [6, [7]], {"b": {"a": 8}}, 10]


def test_a_list_is_read_one_value_at_a_time(tmp_path):
    found = values(tmp_path, '[{"a": 1},\n{"a": 2},\n oops')
    assert [next(found), next(found)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(InputError, match="line 3: is no JSON, or is cut off"):
        next(found)


@pytest.mark.parametrize("text", ["[", "[1", "[1,", "[1,]", "[1 2]", "[,1]", "]", "[1]]", "[1}", "{"])
def test_what_is_no_list_is_named(tmp_path, text):
    with pytest.raises(InputError, match=r"x.json, line 2: is no JSON, or is cut off"):
        list(values(tmp_path, f"\n{text}"))


def test_one_value_has_so_many_objects_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "OBJECTS_MAX", 10)
    fits = "[" + ",".join(["{}"] * 8) + "]"
    assert len(list(values(tmp_path, f'{{"c": {fits}}}\n' * 3))) == 3
    with pytest.raises(InputError, match="line 2: JSON that cannot be read: more than 10 objects in one value"):
        list(values(tmp_path, f'{{"c": {fits}}}\n{{"c": [{fits}, {{}}, {{}}]}}'))


@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.0), (5.0, 5.0), (5.0, 4.0), (-1.0, 4.0), (float("nan"), 4.0)])
def test_a_slice_has_a_length(begin, end):
    with pytest.raises(InputError, match="slice: needs 0 <= --from < --until"):
        Options(arrival_min=begin, arrival_end=end)
