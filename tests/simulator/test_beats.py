"""Heartbeats that change nothing are passed over: what a run records is the same to the last bit as when all are made.

What rounds cost is compared with one addition after the other; whole federations, drawn, with those that make every
heartbeat: every array of every role, of what runs, and of the network, and what the run recorded.
"""
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from small import fleet_of, plain
from subak.federation.settings import Federation
from subak.kernels.kernel import SETTINGS
from subak.queues.tree import Queue, TreeChange, TreeFile
from subak.records import Numbers
from subak.simulator.engine.run_loop import Course, Held
from subak.simulator.federated.heartbeats.beats import (
    add_round,
    add_rounds,
    build_beats,
    measure_round,
    moved,
)
from subak.simulator.federated.megha_setup import CENTRAL, MEGHA, goes_by_use
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import build, failures_of, random_case

PLAIN = bool(SETTINGS.DISABLE_JIT)
CASES = 6 if PLAIN else 30
FINE = st.floats(0, 1, allow_subnormal=False)
SERVICES = st.one_of(st.just(0.0), st.floats(1e-9, 1e-2), st.sampled_from([1e-6, 0.8e-6, 2.0**-20, 3 * 2.0**-33]))


# -- sums --------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(total=st.one_of(st.just(0.0), st.floats(0, 1e9), st.integers(0, 2**40).map(lambda many: many * 2.0**-30)),
       first=SERVICES, base=SERVICES, slope=SERVICES, count=st.integers(0, 4), rounds=st.integers(0, 1000))
def test_rounds_that_are_added_at_once(total, first, base, slope, count, rounds):
    expected = total
    for _ in range(rounds):
        expected = add_round(expected, first, base, slope, count)
    assert add_rounds(total, first, base, slope, count, rounds) == expected


def test_sums_that_end_in_half_of_a_last_place_are_rounded_to_even():
    for total in (1.0, 1.0 + 2.0**-52):
        expected = total
        for _ in range(1001):
            expected += 2.0**-53
        assert add_rounds(total, 2.0**-53, 0.0, 0.0, 0, 1001) == expected
    assert add_rounds(1.0 + 2.0**-52, 3 * 2.0**-53, 0.0, 0.0, 0, 5) == 1.0 + 10 * 2.0**-52


def test_a_sum_that_is_too_large_for_what_is_added_stays():
    assert add_rounds(1e20, 1.0, 1.0, 1.0, 3, 10**9) == 1e20


def test_a_great_many_rounds_take_no_time():
    assert add_rounds(0.0, 1e-6, 0.0, 0.0, 0, 10**9) == pytest.approx(1000.0)


@settings(deadline=None)
@given(time=st.floats(1e-3, 1e9), seconds=st.one_of(SERVICES, st.floats(0, 1e3)))
def test_all_times_of_a_binade_are_moved_alike(time, seconds):
    _, exponent = math.frexp(time)
    unit, end = math.ldexp(1.0, exponent - 53), math.ldexp(1.0, exponent)
    by = moved(seconds, unit)
    assume(time + seconds < end)
    if by == math.inf:
        assert (2 * seconds / unit) % 2 == 1
    else:
        assert time + seconds - time == by
        assert end / 2 + seconds - end / 2 == by


# -- a round -----------------------------------------------------------------------------------------------------------


def test_a_round_by_hand():
    beats = build_beats(2)
    beats.round.heartbeat, beats.round.delay, beats.round.beat_seconds = 8.0, 0.5, 0.25
    beats.round.update_seconds, beats.round.noted_seconds, beats.counts.masters = 2.0, 0.125, 3
    measure_round(beats, 100.0)
    assert beats.round.step == 8.25
    assert beats.round.heard == 0.25 + 0.5 + 2.0
    assert beats.round.length == 0.25 + 0.5 + 2.0 + 0.5 + 3 * 0.125
    assert beats.counts.events_a_round == 1 + 3 * 2 + 3 * 2
    beats.round.delay = 2.0**-47  # half of the last place of 100 s
    measure_round(beats, 100.0)
    assert beats.round.length == math.inf
    measure_round(beats, 50.0)
    assert beats.round.length < math.inf


