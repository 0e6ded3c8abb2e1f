"""Rows of open tasks: against a plain twin, and over a long time."""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small import fleet_of, plain
from subak.federation.megha.jobs import terms_of
from subak.federation.megha.open_tasks import (
    build_open_tasks,
    close_gang,
    close_task,
    is_still,
    join_gang,
    open_gang,
    open_task,
)
from subak.federation.megha.tables import build_jobs
from subak.federation.messages import NOBODY
from subak.federation.settings import Federation
from subak.placement.claims import TASK_FINISHED
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import next_event

ROOM = 12
NOTHING = np.zeros((1, 1), np.int32), np.zeros(1, np.int32)


def in_gang(tasks, gang):
    row, found = int(tasks.gangs[gang]["first"]), []
    while row != NOBODY:
        found.append(int(tasks.number[row]))
        row = int(tasks.next[row])
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["open", "close", "gang", "join", "end gang"]), st.integers(0, 40)),
                max_size=60))
def test_rows_and_gangs_are_those_of_a_plain_twin(steps):
    tasks, rows, gangs, number = build_open_tasks(ROOM, ROOM, *NOTHING), {}, {}, 0
    most = 0
    for step, choice in steps:
        alone = sorted(task for task, (_, gang) in rows.items() if gang is None)
        if step in {"open", "join"} and len(rows) < ROOM and (step == "open" or gangs):
            row = open_task(tasks, number)
            assert row not in {taken for taken, _ in rows.values()}
            gang = sorted(gangs)[choice % len(gangs)] if step == "join" else None
            if gang is not None:
                join_gang(tasks, row, gangs[gang][0])
                gangs[gang][1].append(number)
            rows[number] = row, gang
            number += 1
        elif step == "close" and alone:
            close_task(tasks, rows.pop(alone[choice % len(alone)])[0])
        elif step == "gang" and len(gangs) < ROOM:
            gangs[number] = open_gang(tasks, number, 3), []
            number += 1
        elif step == "end gang" and gangs:
            row, members = gangs.pop(sorted(gangs)[choice % len(gangs)])
            close_gang(tasks, row)
            for member in members:
                del rows[member]
        most = max(most, len(rows))
        assert tasks.counts.tasks_open == len(rows)
        assert tasks.counts.tasks_ever == most, "a row that is free is used before a new one"
        for task, (row, _) in rows.items():
            assert is_still(tasks, row, task, 0)
            assert not is_still(tasks, row, task, 1)
            assert not is_still(tasks, row, number, 0)
        for gang, (row, members) in gangs.items():
            assert (int(tasks.gangs[row]["number"]), in_gang(tasks, row)) == (gang, members)
    assert not is_still(tasks, NOBODY, NOBODY, 0)
    assert not is_still(tasks, ROOM - 1, 0, 0) or most == ROOM


@pytest.mark.parametrize("retry", [math.inf, 21_600.0])
def test_a_year_needs_the_rows_of_a_day(retry):
    """Three tasks come every day, and run for two hours each: never more than three are open."""
    day = 86_400.0
    workload = plain(*[(number // 3 * day + number % 3, 7200.0, 1) for number in range(3 * 365)])
    year = Federation(global_masters=1, local_masters=1, heartbeat=day / 4, lease=day, retry=retry, timer_slack=0.0)
    opened = open_federated(workload, fleet_of((2,), (2,)), MEGHA, year, 1, 1e9, math.inf, compiled=False)
    while next_event(opened)[0] != LOOP_DONE:
        pass
    assert (opened.simulation.claims.status == TASK_FINISHED).all()
    roles = opened.roles
    assert roles.submitters[0].tasks.counts.tasks_ever == 3
    assert roles.submitters[0].tasks.counts.tasks_open == 0
    ever = [attempts.counts.rows_ever for attempts in (roles.locals[0].rows, roles.workers.rows)]
    assert max(ever) <= 6, "an end is kept until it is noted"


def test_a_row_that_was_never_used_is_nobodys():
    tasks = build_open_tasks(1, 1, *NOTHING)
    assert tasks.number.size == 2, "there are two rows at least"
    row = open_task(tasks, 7)
    assert is_still(tasks, row, 7, 0)
    assert [is_still(tasks, other, 0, 0) for other in (row - 1, row + 1)] == [False, False]


def test_the_row_of_a_gang_that_has_ended_is_the_next_ones():
    tasks = build_open_tasks(ROOM, 2, *NOTHING)
    for number in range(5):
        gang = open_gang(tasks, number, 1)
        join_gang(tasks, open_task(tasks, number), gang)
        close_gang(tasks, gang)
    assert tasks.counts.gangs_ever == 1
    assert tasks.gangs[0]["number"] == NOBODY


def test_terms_are_those_of_each_task_or_of_all():
    jobs = build_jobs(2, 1, 1, 1)
    jobs.terms["retries"] = 3, 4
    assert [terms_of(jobs, place)["retries"] for place in (0, 1)] == [3, 4]
    of_all = jobs._replace(terms=jobs.terms[:1])
    assert [terms_of(of_all, place)["retries"] for place in (0, 1)] == [3, 3]
