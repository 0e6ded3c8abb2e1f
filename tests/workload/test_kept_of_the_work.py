"""Tests what `subak convert` says of the work it kept, for every format."""
import json
import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from fuzz_traces import FORMATS as FORMS
from fuzz_traces import _attempt, _philly, _pod, _workflow
from in_process import subak
from subak.workload.readers import READERS
from subak.workload.readers.conversion import Conversion
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

HOUR_S = 3600


class Trace(NamedTuple):
    """A trace as it should be, and one of which one row's load is lost; None where a format can lose none."""

    source: str
    whole: dict[str, str]
    broken: dict[str, str] | None
    options: tuple[str, ...] = ()


def text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def one_field(form_name: str, place: int, value: str, row: int = -1) -> Trace:
    """Return a form's trace, and the same with another value in one field of its last line, or of *row*."""
    form = FORMS[form_name]
    lines = [line.replace(",0.5,", ",50,") if form_name == "table" else line for line in form.lines]  # whole MiB
    fields = lines[row].split(form.separator)
    fields[place] = value
    broken = [*lines]
    broken[row] = form.separator.join(fields)
    return Trace(form.source, *({**form.beside, form.file: text(each)} for each in (lines, broken)), form.options)


def borg2011(request: str) -> str:
    rows = [f"{time},,1,{task},7,{event},u,1,2,{asked},0,0" for task, asked in ((0, "0.125,0.25"), (1, request))
            for time, event in ((0, 0), (5_000_000, 1), (9_000_000, 4))]
    return text(rows)


def borg2019(request: str) -> str:
    rows = [f"{time},{event},1,200,{task},{asked}" for task, asked in ((0, "0.125,0.25"), (1, request))
            for time, event in ((0, 0), (600_000_000, 3), (900_000_000, 6))]
    return text([FORMS["google2019"].lines[0], *rows])


def rumen(finish: int) -> str:
    """A job of a map, and of two reduces, of which the second ends as said."""
    maps, *reduces = ([{"taskID": f"{place}", "attempts": [_attempt(finishTime=end)]}]
                      for place, end in enumerate((9000, 12000, finish)))
    job = {"jobID": "job_1", "mapTasks": maps, "reduceTasks": [*reduces[0], *reduces[1]], "submitTime": 1000,
           "user": "u", "queue": "q", "priority": "NORMAL", "outcome": "SUCCESS"}
    return json.dumps(job)


def philly(end: str | None) -> str:
    other = _philly(jobid="b")
    no_try = {"start_time": None, "end_time": None, "detail": []}
    other["attempts"] = [{**other["attempts"][0], "end_time": end}, no_try]
    return json.dumps([_philly(), other])


def pods(end: str) -> str:
    return json.dumps({"kind": "List", "items": [_pod(), _pod(
        metadata__name="q", status__containerStatuses=[{"state": {"terminated": {"finishedAt": end}}}])]})


TRACES = {
    "google2011": Trace("T", *({"T/task_events/part-0.csv": borg2011(each)} for each in ("0.125,0.25", ","))),
    "google2019": Trace("T", *({"T/instance_events.csv": borg2019(each)} for each in ("0.125,0.25", ","))),
    "alibaba2018": Trace("T", *({"T/batch_task.csv": text(("M1,2,j_1,1,Terminated,100,110,100,0.5",
                                                           f"M2,2,j_1,1,Terminated,110,120,{cpu},0.5"))}
                                for cpu in (100, ""))),
    "openb": Trace("T", *({"T/openb_pod_list_default.csv": text((
        *FORMS["openb"].lines[:2], f"p1,4000,1024,1,460,T4,LS,Succeeded,20,{deleted},40"))} for deleted in (100, ""))),
    "dlrm2025": one_field("dlrm2025", 1, "x"), "azure": one_field("azure", 8, "x"),
    "helios": one_field("helios", 7, "x"),
    "philly": Trace("cluster_job_log", *({"cluster_job_log": philly(end)} for end in ("2017-10-07 01:13:23", None))),
    "rumen": Trace("x.json", *({"x.json": rumen(end)} for end in (12000, -1))),
    "swim": Trace("x.tsv", {"x.tsv": text(FORMS["swim"].lines)}, None),
    "tr": Trace("x.tr", {"x.tr": text(FORMS["tr"].lines)}, None),
    "swf": one_field("swf", 3, "-1"), "frontier": one_field("frontier", 3, "-1"),
    "sacct": one_field("sacct", 2, "x"), "supercloud": one_field("supercloud", 9, "x"),
    "acme": one_field("acme", 7, "x"), "pai2020": one_field("pai2020", 4, "x", -2), "fdata": one_field("fdata", 2, "x"),
    "pm100": one_field("pm100", 3, "x"), "in2p3": one_field("in2p3", 5, "x"), "table": one_field("table", 1, "x"),
    "pods": Trace("x.json", *({"x.json": pods(end)} for end in ("2024-01-31T13:00:00Z", "2024-01-31T11:00:00Z"))),
    "wfformat": Trace("T", *({"T/a.json": json.dumps(_workflow()), "T/b.json": json.dumps(_workflow(
        run={"runtimeInSeconds": run_time}))} for run_time in (1, None))),
}


