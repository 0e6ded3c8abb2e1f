"""Each kernel against its plain twin: random small cases, and a few worked by hand."""
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants import check_summaries
from naive import SortedLanes, SplitMix64, aligned, costs_least, fitting_machines
from subak.fleet import shortlists
from subak.fleet.amounts import give_back, remove, resize, shift, take
from subak.fleet.feasible import NOWHERE, first_fitting, fits, next_fitting, shape_fits_any, shape_fits_without
from subak.fleet.index import (
    block_may_fit,
    count_bits,
    equal_word,
    first_block,
    fitting_word,
    least_in_word,
    lowest_bit,
)
from subak.fleet.state import BLOCK, FREE_WHEN_ABSENT, LOG, build_fleet_state
from subak.placement import tetris
from subak.placement.claims import (
    DOES_NOT_FIT,
    KEPT,
    NO_SUCH_MACHINE,
    NO_SUCH_TASK,
    NOT_WAITING,
    TASK_RUNNING,
    TASK_WAITING,
    build_claims,
    claim,
    take_back,
)
from subak.placement.fits.best_fit import ALIGNED, LEAST_FREE, MOST_FREE, extreme_fit, weights
from subak.placement.fits.cheapest import cheapest
from subak.placement.fits.random_fit import random_below, random_fit
from subak.placement.interface.instance import Instance
from subak.placement.tetris import best_aligned, score_on
from subak.queues.lanes import (
    ACTIVE_LANES,
    CONTENDERS,
    MISUSES,
    NOBODY,
    build_lanes,
    contend,
    detach,
    drop_top,
    next_detached,
    pop,
    push,
    rise,
    settle_top,
)
from subak.queues.tournament import build_tournament, first_that_fits, note_first
from subak.simulator.engine.heap import SIZE, build_events, drop_first, insert, push_event
from subak.simulator.engine.sorting import sort
from subak.simulator.federated.delay_line import (
    all_events,
    build_line,
    first_time_of,
    in_line,
    join,
    may_join,
    take_first,
    with_longer_line,
)
from subak.workload.tasks import Tasks

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=100)
words = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1])


def tasks_of(requests, sets=None, estimate=None):
    """One task a shape: requests are [shape][resource]."""
    count = len(requests)
    times = np.zeros(count)
    return Tasks(
        arrival=times, run_time=times, estimate=times if estimate is None else np.array(estimate, float), rank=times,
        shape=np.arange(count, dtype=np.int32), request=np.ascontiguousarray(np.array(requests, np.int32).T),
        constraint_set=np.zeros(count, np.int32) if sets is None else np.array(sets, np.int32),
    )


def fleet_state(capacity, present=None, allowed=None, seed=0):
    """Capacities are [machine][resource]."""
    machines = len(capacity)
    return build_fleet_state(
        np.ascontiguousarray(np.array(capacity, np.int32).T),
        np.ones(machines, bool) if present is None else np.array(present, bool),
        np.ones((1, machines), bool) if allowed is None else np.array(allowed, bool), 16, seed,
    )


# -- bits --------------------------------------------------------------------------------------------------------------


@quick
@given(word=words)
def test_count_bits(word):
    assert count_bits(np.uint64(word)) == bin(word).count("1")


@quick
@given(word=words.filter(bool))
def test_lowest_bit(word):
    assert lowest_bit(np.uint64(word)) == bin(word)[::-1].index("1")


@quick
@given(numbers=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)))
def test_sort(numbers):
    array = np.array(numbers, np.int32)
    sort(array)
    assert array.tolist() == sorted(numbers)


# -- lanes and events --------------------------------------------------------------------------------------------------


