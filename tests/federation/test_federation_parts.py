"""The small parts that roles are made of, each by itself: windows, the ledger, lists of attempts; and the delays."""
import dataclasses
import math

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from small import fleet_of, plain
from subak.federation.megha.attempts import (
    ANY_ATTEMPT,
    add_attempt,
    build_attempts,
    drop_attempt,
    find_attempt,
    find_by_handle,
    has_room,
)
from subak.federation.megha.ledger import (
    ENTRY,
    ENTRY_GAVE,
    ENTRY_TOOK,
    behind,
    bring,
    build_ledger,
    carried,
    enter,
    entries_between,
    may_write_over_more,
    reaches_back_to,
    still_holds,
)
from subak.federation.megha.local_master.state import ASKER
from subak.federation.megha.replay_window import WINDOW, is_new
from subak.federation.messages import (
    ENDED,
    NO_REASON,
    NOBODY,
    ROLES,
    build_outbox,
    is_filling,
    post,
)
from subak.federation.settings import Federation
from subak.kernels.kernel import FLAGS
from subak.simulator.engine.state import LOOP_BROKEN
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.network import LAWS, build_network, drawn_delay
from subak.simulator.federated.simulate import broken_rule, open_federated

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


# -- windows -----------------------------------------------------------------------------------------------------------


def empty_window():
    window = np.zeros(1, ASKER)[0]
    window["top"] = NOBODY
    return window


@quick
@given(steps=st.lists(st.sampled_from([-WINDOW - 1, -WINDOW, 1 - WINDOW, -2, -1, 0, 1, 2, 3, WINDOW - 1, WINDOW,
                                       WINDOW + 1, 200]), max_size=60))
def test_a_number_is_new_once_and_never_when_it_is_a_window_behind(steps):
    """Each number is so far from the highest before it; the plain twin is a set."""
    window, seen, top = empty_window(), set(), -1
    for step in steps:
        number = max(top + step, 0)
        assert is_new(window, number) == (number not in seen and number > top - WINDOW)
        seen.add(number)
        top = max(top, number)
    assert window["top"] == top


compiled = numba.njit(**FLAGS)(lambda windows, number: is_new(windows[0], number))  # where a shift by 64 is none


@pytest.mark.parametrize("new", [lambda windows, number: is_new(windows[0], number), compiled])
def test_a_window_by_hand(new):
    windows = empty_window().reshape(1)
    assert [bool(new(windows, number)) for number in (0, 0, 63, 0, 1, 64, 0, 1, 2, 128, 64, 65, 128)] == [
        True, False, True, False, True, True, False, False, True, True, False, True, False]


# -- the ledger --------------------------------------------------------------------------------------------------------


def ledger_of(places, entries):
    ledger = build_ledger(places, places)
    for number in range(entries):
        entry = enter(ledger, ENTRY_TOOK, number, 10 * number, 100 * number)
        for name in entry.dtype.names[1:]:
            if name not in ("machine", "task", "attempt"):
                entry[name] = 7
    return ledger


def of_epoch(epoch):
    ledger = build_ledger(4, 4)
    ledger.counts.epoch = epoch
    return ledger


def test_an_entry_is_at_the_place_of_its_version_and_nothing_of_the_last_one_there_is_left():
    ledger = ledger_of(8, 11)
    entry = enter(ledger, ENTRY_GAVE, 5, 6, 7)
    assert entry == ledger.entry[11 % 8]
    assert dict(zip(entry.dtype.names, entry.tolist(), strict=True)) == {
        "kind": ENTRY_GAVE, "machine": 5, "task": 6, "attempt": 7, "reason": NO_REASON, "held": 0, "in_gang": 0,
        "preempted": 0, "owner": NOBODY, "row": NOBODY, "shape": NOBODY, "queue": NOBODY, "heir": NOBODY, "round": 0,
        "code": 0}
    assert ledger.counts.version == 12
    assert ledger.entry["machine"][10 % 8] == 10