def work(conversion: Conversion) -> dict[str, Fraction]:
    """Return the unit seconds of each resource, from the tasks as they are written."""
    workload = conversion.workload
    units = workload.requests[:, workload.tasks["stage"].to_numpy()]
    return {resource.name: sum((Fraction(seconds) * int(amount) for seconds, amount in zip(
        workload.tasks["run_time"], units[row], strict=True)), Fraction(0))
        for row, resource in enumerate(workload.resources)}


def read(name: str, folder: Path, files: dict[str, str]) -> tuple[Conversion, str]:
    """Return what the reader makes of a trace, and the line that the command says of it."""
    trace = TRACES[name]
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    source = folder / trace.source
    lost = ("--max-lost", "1") if "max_lost" in READERS[name].options else ()
    ended = subak("convert", name, source, *trace.options, *lost, "--out", folder / "out")
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("Kept of the work: ")]
    assert len(lines) == 1, ended.stdout
    options = Options(columns=trace.options[1::2], max_lost=1.0)
    return READERS[name].read(source, options, ignore_progress), lines[0]


def test_there_is_a_trace_of_every_format():
    assert set(TRACES) == set(READERS)


@pytest.mark.parametrize("name", TRACES)
def test_the_work_that_is_kept_and_lost_adds_up(tmp_path, name):
    """One row's load is lost: the closing line says so, and with it there is as much work as in the whole trace."""
    trace = TRACES[name]
    whole, said = read(name, tmp_path / "whole", trace.whole)
    total = work(whole)
    assert said == "Kept of the work: " + "; ".join(f"100.00% of {resource}" for resource in total) + "."
    assert any(total.values())
    if trace.broken is None:
        return
    broken, said = read(name, tmp_path / "broken", trace.broken)
    kept = work(broken)
    assert kept.keys() == total.keys()
    assert any(kept[resource] < total[resource] for resource in total)
    units = {each.name: each for each in whole.workload.resources}
    for load in broken.loads:
        of = units[load.resource]
        assert round(load.kept * HOUR_S / of.unit, 3) == kept[load.resource]
        assert round((load.kept + load.lost) * HOUR_S / of.unit, 3) == total[load.resource]
    assert [each.resource for each in broken.loads] == list(total)
    parts = re.sub(r"\. Rows whose work is unknown.*|\.$", "", said.removeprefix("Kept of the work: ")).split("; ")
    for part, (resource, all_of_it) in zip(parts, total.items(), strict=True):
        share = kept[resource] / all_of_it if all_of_it else Fraction(1)
        hours = [float(each * Fraction(units[resource].unit) / HOUR_S) for each in (kept[resource], all_of_it)]
        more = f" ({hours[0]:,.10g} of {hours[1]:,.10g} hours of {units[resource].of})"
        assert part == f"{float(share):.2%} of {resource}{more if share < 1 else ''}"


# What carries load, of the formats in which several rows are one task