def test_a_lane_or_a_task_that_is_not_there_is_noted_and_nothing_is_done():
    """Tasks 0 and 1 and lanes 0 and 1 are there; one task waits, in the last lane."""
    rank, lanes = np.zeros(2), build_lanes(2, 2)
    push(lanes, rank, 1, 1)
    for lane, task in ((-1, 0), (2, 0), (0, -1), (0, 2)):
        push(lanes, rank, lane, task)
    assert [pop(lanes, rank, lane) for lane in (-1, 2, 0)] == [NOBODY] * 3
    assert lanes.size[MISUSES] == 7
    assert (lanes.root.tolist(), lanes.length.tolist()) == ([NOBODY, 1], [0, 1])


def waiting_claims(count):
    claims = build_claims(count)
    claims.status[:] = TASK_WAITING
    return claims


@pytest.mark.parametrize(("task", "machine", "rule"), [
    (-1, 0, NO_SUCH_TASK), (3, 0, NO_SUCH_TASK), (2, 0, NOT_WAITING), (0, -1, NO_SUCH_MACHINE), (0, 2, NO_SUCH_MACHINE),
    (1, 0, DOES_NOT_FIT),
])
def test_a_claim_that_breaks_a_rule_changes_nothing_and_the_first_is_noted(task, machine, rule):
    """Machines 0 and 1 of four and five; task 1 fits the latter alone, and task 2 runs already."""
    fleet, tasks, claims = fleet_state([(4,), (5,)]), tasks_of([(1,), (5,), (1,)]), waiting_claims(3)
    claims.status[2] = TASK_RUNNING
    assert not claim(claims, fleet, tasks, task, machine)
    assert not claim(claims, fleet, tasks, 2, 1)
    assert claims.violation.tolist() == [rule, task, machine]
    assert (claims.size.tolist(), claims.status[:2].tolist()) == ([0], [TASK_WAITING] * 2)
    assert fleet.free[0, :2].tolist() == [4, 5]


def test_claims_are_taken_back_the_last_first():
    """Of three claims the first is kept; the machines are of four and five."""
    fleet, tasks, claims = fleet_state([(4,), (5,)]), tasks_of([(1,), (2,), (3,)]), waiting_claims(3)
    for task, machine in ((0, 0), (1, 1), (2, 1)):
        assert claim(claims, fleet, tasks, task, machine)
    assert (claims.task.tolist(), claims.machine.tolist(), claims.size.tolist()) == ([0, 1, 2], [0, 1, 1], [3])
    assert fleet.free[0, :2].tolist() == [3, 0]
    take_back(claims, fleet, tasks, 1)
    assert (claims.size.tolist(), claims.status.tolist()) == ([1], [TASK_RUNNING, TASK_WAITING, TASK_WAITING])
    assert fleet.free[0, :2].tolist() == [3, 5]
    assert claims.violation[0] == KEPT