# -- federations -------------------------------------------------------------------------------------------------------


def everything(value, name=""):
    """Yield every array and record in what a run consists of, as an array, and what it is called."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, Numbers):
        yield name, value.array
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            field = value._fields[place] if hasattr(value, "_fields") else str(place)
            yield from everything(each, f"{name}.{field}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from everything(each, f"{name}[{place}]")


# of the network, where messages are under way, and what is only needed to pass over some
WHERE = {".events", ".line", ".beats", ".flight", ".sent", ".armed_in", ".slot", ".owed", ".counts"}


def recorded(opened, fixed=True):
    """Run a federation to its end; return what it recorded, and all that it consists of then."""
    result = Course(Held(opened.simulation, opened.step, lambda: AssertionError("a rule is broken")), fixed).drive()
    network = {name: value for name, value in everything(opened.network)
               if not any(name.startswith(each) for each in WHERE)}
    return {
        "timeline": result.timeline, "losses": np.concatenate(result.losses, axis=1),
        "end": np.array([result.end, result.interval, result.events]), **network,
        "size": np.array(opened.network.counts.values()[1:]), **dict(everything(opened.roles, "roles")),
        **dict(everything(opened.simulation._replace(events=opened.simulation.events.size), "simulation")),
    }


def compare(workload, fleet, architecture, federation, *others, fixed=True, **options):
    """Assert that a federation does the same whether it makes all heartbeats or not; return how many it did not.

    What a queue uses is counted by the one that makes all, and by both where masters go by it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "empty", np.zeros)  # so that what is never read is the same too
        every, some = (open_federated(workload, fleet, architecture, federation, *others, **options, in_full=which)
                       for which in (True, False))
        made, passed = recorded(every, fixed), recorded(some, fixed)
    assert made.keys() == passed.keys()
    for name, value in made.items():
        if name.endswith((".consumed", ".total")) and not goes_by_use(federation):
            assert value.size > passed[name].size == 0, name
        else:
            assert value.tobytes() == passed[name].tobytes(), name
    assert every.network.beats.counts.passed == 0
    return some.network.beats.counts.passed


def drawn(seed):
    """Return what `open_federated` takes of a drawn case in which nothing is lost on the network, slower by far."""
    random, case = np.random.default_rng([seed, 43]), random_case(seed)
    faulty = case.plan is not None and random.random() < 0.05
    slower = float(random.choice([1.0, 30.0, 30.0, 300.0] if PLAIN else [1.0, 30.0, 100.0, 300.3]))
    base = msgspec.structs.replace(
        case.settings, retry=1.0 if faulty else math.inf, standby=faulty and case.settings.standby,
        placement="first-fit",
        heartbeat=float(random.choice([0.5, 1.0, 3.0, 10.0, 0.7])), delay_law="constant", delay_spread=0.0,
        delay=float(random.choice([0.0, 0.0005, 0.0005, 0.01, 0.1])),
        service=[{}, {}, {"BEAT": 1e-4, "NOTED": 2.0**-12}, {"UPDATE": 0.0}, {"PLACE": 0.02}][random.integers(5)],
        service_profile=str(random.choice(["compiled", "python"])))
    if random.random() < 0.1:
        base = msgspec.structs.replace(base, delay_law="exponential")
    case = msgspec.structs.replace(
        case, settings=base, plan=case.plan if faulty else None,
        tasks=[(stage, slower * arrival, slower * run_time) for stage, arrival, run_time in case.tasks],
        changes=[(slower * time, *others) for time, *others in case.changes],
        planned=[(fails, slower * after, slower * cancel) for fails, after, cancel in case.planned],
        trees=[(slower * time, weights) for time, weights in case.trees])
    interval = float(random.choice([0.3, 7.0, 60.0, 1000.0])) * max(slower / 100.0, 1.0)
    until = slower * float(random.choice([2.0, 5.0, math.inf, math.inf]))
    return case, interval, until


