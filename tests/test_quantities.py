"""Amounts and durations as people write them, the same on every command line and in every file."""
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from in_process import subak
from subak.errors import InputError
from subak.quantities import amount_in, duration_text, parse_duration, read_amount, read_number, read_seconds
from subak.resources import Resource, bare_words, largest_words, natural, parse_amounts

GIB_IN_MIB = 1024


@pytest.mark.parametrize(("text", "of", "value"), [
    ("64", "cores", 64), ("500m", "cores", 0.5), ("50%", "cores", 0.5), ("1e3", "cores", 1000),
    ("256Gi", "MiB", 256 * GIB_IN_MIB), ("256GiB", "MiB", 256 * GIB_IN_MIB), ("16G", "MiB", 16e9 / 2**20),
    ("16GB", "MiB", 16e9 / 2**20), ("16G", "GB", 16), ("1Gi", "GB", 1.073741824), ("7", "GB", 7),
    ("2Gi", "bytes", 2**31),
    ("40%", "of the largest machine", 0.4), ("40%", "units", 0.4), ("1048576B", "MiB", 1),
])
def test_an_amount_is_read_in_what_the_resource_is_counted_in(text, of, value):
    assert amount_in(read_amount(text), of, "x") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["much", "", "16Q", "1 2", "-5Gi", "5gi", "1,5", "9" * 99 + "G"])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(ValueError, match=r"^$"):
        read_amount(text)


@pytest.mark.parametrize(("text", "of", "words"), [
    ("4Gi", "cores", "must be a number of cores, or one with m or %, not '4Gi'"),
    ("500m", "MiB", "must be a number of MiB, or one with Mi, Gi, Ti, M, G or T, not '500m'"),
    ("4Gi", "of the largest machine", "or one with %, not '4Gi'"),
])
def test_a_suffix_of_another_resource_is_refused_with_those_that_there_are(text, of, words):
    with pytest.raises(InputError, match=r"^--kind, x: ") as refused:
        amount_in(text, of, "--kind, x")
    assert words in str(refused.value)


def test_capacities_come_in_one_list_or_several():
    machine = {"cpu": 64.0, "memory": "256Gi"}
    assert parse_amounts(["cpu=64,memory=256Gi"]) == parse_amounts(["cpu=64", "memory=256Gi"]) == machine
    resources = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1.0, "MiB"))
    assert natural(machine, resources, "x") == {"cpu": 64.0, "memory": 262_144.0}
    with pytest.raises(InputError, match="cpu comes again"):
        parse_amounts(["cpu=1,cpu=2"])
    with pytest.raises(InputError, match="the fleet has cpu, memory, and no gpu"):
        natural({"gpu": 1.0}, resources, "x")


def test_a_share_may_be_a_percentage():
    assert (read_number("25%"), read_number("0.25")) == (0.25, 0.25)


@pytest.mark.parametrize(("text", "seconds"), [
    ("90", 90), ("90s", 90), ("1h", 3600), ("30min", 1800), ("30m", 1800), ("1h30min", 5400), ("2d", 172_800),
    ("1-02:30:00", 95_400), ("02:30:00", 9000), ("00:00:00.5", 0.5), ("500ms", 0.5), ("inf", float("inf")),
    ("1e3", 1000), (12.5, 12.5),
])
def test_durations(text, seconds):
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1h1h", "30m1h", "1w", "02:60:00", "1-2", "5 m"])
def test_what_is_no_duration_is_refused_with_examples(text):
    with pytest.raises(InputError, match=r"like 90, 90s, 30min, 1h30m, 2d or 1-02:30:00, not"):
        read_seconds(text)
    with pytest.raises(ValueError, match=r"^$"):
        parse_duration(text)


@pytest.fixture
def trace(tmp_path):
    """A workload of 2 tasks, with cores and MiB."""
    table = tmp_path / "jobs.csv"
    table.write_text("submit,seconds,cores,mem\n0,100,2,4G\n10,4000,1,1G\n")
    done = subak("convert", "table", table, "--map", "arrival=submit,run_time=seconds,cpu=cores[cores],memory=mem[MiB]",
                 "--out", tmp_path / "W")
    assert done.returncode == 0, done.stderr
    return tmp_path / "W"