@quick
@given(
    ranks=st.lists(st.sampled_from([0.0, 1.0, 2.5, math.inf]), min_size=1, max_size=30),
    moves=st.lists(st.tuples(st.sampled_from(["push"] * 3 + ["pop", "detach"]), st.integers(0, 3)), max_size=80),
)
def test_lanes_serve_like_sorted_lists(ranks, moves):
    rank, lanes, naive = np.array(ranks), build_lanes(4, len(ranks)), SortedLanes(4, ranks)
    outside = list(range(len(ranks)))
    for move, lane in moves:
        if move == "push" and outside:
            task = outside.pop(len(outside) // 2)
            push(lanes, rank, lane, task)
            naive.push(lane, task)
        elif move == "pop" and naive.waiting[lane]:
            task = naive.pop(lane)
            assert pop(lanes, rank, lane) == task
            outside.append(task)
        elif move == "detach" and naive.waiting[lane]:
            order, task = [], detach(lanes, lane)
            while task != NOBODY:
                order.append(int(task))
                task = next_detached(lanes, rank, task)
            assert order == naive.waiting[lane]
            outside += order
            naive.waiting[lane] = []
        assert [int(root) for root in lanes.root] == [tasks[0] if tasks else NOBODY for tasks in naive.waiting]
        assert lanes.length.tolist() == [len(tasks) for tasks in naive.waiting]
        assert set(lanes.active[: lanes.size[ACTIVE_LANES]].tolist()) == naive.active()


@quick
@given(moves=st.lists(st.tuples(st.sampled_from(["contend"] * 3 + ["top", "rise", "drop"]), st.integers(0, 8),
                                st.integers(0, 3)), max_size=60))
def test_the_first_contender_has_the_highest_score_and_of_equals_the_first_task(moves):
    """Nine lanes, lane n with task 8 - n of rank n mod 2; a move sets a score."""
    served = []
    rank, lanes, contenders = np.array([task % 2 for task in range(9)], float), build_lanes(9, 9), set()
    for lane in range(9):
        push(lanes, rank, lane, 8 - lane)
    for move, lane, score in moves:
        if move == "contend" and lane not in contenders:
            lanes.score[lane] = score
            contend(lanes, rank, lane)
            contenders.add(lane)
        elif move == "top" and contenders:
            lanes.score[lanes.contender[0]] = score
            settle_top(lanes, rank)
        elif move == "rise" and lane in contenders:
            lanes.score[lane] += score
            rise(lanes, rank, lanes.place[lane])
        elif move == "drop" and contenders:
            contenders.remove(int(lanes.contender[0]))
            drop_top(lanes, rank)
        served = sorted(contenders, key=lambda lane: (-lanes.score[lane], rank[8 - lane], 8 - lane))
        assert lanes.size[CONTENDERS] == len(contenders)
        assert not served or lanes.contender[0] == served[0]
        assert {each for each in range(9) if lanes.place[each] >= 0} == contenders
        assert all(lanes.contender[lanes.place[each]] == each for each in contenders)
    for lane in served:
        assert lanes.contender[0] == lane
        drop_top(lanes, rank)
    assert lanes.size[CONTENDERS] == 0


SHAPES = [(1, 4), (2, 3), (3, 3), (4, 1), (2, 2)]  # requests; the first four are a group, the last another


@quick
@given(moves=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30), late=st.sets(st.integers(0, 4)))
def test_a_tournaments_winner_is_the_first_of_its_group_that_fits(moves, late):
    """Each lane has three tasks; those of *late* lanes have a later turn than all others."""
    requests = [shape for shape in SHAPES for _ in range(3)]
    tasks = tasks_of(requests)._replace(
        shape=np.repeat(np.arange(5, dtype=np.int32), 3), request=np.array(SHAPES, np.int32).T.copy())
    turn = np.array([int(lane in late) for lane in range(5)])
    trees = build_tournament(np.array([0, 0, 0, 0, 1]), 2, tasks.request, np.array([4, 4]), turn)
    fleet, lanes, waiting = fleet_state([(4, 4), (2, 4), (3, 3), (4, 1), (1, 1)]), build_lanes(5, 15, True), set()
    for lane, comes in moves:
        outside = [task for task in range(3 * lane, 3 * lane + 3) if task not in waiting]
        if comes and outside:
            push(lanes, tasks.rank, lane, outside[0])
            waiting.add(outside[0])
        elif not comes and lanes.root[lane] != NOBODY:
            waiting.remove(int(pop(lanes, tasks.rank, lane)))
        note_first(trees, lanes, tasks, lane)
        for group, machine in ((group, machine) for group in (0, 1) for machine in range(5)):
            fit = [(turn[task // 3], task) for task in waiting
                   if (task // 3 == 4) == (group == 1) and fits(fleet, tasks, task, machine)]
            assert first_that_fits(trees, fleet, tasks, group, machine) == min(fit, default=(0, NOBODY))[1]


@quick
@given(moves=st.lists(st.none() | st.sampled_from([0.0, 1.0, 1.0, 2.0, math.inf]), max_size=80))
def test_events_leave_in_order_of_time_then_sequence(moves):
    events, naive = build_events(100), []
    for sequence, time in enumerate(moves):
        if time is not None:
            push_event(events, time, sequence, sequence + 7)
            naive.append((time, sequence))
        elif naive:
            first = min(naive)
            naive.remove(first)
            slot = events.slot[0]
            assert (slot["time"], slot["item"], slot["place"]) == (*first, first[1] + 7)
            drop_first(events)
        assert events.size[SIZE] == len(naive)


@quick
@given(moves=st.lists(st.none() | st.tuples(st.sampled_from([0.0, 1.0, 1.0, 2.0, math.inf]), st.booleans()),
                      max_size=80))
def test_events_in_a_line_beside_a_heap_leave_in_order_of_time_then_sequence(moves):
    line, events, naive = build_line(1), build_events(100), []
    for sequence, move in enumerate(moves):
        if move is not None:
            time, is_sent = move
            if len(in_line(line)) == line.event.size:
                line = with_longer_line(line, 2 * line.event.size)
            if is_sent and may_join(line, time):
                join(line, time, sequence, sequence + 7, 1)
            else:
                insert(events, time, sequence, sequence + 7, 1)
            naive.append((time, sequence))
        elif naive:
            first = min(naive)
            naive.remove(first)
            assert first_time_of(line, events) == first[0]
            assert all_events(line, events)[0]["sequence"] == first[1]
            assert take_first(line, events) == (*first, first[1] + 7, 1)
        assert sorted(all_events(line, events)["sequence"]) == sorted(sequence for _, sequence in naive)
        assert list(in_line(line)["time"]) == sorted(in_line(line)["time"])
    assert naive or first_time_of(line, events) == math.inf


# -- searching the fleet -----------------------------------------------------------------------------------------------


@st.composite
def occupied(draw):
    """A fleet of 1 to 200 machines after some were emptied, resized, removed; tasks of several shapes."""
    resources = draw(st.integers(1, 3))
    machines = draw(st.sampled_from([1, 5, 63, 64, 65, 128, 129, 200]))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    sparse = draw(st.booleans())
    capacity = random.integers(0, 6, (machines, resources)) * (random.random((machines, 1)) < (0.05 if sparse else 1))
    allowed = np.vstack([np.ones(machines, bool), random.random((2, machines)) < (0.03 if sparse else 0.5)])
    fleet = fleet_state(capacity, random.random(machines) < 0.8, allowed)
    requests = random.integers(0, 4, (6, resources))
    tasks = tasks_of(requests, random.integers(0, 3, 6))
    for task in range(6):
        machine = next_fitting(fleet, tasks, task, 0)
        if machine != NOWHERE:
            take(fleet, tasks, task, machine)
    return fleet, tasks, allowed, seed


@quick
@given(case=occupied(), rounds=st.integers(1, 40))
def test_first_fitting_remembers_nothing_stale(case, rounds):
    fleet, tasks, allowed, seed = case
    random = np.random.default_rng(seed)
    for _ in range(rounds):
        shape = int(random.integers(0, 6))
        fitting = fitting_machines(free_lists(fleet), tasks.request[:, shape].tolist(),
                                   allowed[tasks.constraint_set[shape]])
        assert first_fitting(fleet, tasks, shape) == min(fitting, default=NOWHERE)
        if random.random() < 0.7:
            disturb(fleet, tasks, random)


def test_first_fitting_sees_a_machine_freed_longer_ago_than_the_log_reaches():
    fleet, tasks = fleet_state([(1,)] * 192), tasks_of([(1,)])
    for machine in range(192):
        take(fleet, tasks, 0, machine)
    assert first_fitting(fleet, tasks, 0) == NOWHERE
    give_back(fleet, tasks, 0, 5)
    for _ in range(LOG + 3):
        give_back(fleet, tasks, 0, 191)
        take(fleet, tasks, 0, 191)
    give_back(fleet, tasks, 0, 191)  # in the last block too
    assert first_fitting(fleet, tasks, 0) == 5
    take(fleet, tasks, 0, 5)
    assert first_fitting(fleet, tasks, 0) == 191
    take(fleet, tasks, 0, 191)
    assert first_fitting(fleet, tasks, 0) == NOWHERE
    assert first_block(fleet, 0) == 3  # so that the next search begins where nothing was freed since


def free_lists(fleet):
    free = fleet.free[:, : fleet.machines].T.tolist()
    return [None if amounts[0] == FREE_WHEN_ABSENT else amounts for amounts in free]


@quick
@given(case=occupied(), after=st.integers(0, 210))
def test_next_fitting_is_the_first_of_the_fitting(case, after):
    fleet, tasks, allowed, _ = case
    for task in range(6):
        fitting = fitting_machines(free_lists(fleet), tasks.request[:, task].tolist(),
                                   allowed[tasks.constraint_set[task]])
        assert next_fitting(fleet, tasks, task, after) == min((m for m in fitting if m >= after), default=NOWHERE)
        assert [m for m in range(fleet.machines) if fits(fleet, tasks, task, m)] == fitting


@quick
@given(case=occupied())
def test_the_words_of_a_block_name_the_fitting_machines(case):
    fleet, tasks, allowed, _ = case
    for shape in range(6):
        fitting = fitting_machines(free_lists(fleet), tasks.request[:, shape].tolist(),
                                   allowed[tasks.constraint_set[shape]])
        for block in range(fleet.allowed.shape[1]):
            word = int(fitting_word(fleet, tasks, shape, block))
            inside = [machine - block * BLOCK for machine in fitting if machine // BLOCK == block]
            assert word == sum(1 << place for place in inside)
            assert block_may_fit(fleet, tasks, shape, block) or not inside


def instance_of(fleet, tasks, units=(1.0, 1.0, 1.0)):
    """The instance of a fleet whose largest machine may have left."""
    units, largest = np.array(units[: len(fleet.free)]), np.rint(1 / fleet.scale).astype(np.int32)[:, None]
    return Instance(units, largest, tasks.request, tasks.shape, tasks.estimate, fleet.allowed.shape[1])


def listing(fleet, weight):
    """The fleet with short lists by these weights."""
    return fleet._replace(lists=shortlists.build_shortlists(weight, fleet.machines, BLOCK))


def with_room(monkeypatch, lists, listed, noted):
    """Short lists of so many shapes, machines and changes: the fewer, the sooner they end."""
    for name, room in (("LISTS_MAX", lists), ("MACHINES_LISTED_MAX", listed), ("NOTED_MIN", noted)):
        monkeypatch.setattr(shortlists, name, room)


ROOMS = st.tuples(st.sampled_from([1, 4, 6]), st.sampled_from([1, 2, 3, 32]), st.sampled_from([1, 64]))


@quick
@given(case=occupied(), rule=st.sampled_from([LEAST_FREE, MOST_FREE, ALIGNED]), room=ROOMS)
def test_the_cheapest_machine_is_that_of_all_and_nothing_is_remembered_that_is_stale(monkeypatch, case, rule, room):
    with_room(monkeypatch, *room)
    fleet, tasks, allowed, seed = case
    random = np.random.default_rng(seed)
    weight = weights(instance_of(fleet, tasks), rule)
    fleet = listing(fleet, weight)
    for _ in range(8):
        for shape in random.integers(0, 6, 4).tolist():
            free = free_lists(fleet)
            fitting = fitting_machines(free, tasks.request[:, shape].tolist(), allowed[tasks.constraint_set[shape]])
            best = costs_least(free, *weight[:, :, shape].tolist(), fitting)
            assert cheapest(fleet, tasks, shape) == best == extreme_fit(fleet, tasks, shape, rule)
        disturb(fleet, tasks, random)


@quick
@given(case=occupied(), room=ROOMS, freed=st.integers(0, 3))
def test_best_aligned_is_the_fullest_dot_product(monkeypatch, case, room, freed):
    """Of all machines, or of those that were freed."""
    with_room(monkeypatch, *room)
    fleet, tasks, allowed, seed = case
    random = np.random.default_rng(seed)
    units = [0.5, 2.0, 1.0][: len(fleet.free)]
    fleet = listing(fleet, tetris.plain_weights(instance_of(fleet, tasks, units)))
    for _ in range(8):
        some = random.permutation(fleet.machines)[:freed].astype(np.int32)
        for shape in range(6):
            free, request = free_lists(fleet), tasks.request[:, shape].tolist()
            fitting = fitting_machines(free, request, allowed[tasks.constraint_set[shape]])
            best = max((machine for machine in fitting if machine in some or some.size == 0),
                       key=lambda m, r=request, f=free: (aligned(f[m], r, units), -m), default=NOWHERE)
            assert best_aligned(fleet, tasks, shape, some) == best
        disturb(fleet, tasks, random)


def test_a_list_ends_at_the_first_machine_that_it_has_no_room_for(monkeypatch):
    """Three machines of 3, 2 and 1 free; a list of two ends at the second when the freest is asked for."""
    with_room(monkeypatch, 1, 2, 64)
    fleet, tasks = fleet_state([(1,), (2,), (3,), (2,)]), tasks_of([(1,)])
    fleet = listing(fleet, weights(instance_of(fleet, tasks), MOST_FREE))
    assert cheapest(fleet, tasks, 0) == 2
    head, entry = fleet.lists.head[0], fleet.lists.entry[0]
    assert entry["machine"].tolist() == [1, 2]  # the best is last
    assert (head["size"], head["end_machine"], head["end"]) == (2, 3, entry["cost"][0])
    give_back(fleet, tasks, 0, 0)  # the first machine has 2 free, too, and goes before the end
    assert cheapest(fleet, tasks, 0) == 2
    assert (entry["machine"].tolist(), head["end_machine"]) == ([0, 2], 1)


def disturb(fleet, tasks, random):
    """Change a few machines the way a run does."""
    for machine in random.integers(0, fleet.machines, 3):
        idle = (fleet.free[:, machine] == fleet.capacity[:, machine]).all()
        task = int(random.integers(0, 6))
        if fits(fleet, tasks, task, machine):
            take(fleet, tasks, task, machine)
            if random.random() < 0.5:
                give_back(fleet, tasks, task, machine)
        elif fleet.free[0, machine] == FREE_WHEN_ABSENT or (idle and random.random() < 0.5):
            amounts = random.integers(0, 6, (len(fleet.free), 1)).astype(np.int32)
            resize(fleet, machine, amounts, 0)
        elif idle:
            remove(fleet, machine)
    check_summaries(fleet)


def test_a_belief_may_hold_more_than_there_is():
    """Configurations 0 and 1 of two resources; -1 is none. What is held stays held, whatever there is."""
    fleet, tasks = fleet_state([(0, 0)] * 64 + [(4, 8)]), tasks_of([(3, 1)])
    amounts = np.array([[2, 9], [5, 5]], np.int32)
    take(fleet, tasks, 0, 64)
    seen = []
    for configuration in (0, -1, 1):
        assert first_fitting(fleet, tasks, 0) == NOWHERE
        shift(fleet, 64, amounts, configuration)
        seen.append((fleet.free[:, 64].tolist(), fleet.capacity[:, 64].tolist(), fleet.present.tolist()))
        assert fleet.block_free_max[:, 1].tolist() == np.maximum(fleet.free[:, 64], FREE_WHEN_ABSENT).tolist()
    assert seen == [([-1, 4], [2, 5], [2, 5]), ([-3, -1], [0, 0], [0, 0]), ([6, 4], [9, 5], [9, 5])]
    assert first_fitting(fleet, tasks, 0) == 64


@quick
@given(case=occupied())
def test_some_of_the_machines_given_fit_or_none(case):
    fleet, tasks, allowed, seed = case
    some = np.random.default_rng(seed).permutation(fleet.machines)[: 1 + seed % 4].astype(np.int32)
    for shape in range(6):
        fitting = fitting_machines(free_lists(fleet), tasks.request[:, shape].tolist(),
                                   allowed[tasks.constraint_set[shape]])
        assert shape_fits_any(fleet, tasks, shape, some) == bool(set(some.tolist()) & set(fitting))


@quick
@given(case=occupied())
def test_who_leaves_makes_room_for_what_fits_in_its_place(case):
    fleet, tasks, allowed, _ = case
    for shape in range(6):
        for leaving in range(6):
            left = [free and [amount + more for amount, more in zip(free, tasks.request[:, leaving], strict=True)]
                    for free in free_lists(fleet)]
            fitting = fitting_machines(left, tasks.request[:, shape].tolist(), allowed[tasks.constraint_set[shape]])
            assert [machine for machine in range(fleet.machines) if left[machine] is not None
                    and shape_fits_without(fleet, tasks, shape, machine, leaving)] == fitting


@quick
@given(word=words, seed=st.integers(0, 2**32), block=st.integers(0, 1))
def test_the_least_of_the_machines_of_a_word_and_where_it_is(word, seed, block):
    numbers = np.random.default_rng(seed).integers(-3, 4, 128).astype(np.int32)
    inside = numbers[64 * block : 64 * block + 64].tolist()
    chosen = [number for place, number in enumerate(inside) if word >> place & 1]
    assert least_in_word(numbers, block, np.uint64(word)) == min(chosen, default=2**31 - 1)
    assert int(equal_word(numbers, block, 2)) == sum(1 << place for place in range(64) if inside[place] == 2)


def test_best_and_worst_fit_weigh_resources_by_the_largest_machine():
    # largest 10 and 100; free shares 0.5 + 0.2 = 0.7, 0.2 + 0.4 = 0.6, 1 + 0.1 = 1.1, 0.1 + 1 = 1.1, and one too small
    fleet = fleet_state([(5, 20), (2, 40), (10, 10), (1, 100), (0, 100)])
    tasks = tasks_of([(1, 10), (11, 1)])
    assert extreme_fit(fleet, tasks, 0, LEAST_FREE) == 1
    assert extreme_fit(fleet, tasks, 0, MOST_FREE) == 2
    assert extreme_fit(fleet, tasks, 1, LEAST_FREE) == NOWHERE
    # 0.1 * 0.5 + 0.1 * 0.2, 0.06, 0.1 * 1 + 0.1 * 0.1, 0.1 * 0.1 + 0.1 * 1
    assert extreme_fit(fleet, tasks, 0, ALIGNED) == 2


def test_a_machine_that_leaves_is_found_by_nobody_until_it_is_back():
    fleet, tasks = fleet_state([(4,)] * 70), tasks_of([(3,)])
    for machine in range(69):
        remove(fleet, machine)
    assert next_fitting(fleet, tasks, 0, 0) == 69
    remove(fleet, 69)
    assert next_fitting(fleet, tasks, 0, 0) == NOWHERE
    resize(fleet, 3, np.array([[3]], np.int32), 0)
    assert next_fitting(fleet, tasks, 0, 0) == 3
    assert fleet.present.tolist() == [3]


# -- scores ------------------------------------------------------------------------------------------------------------


def test_the_dot_product_of_the_two_resources():
    # tests/data/answers/queueing.json, tetris_dot_product: free (10, 100), X (1, 50) scores 5010, Y (6, 1) 160
    fleet, tasks = fleet_state([(10, 100)]), tasks_of([(1, 50), (6, 1)])
    instance = instance_of(fleet, tasks)
    fleet, memory = listing(fleet, tetris.plain_weights(instance)), tetris.plain_memory(instance)
    assert [score_on(fleet, tasks, memory, task, 0) for task in (0, 1)] == [5010, 160]


def test_the_work_term_is_run_time_times_the_sum_of_the_request():
    fleet, tasks = fleet_state([(10, 100)]), tasks_of([(1, 50), (6, 1)], estimate=[2, 100])
    instance = instance_of(fleet, tasks)
    fleet, memory = listing(fleet, tetris.plain_weights(instance)), tetris.plain_memory(instance)
    assert [score_on(fleet, tasks, memory, task, 0) for task in (0, 1)] == [5010 - 2 * 51, 160 - 100 * 7]


def test_normalised_scores_are_of_shares_and_means():
    """Two tasks of (2, 1) and (1, 3) for 10 s and for ever; machines have at most 4, 1 (a lone unit) and 0."""
    def numbers(expected):
        instance = Instance(np.array([1.0, 1.0, 1.0]), np.array([[4, 2], [1, 1], [0, 0]], np.int32),
                            np.array([[2, 1], [1, 3], [0, 0]], np.int32), np.array([0, 1], np.int32),
                            np.array(expected), 1)
        return tetris.normalised_memory(instance).number.tolist()

    alignment = ((2 / 4 + 1) + (1 / 4 + 3)) / 2
    assert numbers([10.0, math.inf]) == pytest.approx([1 / alignment, 1 / (10 * (2 / 4 + 1) / 2), 1 / 4, 1, 1])
    assert numbers([0.0, math.inf]) == pytest.approx([1 / alignment, 1, 1 / 4, 1, 1])
    assert numbers([0.1, math.inf]) == pytest.approx([1 / alignment, 1 / (0.1 * (2 / 4 + 1) / 2), 1 / 4, 1, 1])


# -- random numbers ----------------------------------------------------------------------------------------------------


def test_the_random_words_are_those_published_for_splitmix64():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
                 16408922859458223821]  # seed 1234567; rosettacode.org, Pseudo-random numbers/Splitmix64
    twin, state = SplitMix64(1234567), np.array([1234567], np.uint64)
    assert [twin.word() for _ in range(5)] == published
    assert [int(random_below(state, 2**53)) for _ in range(5)] == [word >> 11 for word in published]


@quick
@given(seed=st.integers(0, 2**64 - 1), bounds=st.lists(st.integers(1, 2**31), min_size=1, max_size=20))
def test_random_below_follows_the_twin(seed, bounds):
    twin, state = SplitMix64(seed), np.array([seed], np.uint64)
    drawn = [int(random_below(state, bound)) for bound in bounds]
    assert drawn == [twin.below(bound) for bound in bounds]
    assert all(0 <= number < bound for number, bound in zip(drawn, bounds, strict=True))


@pytest.mark.parametrize("useless", [0, 2000], ids=["by probing", "by counting"])
def test_random_fit_draws_every_fitting_machine_alike(useless):
    # five of nine machines fit; behind 2,000 that do not, 32 probes rarely hit one and the fitting are counted
    fleet = fleet_state([(0,)] * useless + [(1,), (3,), (2,), (3,), (0,), (9,), (3,), (4,), (1,)], seed=20)
    tasks = tasks_of([(3,)])
    fitting = [useless + place for place in (1, 3, 5, 6, 7)]
    drawn = [int(random_fit(fleet, tasks, 0)) for _ in range(2000 if useless else 20_000)]
    counts = np.array([drawn.count(machine) for machine in fitting])
    assert counts.sum() == len(drawn)
    expected = len(drawn) / len(fitting)
    assert ((counts - expected) ** 2 / expected).sum() < 18.467  # chi-square, 4 degrees, 99.9 %
    assert random_fit(fleet, tasks_of([(10,)]), 0) == NOWHERE


@pytest.mark.parametrize("groups", [[0], [0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 2], [0, 1, 1, 1]])
def test_every_lane_has_a_leaf_of_its_own_in_the_tree_of_its_group(groups):
    of_lane, count = np.array(groups), max(groups) + 1
    trees = build_tournament(of_lane, count, np.ones((1, len(groups)), np.int32), np.array([4]))
    places = trees.base_of_lane + trees.leaf
    assert len(set(places.tolist())) == len(groups)
    for lane, group in enumerate(groups):
        assert trees.leaves[group] <= trees.leaf[lane] < 2 * trees.leaves[group]
        assert trees.base_of_lane[lane] == trees.base[group]