def tree_of(case):
    names = sorted(set(case.queues))
    return TreeFile(change=[TreeChange(time=time, queue=[
        Queue(name=name, weight=weight) for name, weight in zip(names, weights, strict=False)])
        for time, weights in case.trees]) if case.trees else None


@pytest.mark.parametrize("seeds", [range(first, CASES, 6) for first in range(6)])
def test_a_run_is_the_same_without_the_heartbeats_that_change_nothing(seeds):
    passed = 0
    for seed in seeds:
        case, interval, until = drawn(seed)
        passed += compare(*build(case), MEGHA, case.settings, case.seed, interval, until, case.plan, tree_of(case),
                          failures=failures_of(case), rows=case.rows)
    assert passed > 0


@pytest.mark.parametrize("architecture", [MEGHA, CENTRAL])
@pytest.mark.parametrize("interval", [0.7, 500.0])
def test_few_tasks_over_a_long_time(architecture, interval):
    tasks = [(gap * 37.03, 400.0 + gap % 7, 1) for gap in range(60)]
    federation = architecture.settled(Federation(global_masters=3, local_masters=2, heartbeat=2.0))
    passed = compare(plain(*tasks), fleet_of(*[(1,)] * 8), architecture, federation, 1, interval, math.inf,
                     fixed=interval < 1)
    assert passed > 500


def test_what_happens_at_the_very_instant_of_a_heartbeat():
    """Arrivals, ends, changes and ends of intervals on the beat, where no time passes in between."""
    tasks = [(10.0 * number, 20.0, 1) for number in range(30)]
    fleet = fleet_of(*[(1,)] * 3, changes=[(95.0, 0, False, 0), (100.0, 0, True, 1), (110.0, 1, True, 2)])
    passed = 0
    for delay in (0.0, 2.5, 0.5):
        federation = Federation(global_masters=2, local_masters=2, heartbeat=5.0, delay=delay, service_scale=0.0)
        for until in (math.inf, 200.0):
            passed += compare(plain(*tasks), fleet, MEGHA, federation, 1, 10.0, until)
    assert passed > 5


def test_a_machine_that_joins_while_nothing_else_happens_is_told_with_the_next_heartbeat():
    workload = plain((0, 1000, 1), (1, 1000, 1))
    fleet = fleet_of((1,), (1,), present=(True, False), changes=[(100.3, 1, True, 1)])
    federation = Federation(global_masters=1, local_masters=1, heartbeat=10.0)
    assert compare(workload, fleet, MEGHA, federation, 1, 1e6, math.inf) > 100
    opened = open_federated(workload, fleet, MEGHA, federation, 1, 1e6, math.inf, in_full=False)
    recorded(opened)
    assert 110.0 < opened.simulation.progress.start[1] < 110.1


def test_what_is_not_passed_over():
    workload, fleet = plain((0, 1, 1), (500, 1, 1)), fleet_of((1,), (1,), (1,))
    usual = Federation(global_masters=2, local_masters=2, heartbeat=1.0)
    assert compare(workload, fleet, MEGHA, usual, 1, 1e6, math.inf) > 900
    for change in ({"delay_law": "exponential"}, {"retry": 2.0}, {"updates": "full"}, {"heartbeat": math.inf},
                   {"heartbeat": 0.001}):
        federation = msgspec.structs.replace(usual, **change)
        short = replace(workload, tasks=workload.tasks.with_columns(arrival=workload.tasks["arrival"] / 100))
        assert compare(short, fleet, MEGHA, federation, 1, 1e6, math.inf) == 0, change
    even = msgspec.structs.replace(usual, updates="full", local_masters=3)
    assert compare(workload, fleet, MEGHA, even, 1, 1e6, math.inf) > 900