def test_a_run_on_machines_in_words(trace, tmp_path):
    done = subak("simulate", trace, "--machines", "2", "--capacity", "cpu=2000m,memory=4Gi", "--until", "1h",
                 "--out", tmp_path / "R")
    assert done.returncode == 0, done.stderr
    scenario = (tmp_path / "R" / "scenario.toml").read_text()
    assert 'memory = "4Gi"' in scenario
    assert "until = 3600.0" in scenario
    again = subak("simulate", "--scenario", tmp_path / "R" / "scenario.toml", "--out", tmp_path / "S")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(("options", "words"), [
    (("--machines", "2", "--capacity", "cpu=2Gi,memory=4Gi"), "capacity, cpu: must be a number of cores"),
    (("--machines", "2", "--capacity", "cpu=2,memory=4Gi", "--until", "soon"), "a time must be a number of"),
])
def test_mistakes_are_one_line(trace, options, words):
    done = subak("simulate", trace, *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_workload_is_named_as_its_folder_is(trace):
    assert 'name = "W"' in (trace / "workload.toml").read_text()
    assert "Provenance of W" in subak("inspect", trace).stdout


MEMORY = Resource("memory", 1.0, "MiB")


@pytest.mark.parametrize(("resource", "asked", "largest", "said"), [
    (MEMORY, 65_536, 128, "128 MiB (did you mean 128Gi?)"),
    (MEMORY, 128 * GIB_IN_MIB, 128, "128 MiB (did you mean 128Gi?)"),
    (MEMORY, 129 * GIB_IN_MIB, 128, "128 MiB"),
    (MEMORY, 129 * GIB_IN_MIB, 128 * GIB_IN_MIB, "131,072"),  # a machine that is too small, and no unit was meant
    (MEMORY, 128 * GIB_IN_MIB, 122_070, "122,070 MiB (128G counts in powers of 1000; did you mean 128Gi?)"),
    (MEMORY, 129 * GIB_IN_MIB, 122_070, "122,070"),  # nor would 128Gi do
    (MEMORY, 2 * GIB_IN_MIB**2, 2_000_000_000_000 // 2**20,
     "1,907,348 MiB (2T counts in powers of 1000; did you mean 2Ti?)"),
    (MEMORY, 5, 0, "0"), (Resource("memory", 0.5, "GiB"), 512, 8, "4"),
    (Resource("memory", 1.0, "bytes"), 2**30, 4, "4 bytes (did you mean 4Gi?)"),
    (Resource("cpu", 1e-3, "cores"), 64_000, 32_000, "32"),
    (Resource("memory", 1e-8, "of the largest machine"), 2, 1, "1e-08"),
])
def test_a_unit_that_was_probably_meant_is_said(resource, asked, largest, said):
    assert largest_words(resource, asked, largest) == said


def test_a_number_alone_says_in_what_it_is_counted():
    resources = (Resource("cpu", 1.0, "cores"), MEMORY)
    assert bare_words({"cpu": 4.0, "memory": 128.0}, resources) == (
        " (memory 128 MiB: 256Gi and the like name their unit)")
    assert bare_words({"cpu": 4.0, "memory": "128Gi"}, resources) == bare_words({}, resources) == ""


@given(st.floats(0, 1e9))
def test_a_duration_in_words_is_read_back(seconds):
    assert parse_duration(duration_text(seconds)) == pytest.approx(seconds, abs=6e-4)


@pytest.mark.parametrize(("seconds", "said"), [
    (0, "0s"), (0.5, "0.5s"), (59.9999, "1m"), (5400, "1h30m"), (90_061.25, "1d1h1m1.25s"), (math.inf, "inf"),
    (-3, "-3")])
def test_durations_in_words(seconds, said):
    assert duration_text(seconds) == said
