"""Counts of attempts stop at their largest number, in every table that keeps them, and fit the limits they meet."""
import numpy as np
import pytest

from subak.federation.counts import COMPARED, COMPARED_MAX, TOLD, TOLD_MAX, compared, told
from subak.federation.megha.attempts import ROW
from subak.federation.megha.global_master.handlers import end, on_refused
from subak.federation.megha.global_master.losses import end_attempt
from subak.federation.megha.global_master.requests import request_launch
from subak.federation.megha.global_master.state import PHASE_FLYING, PHASE_RUNNING, TASK
from subak.federation.megha.jobs import ENDING, TERMS
from subak.federation.megha.ledger import ENTRY
from subak.federation.megha.open_tasks import OPEN_TASK
from subak.federation.megha.submitter import note_attempts
from subak.federation.messages import HAS_FAILED, LAUNCH, MESSAGE, NOBODY, NOT_FREE, PREEMPTED
from subak.live.jobfile.schema import job_schema
from subak.live.role.global_master.book import ON_DISK
from test_losses import NUMBERED, message, sent

TABLES = {"MESSAGE": MESSAGE, "ENDING": ENDING, "TASK": TASK, "ON_DISK": ON_DISK, "ROW": ROW, "ENTRY": ENTRY}
KEPT = {"failed": COMPARED, "lost": COMPARED, "preempted": TOLD, "refusals": TOLD, "repartitions": TOLD,
        "repartitioned": TOLD}


@pytest.mark.parametrize(("add", "most"), [(compared, COMPARED_MAX), (told, TOLD_MAX)])
def test_a_count_stops_at_its_largest_number(add, most):
    for count in (np.array([most - 1], np.int64), np.array([most - 1], COMPARED)):
        assert add(count[0], 1) == add(count[0], 5) == most
    assert add(np.int16(300), np.bool_(True)) == 301


@pytest.mark.parametrize(("table", "name"), [
    (table, name) for table, dtype in TABLES.items() for name in KEPT if name in dtype.names])
def test_a_count_is_as_wide_wherever_it_is_kept(table, name):
    assert TABLES[table][name] == KEPT[name]


def test_every_table_keeps_what_it_should():
    assert {table: sorted(set(KEPT) & set(dtype.names)) for table, dtype in TABLES.items()} == {
        "MESSAGE": ["lost", "preempted", "refusals", "repartitions"],
        "ENDING": ["failed", "lost", "preempted", "refusals", "repartitions"],
        "TASK": ["lost", "preempted", "refusals", "repartitioned"],
        "ON_DISK": ["failed", "lost", "preempted"], "ROW": ["preempted"], "ENTRY": ["preempted"]}


def test_the_first_count_above_each_limit_fits():
    """A task is given up when it failed, or was lost, more often than it may; its round is how often it failed."""
    stage = job_schema()["$defs"]["StageForm"]["properties"]
    for name in ("retries", "losses_max"):
        most = stage[name]["maximum"]
        assert np.iinfo(TERMS[name]).max >= most
        assert most < COMPARED_MAX
    for dtype in (OPEN_TASK, TASK, MESSAGE, ROW, ENTRY, ON_DISK):
        assert np.iinfo(dtype["round"]).max >= stage["retries"]["maximum"]


def submitter_notes(before, said):
    """What a submitter has of a task, *before* and after it was told of its end, in its second round."""
    class Jobs:
        mask, ending = 0, np.zeros(1, ENDING)
    for name, value in before.items():
        Jobs.ending[0][name] = value
    row = np.zeros(1, MESSAGE)[0]
    row["round"], row["reason"] = 1, HAS_FAILED
    for name, value in said.items():
        row[name] = value
    note_attempts(Jobs, row)
    return Jobs.ending[0]


@pytest.mark.parametrize(("name", "before", "more", "after"), [
    ("failed", 200, None, 201), ("failed", 40_000, None, 40_001), ("failed", COMPARED_MAX, None, COMPARED_MAX),
    ("preempted", 200, 100, 300), ("preempted", TOLD_MAX - 1, 5, TOLD_MAX),
    ("refusals", TOLD_MAX - 1, 5, TOLD_MAX), ("repartitions", TOLD_MAX - 1, 5, TOLD_MAX),
    ("lost", 5, 40_000, 40_000)])
def test_a_submitter_counts_what_a_task_went_through(name, before, more, after):
    assert submitter_notes({name: before}, {} if more is None else {name: more})[name] == after


@pytest.mark.parametrize(("before", "after"), [(200, 201), (40_000, 40_001), (COMPARED_MAX, COMPARED_MAX)])
def test_a_master_counts_what_was_lost(before, after):
    one = sent(PHASE_RUNNING)
    one.task["lost"] = before
    end_attempt(one.master, one.tasks, one.row, True)
    assert one.task["lost"] == after


def test_a_master_counts_preemptions_refusals_and_launches_elsewhere():
    one = sent(PHASE_RUNNING)
    for name in ("preempted", "refusals", "repartitioned"):
        one.task[name] = TOLD_MAX
    end(*one.everything(), one.entry(reason=PREEMPTED), one.out)
    assert one.task["preempted"] == TOLD_MAX
    one.task["phase"] = PHASE_FLYING
    on_refused(*one.everything(), message(one, attempt=NUMBERED, machine=0, reason=NOT_FREE), one.out)
    assert one.task["refusals"] == TOLD_MAX
    one.topology.machine["home"][0] = 7
    request_launch(*one.everything(), one.row, LAUNCH, NOBODY, one.out)
    assert one.task["repartitioned"] == TOLD_MAX