@pytest.mark.parametrize(("places", "entries"), [(8, 0), (8, 4), (8, 5), (8, 20), (9, 20)])
def test_half_of_the_ring_is_kept_for_what_is_on_its_way(places, entries):
    """A range that is sent may be read when as many entries more have been written as it has places left over."""
    ledger = ledger_of(places, entries)
    told = [version for version in range(-1, entries + 1) if reaches_back_to(ledger, version)]
    assert told == list(range(max(entries - places // 2, 0), entries + 1))
    for _ in range(places // 2):
        enter(ledger, ENTRY_TOOK, 0, 0, 0)
    assert all(still_holds(ledger, 0, version) for version in told)


def test_a_ring_goes_over_more_places_when_what_it_would_write_over_is_needed():
    """Of 16 places 4 are in use: entries 4 and 5 go over 0 and 1; entry 6 finds 2 to 5 needed, so 4 and 5 move."""
    ledger = build_ledger(16, 4)
    for number in range(4):
        enter(ledger, ENTRY_TOOK, number, 0, 0)
    ledger.counts.needed_from = 2
    for number in (4, 5):
        enter(ledger, ENTRY_TOOK, number, 0, 0)
    assert (ledger.entry["machine"].tolist(), ledger.counts.ring) == ([4, 5, 2, 3] + 12 * [0], 4)
    assert [reaches_back_to(ledger, version) for version in (1, 2)] == [False, True]
    assert [still_holds(ledger, 0, version) for version in (1, 2)] == [False, True]
    enter(ledger, ENTRY_TOOK, 6, 0, 0)
    assert (ledger.entry["machine"].tolist(), ledger.counts.ring) == ([4, 5, 2, 3, 4, 5, 6] + 9 * [0], 8)
    assert entries_between(ledger, 2, 7)["machine"].tolist() == [2, 3, 4, 5, 6]
    assert [behind(ledger, place) for place in (0, 3, 7)] == [1, 4, 0]


def test_a_ring_over_all_places_goes_over_what_is_needed_too():
    ledger = build_ledger(8, 2)
    for number in range(20):
        enter(ledger, ENTRY_TOOK, number, 0, 0)
    assert (entries_between(ledger, 12, 20)["machine"].tolist(), ledger.counts.ring) == ([*range(12, 20)], 8)
    assert not may_write_over_more(ledger)


@pytest.mark.parametrize("places", [1, 4, 7])
def test_place_after_place_a_ledger_is_gone_through_as_its_entries_were_written(places):
    ledger = ledger_of(places, 0)
    place = 0
    for version in range(3 * places):
        assert place == version % places
        place = behind(ledger, place)


def test_of_a_ledger_that_goes_back_less_far_nothing_is_carried():
    ledger = of_epoch(2)
    for task in range(6):
        enter(ledger, ENTRY_TOOK, 0, task, 0)
    assert carried(ledger, 2, 2, 6)["task"].tolist() == [2, 3, 4, 5]
    assert carried(ledger, 2, 1, 6).size == carried(ledger, 1, 2, 6).size == 0


def test_of_a_new_epoch_that_has_brought_nothing_nothing_is_there():
    copy = of_epoch(2)
    copy.counts.version = 3
    bring(copy, 3, 0, np.zeros(0, ENTRY))
    assert (copy.counts.epoch, copy.counts.version) == (3, 0)


def test_what_a_message_brings_is_written_at_its_places_of_the_ring():
    """A ring of four. Entries 0 to 2 come, then 4 and 5, which are at places 0 and 1; nothing of an older epoch is."""
    def entries(*tasks):
        found = np.zeros(len(tasks), ENTRY)
        found["task"] = tasks
        return found

    copy = of_epoch(2)
    bring(copy, 2, 0, entries(10, 11, 12))
    bring(copy, 2, 4, entries(14, 15))
    bring(copy, 1, 1, entries(99, 99))
    assert (copy.entry["task"].tolist(), copy.counts.version) == ([14, 15, 12, 0], 6)
    bring(copy, 2, 1, entries(21, 22, 23))  # late: entry 1 is further back than the ring goes
    assert (copy.entry["task"].tolist(), copy.counts.version) == ([14, 15, 22, 23], 6)


def test_an_entry_is_held_until_it_is_overwritten():
    ledger = ledger_of(8, 20)
    assert [version for version in range(-1, 21) if still_holds(ledger, 0, version)] == list(range(12, 21))
    assert [version for version in range(-1, 4) if still_holds(ledger_of(8, 3), 0, version)] == list(range(4))


# -- attempts by machine -----------------------------------------------------------------------------------------------


def listed(attempts, machine):
    """The attempts of a machine, the newest first, and that the way back is the same."""
    found, number, before = [], attempts.first[machine], NOBODY
    while number != NOBODY:
        row = attempts.row[number]
        assert (row["before"], row["machine"]) == (before, machine)
        found.append((int(row["task"]), int(row["attempt"]), int(number)))
        number, before = row["next"], number
    return found


@quick
@given(moves=st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), max_size=40))
def test_attempts_are_listed_by_machine_the_newest_first(moves):
    attempts, naive = build_attempts(3, 5), [[], [], []]
    for adds, machine, task, attempt in moves:
        if adds and has_room(attempts):
            number = add_attempt(attempts, machine, task, attempt, 1)
            naive[machine].insert(0, (task, attempt, number))
        elif not adds and naive[machine]:
            drop_attempt(attempts, naive[machine].pop(task % len(naive[machine]))[2])
        assert [listed(attempts, each) for each in range(3)] == naive
        assert attempts.counts.rows_used == sum(len(rows) for rows in naive)
        assert has_room(attempts) == (attempts.counts.rows_used < 5)
        alike = [number for one, other, number in naive[machine] if (one, other) == (task, attempt)]
        any_of_it = [number for one, _, number in naive[machine] if one == task]
        assert find_attempt(attempts, machine, task, attempt) == next(iter(alike), NOBODY)
        assert find_attempt(attempts, machine, task, ANY_ATTEMPT) == next(iter(any_of_it), NOBODY)
        for handle in range(-1, 6):
            at_once = handle if handle in alike else next(iter(alike), NOBODY)
            assert find_by_handle(attempts, handle, machine, task, attempt) == at_once


def test_a_row_that_is_used_again_has_nothing_of_the_attempt_before():
    attempts = build_attempts(1, 1)
    fresh = {"task": 1, "machine": 0, "attempt": 2, "state": 3, "heir": NOBODY, "awaits": 0, "owner": NOBODY,
             "row": NOBODY, "shape": NOBODY, "queue": NOBODY, "priority": 0, "in_gang": 0,
             "round": 0, "code": 0, "limit": 0.0,
             "preempted": 0, "reason": 0, "start": 0, "version": 0, "since": 0.0, "next": NOBODY, "before": NOBODY,
             "handle": NOBODY}
    for _ in range(2):
        row = attempts.row[add_attempt(attempts, 0, 1, 2, 3)]
        assert not has_room(attempts)
        assert dict(zip(row.dtype.names, row.tolist(), strict=True)) == fresh
        for name in set(row.dtype.names) - {"machine", "next", "before"}:
            row[name] = 9
        drop_attempt(attempts, 0)


# -- delays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("law", "expected"), [
    ("uniform", stats.uniform(0.006, 0.008)), ("exponential", stats.expon(scale=0.010))])