def loads(name: str, folder: Path, files: dict[str, str], **options: object) -> dict[str, tuple[float, float, int]]:
    """Return of each resource what is kept and lost (seconds times amount), and the rows whose work is unknown."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    conversion = READERS[name].read(folder / TRACES[name].source, Options(**options), ignore_progress)
    return {each.resource: (round(each.kept * HOUR_S, 6), round(each.lost * HOUR_S, 6), each.guessed_rows)
            for each in conversion.loads}


def events(*rows: tuple[int, int, int]) -> dict[str, str]:
    """task_events of (second, task, event); a task asks for 0.5 and 0.25."""
    return {"T/task_events/part-0.csv": text(f"{second}000000,,1,{task},7,{event},u,1,2,0.5,0.25,0,0"
                                             for second, task, event in rows)}


GOOD = ((1, 0, 0), (10, 0, 1), (110, 0, 4))  # submitted, scheduled, finished: 100 s
AGAIN = ((2, 1, 0), (10, 1, 1), (50, 1, 0), (60, 1, 1), (160, 1, 4))  # submitted again while it runs, without an end
WAITED = ((3, 2, 0), (4, 2, 5), (5, 3, 0))  # killed before it was scheduled; never scheduled
ENDED = ((20, 4, 4),)  # submitted and scheduled before the parts that are there


@pytest.mark.parametrize(("rows", "options", "kept", "lost"), [
    (GOOD, {}, 100, 0),
    ((*GOOD, *WAITED), {}, 100, 0),
    ((*GOOD, *ENDED), {}, 100, 100),
    ((*GOOD, *AGAIN), {}, 200, 100),
    ((*GOOD, *AGAIN), {"resubmissions": "attempt"}, 200, 0),
    ((*GOOD, *AGAIN), {"arrival_end": 2.0}, 100, 0),
    ((*GOOD, (1, 5, 0), (60, 5, 1)), {}, 150, 0),
    ((*GOOD, (1, 5, 0), (60, 5, 1)), {"censored": "forever"}, 150, 0),
    ((*GOOD, (1, 5, 0), (60, 5, 1)), {"censored": "drop"}, 100, 0),
])
def test_an_attempt_that_ran_carries_load_unless_a_later_one_counts(tmp_path, rows, options, kept, lost):
    told = loads("google2011", tmp_path, events(*rows), **options)
    unknown = lost // 100
    assert told == {"cpu": (kept / 2, lost / 2, unknown), "memory": (kept / 4, lost / 4, unknown)}


def test_a_task_of_alibaba_counts_with_its_instances_and_a_lost_one_with_its_row(tmp_path):
    tasks = ("M1,3,j_1,1,Terminated,100,110,200,0.5", "M2,2,j_1,1,Terminated,110,130,,0.5",
             "M3,2,j_1,1,Terminated,110,100,100,0.5", "M4,2,j_1,1,Waiting,0,0,100,0.5",
             "M1,3,j_1,1,Failed,100,110,200,0.5", "M1,1,j_2,1,Terminated,500,600,,1")
    instances = ("a,M1,j_1,1,Terminated,100,107,m_7,1,1", "b,M1,j_1,1,Terminated,100,105,m_7,1,1",
                 "b,M1,j_1,1,Failed,100,104,m_7,1,2", "c,M9,j_9,1,Terminated,100,999,m_7,1,1")
    files = {"T/batch_task.csv": text(tasks), "T/batch_instance.csv": text(f"{each},,,," for each in instances)}
    # M1: instances of 7 s, 5 s, and one more of 10 s; M2's memory is known, M3's run time is not
    told = loads("alibaba2018", tmp_path, files, arrival_end=300.0)
    assert told == {"cpu": (44.0, 88.0, 2), "memory": (11.0, 20.0 + 11.0, 1)}


def test_the_tasks_of_a_job_that_came_nobody_knows_when_are_lost_with_their_run_times(tmp_path):
    lost = json.loads(rumen(20000)) | {"jobID": "job_2", "submitTime": -1, "otherTasks": [
        {"taskID": "o", "attempts": [_attempt()]}]}
    lost["mapTasks"].append({"taskID": "never", "attempts": []})
    again = json.loads(rumen(12000))
    files = {"x.json": json.dumps([json.loads(rumen(12000)), lost, again])}
    assert loads("rumen", tmp_path, files) == {"map_slot": (7.0, 7.0, 0), "reduce_slot": (6.0, 14.0, 0)}


def test_a_stage_has_a_mean_of_its_own_for_tasks_whose_times_are_unknown(tmp_path):
    assert loads("rumen", tmp_path, {"x.json": rumen(-1)}) == {"map_slot": (7.0, 0.0, 1), "reduce_slot": (3.0, 3.0, 1)}


def test_the_load_of_modelled_tasks_goes_by_the_slots_they_ask_for(tmp_path):
    files = {"x.tsv": text(("job0\t0\t0\t6e6\t0\t0", "job1\t1\t1\t0\t6e6\t0"))}
    model = {"floor_seconds": 2.0, "block_bytes": 3e6, "reduce_bytes": 2e6, "map_bytes_per_second": 1e6,
             "reduce_bytes_per_second": 1e6}
    # maps: two of 2 + 3 s, one of 2 + 6 s; reduces: three of 2 + 2 s
    assert loads("swim", tmp_path, files, model=model) == {"slot": (30.0, 0.0, 0)}
    assert loads("swim", tmp_path, files, model=model, slots="separate") == {
        "map_slot": (18.0, 0.0, 0), "reduce_slot": (12.0, 0.0, 0)}
