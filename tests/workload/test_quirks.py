"""Two hundred quirks of each format: a row is kept, dropped with a reason, or the file refused with line and value; and
what the quirk did not touch is as it was, to the last unit of work."""
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from fuzz_traces import FORMATS, Format
from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.conversion import Conversion
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

QUIRKS = 200
# A line is a job, or several alike tasks
OF_JOBS = (
    "swf", "frontier", "table", "sacct", "sacct-ends", "helios", "azure", "supercloud", "acme", "pai2020", "fdata",
    "pm100", "in2p3", "dlrm2025")
OF_OTHERS = (  # a line is an event, a machine, a stage, or one of several that make a task
    "tr", "swim", "google-task_events", "google-machine_events", "google-task_constraints", "google-machine_attributes",
    "alibaba", "alibaba-instances", "alibaba-spar", "openb", "openb-nodes", "pai2020-jobs", "google2019",
    "google2019-machines")
TOKENS = (
    "", " ", "Unknown", "None", "NULL", "nan", "-", "0", "-1", "INVALID", "4294967295", "4294967294", "1e13", "x",
    "1.5", "12:00", "1-02:03:04", "500m", "16G", "4Gn", "2024-03-31T02:30:00", "1970-01-01T01:00:00", "'", '"',
    "\u00e9", "\u2028", "9" * 30, "1,5", "1;5", "UNLIMITED", "Partition_Limit", "CANCELLED by 5", "PENDING", "a/b",
    "a|b", "0x10", "+3", " 7 ")
WHOLE = r"none of its|has no|makes .* tasks|a quote|not closed|must be|needs|names of columns|not readable"


def quirked(form: Format, draw: random.Random) -> tuple[str, int]:
    """Return a file with one quirk, and the place of the line that has it."""
    lines = list(form.lines)
    place = draw.randrange(form.head, len(lines))
    fields = lines[place].split(form.separator)
    kind = draw.randrange(8)
    if kind < 4:
        fields[draw.randrange(len(fields))] = draw.choice(TOKENS)
        lines[place] = form.separator.join(fields)
    elif kind == 4:
        lines[place] = form.separator.join(fields[: draw.randrange(1, len(fields))])
    elif kind == 5:
        lines[place] += form.separator + draw.choice(TOKENS)
    elif kind == 6:
        lines[place:place + 1] = [lines[place], "", lines[place]]  # there twice, with an empty line between
    else:
        lines[place] = draw.choice((" {} ", "{}\r", "\ufeff{}" if place == 0 else "{}  ")).format(lines[place])
    return "".join(f"{line}\n" for line in lines), place


def read(folder: Path, form: Format, text: str) -> Conversion:
    path = folder / form.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    for name, content in form.beside.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    maps = form.options[1::2]
    return READERS[form.reader].read(folder / form.source, Options(columns=maps, max_lost=1.0), ignore_progress)


def work(conversion: Conversion) -> Counter:
    """Return how often there is a task of a job, with its run time and its amounts in units."""
    workload = conversion.workload
    jobs = workload.jobs["job"].gather(workload.stages["job"].gather(workload.tasks["stage"]))
    requests = workload.requests[:, workload.tasks["stage"].to_numpy()].T.tolist()
    named = [each.name for each in workload.resources]
    asked = [tuple((name, amount) for name, amount in zip(named, row, strict=True) if amount) for row in requests]
    return Counter(zip(jobs, workload.tasks["run_time"], asked, strict=True))


def refused_well(said: str, form: Format, text: str) -> bool:
    """Return whether a refusal names a line that there is, or says what the whole file lacks."""
    lines = [int(number) for number in re.findall(r"(?:line|row) (\d+)", said)]
    there = all(number <= text.count("\n") for number in lines)
    return there and (bool(lines) or re.search(WHOLE, said) is not None)


def test_it_is_known_of_every_format_whether_a_line_is_a_job():
    assert sorted(FORMATS) == sorted((*OF_JOBS, *OF_OTHERS))


@pytest.mark.parametrize("name", FORMATS)
def test_quirks_are_kept_dropped_or_refused_and_nothing_else_changes(tmp_path, name):
    form = FORMATS[name]
    ends = Counter()
    known: dict[tuple[str, int], str] = {}  # three of ten draws are a file that has been read
    without: dict[int, Counter] = {}  # by the line that was left out: a file has fewer lines than quirks
    for number in range(QUIRKS):
        draw = random.Random(f"{name}/{number}")
        text, place = quirked(form, draw)
        if (text, place) in known:
            ends[known[text, place]] += 1
            continue
        folder = tmp_path / str(number)
        try:
            conversion = read(folder, form, text)
        except InputError as error:
            known[text, place] = "refused"
            ends["refused"] += 1
            assert refused_well(str(error), form, text), f"{name}/{number}: {error}"
            continue
        account = conversion.accounts[0]
        known[text, place] = "dropped" if account.dropped else "kept"
        ends[known[text, place]] += 1
        account.check()
        if name in OF_JOBS:
            if place not in without:
                others = "".join(f"{line}\n" for row, line in enumerate(form.lines) if row != place)
                without[place] = work(read(tmp_path / "others", form, others))
            found = work(conversion)
            assert without[place] <= found, f"{name}/{number}"
            assert account.rows == sum(bool(line.strip()) for line in text.split("\n")) - form.head
            gone = conversion.dropped
            assert len(gone) == sum(account.dropped.values())
            assert set(gone["line"]) <= set(range(place + 1, place + 4))
            for load in conversion.loads:
                hours = sum(count * run_time * dict(asked).get(load.resource, 0) for (_, run_time, asked), count in
                            found.items()) / 3600
                unit = next(each.unit for each in conversion.workload.resources if each.name == load.resource)
                assert load.kept == pytest.approx(hours * unit, rel=1e-3, abs=1e-9)
    assert ends.total() == QUIRKS
    assert ends["refused"] < QUIRKS
    if name in OF_JOBS:
        assert ends["dropped"] > 0 < ends["kept"]