def test_delays_follow_their_law(law, expected):
    """A mean of 10 ms; the uniform ones spread 4 ms to either side."""
    net = build_network((1,) * len(ROLES), 1, 1, seed=5)
    net.delay.write(LAWS.index(law), 0.010, 0.004)
    with np.errstate(over="ignore"):
        drawn = [drawn_delay(net) for _ in range(4000)]
    assert stats.kstest(drawn, expected.cdf).pvalue > 0.01
    assert expected.support()[0] <= min(drawn) < max(drawn) <= expected.support()[1]


def test_a_constant_delay_draws_nothing():
    net = build_network((1,) * len(ROLES), 1, 1, seed=5)
    net.delay.write(LAWS.index("constant"), 0.010, 0.0)
    assert {drawn_delay(net) for _ in range(5)} == {0.010}
    assert net.random[0] == 5


# -- outboxes ----------------------------------------------------------------------------------------------------------


def test_an_outbox_is_never_written_behind_its_end():
    out = build_outbox(spare=2, more=1)
    for task in range(5):
        assert is_filling(out) == (task > 1)
        post(out, ENDED, 0, 0, task, NOBODY)
    assert (out.counts.posted, out.counts.overrun) == (3, 2)
    assert out.row["task"].tolist() == [0, 1, 4]


def test_a_run_stops_where_a_handler_posts_more_than_its_outbox_holds():
    few = dataclasses.replace(MEGHA, outbox=lambda instance: (1, 1, 1, 1))
    alone = Federation(global_masters=1, local_masters=1)
    opened = open_federated(plain((0, 1, 1)), fleet_of((1,)), few, alone, 1, 1e6, math.inf, compiled=False, outbox=0)
    assert opened.step(100) == LOOP_BROKEN
    said = str(broken_rule(opened.simulation))
    assert said.startswith("a submitter posted more messages than its outbox holds, at 0 s; this is a defect of subak")
