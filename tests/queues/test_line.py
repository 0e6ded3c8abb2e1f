"""A line of members, and a profile of what will be free: compared with lists."""
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from small import CPU, TWO, fleet_of, staged
from subak.placement.rigid.profile import IS_OPEN, clear, earliest, hold, room_during
from subak.placement.rigid.reservations import build_rigid, sort_down
from subak.queues.line import ABSENT, NO_MEMBER, build_line, first_below, key_of, set_key
from subak.simulator.engine.setup import Terms, machine_order, prepare

KEYS = st.sampled_from([ABSENT, -1.0, 0.0, 2.0, 2.0, 5.5])


@settings(deadline=None)
@given(order=st.integers(1, 20).flatmap(lambda size: st.permutations(range(size))),
       steps=st.lists(st.tuples(st.integers(0, 19), KEYS, st.integers(0, 33), KEYS), max_size=40))
def test_the_first_whose_key_is_below(order, steps):
    line, keys = build_line(np.array(order)), [ABSENT] * len(order)
    for number, key, place, bound in steps:
        member = number % len(order)
        set_key(line, member, key)
        keys[member] = key
        assert [key_of(line, each) for each in range(len(order))] == keys
        below = [each for each in order[place:] if keys[each] < bound]
        assert first_below(line, place, bound) == (below[0] if below else NO_MEMBER)


@given(keys=st.lists(st.sampled_from([0.0, 1.0, 1.0, 7.5, math.inf]), max_size=30), data=st.data())
def test_what_ends_last_comes_first(keys, data):
    gangs = np.array(data.draw(st.permutations(range(len(keys)))), np.int32)
    sort_down(gangs, np.array(keys))
    assert [keys[gang] for gang in gangs] == sorted(keys, reverse=True)
    assert sorted(gangs.tolist()) == list(range(len(keys)))


def profile_of(sizes, capacities, resources):
    """An open profile of idle machines; shape s asks for sizes[s] of everything."""
    stages = [{"request": (size,) * len(resources), "job": row} for row, size in enumerate(sizes)]
    workload = staged(stages, [(row, 0, 1) for row in range(len(sizes)) for _ in range(30)], resources)
    fleet = fleet_of(*[(each,) * len(resources) for each in capacities], resources=resources)
    sim = prepare(workload, fleet, machine_order(fleet, "given"), Terms(interval=1.0)).simulation
    profile = build_rigid(sim.fleet, sim.tasks, np.arange(sim.tasks.arrival.size), 2).profile
    clear(profile, sim.fleet, sim.tasks)
    return profile, sim.tasks


TIMES = st.sampled_from([0.0, 1.0, 2.0, 3.5, 4.0, 6.0, math.inf])


@settings(deadline=None, max_examples=200)
@given(sizes=st.sampled_from([(1,), (2,), (1, 2), (3, 1, 2)]), resources=st.sampled_from([CPU, TWO]),
       capacities=st.lists(st.integers(1, 6), min_size=1, max_size=4),
       steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 3), TIMES, TIMES, st.booleans(),
                                st.sampled_from([0.0, 0.0, 0.5, 1.0])), max_size=25))
def test_what_is_held_and_given_back(sizes, resources, capacities, steps):
    profile, tasks = profile_of(sizes, capacities, resources)
    pools, by_slots = profile.first.size, len(set(sizes)) == 1
    assert pools == (1 if by_slots else len(capacities))
    total = [sum(each // sizes[0] for each in capacities)] if by_slots else list(capacities)
    asked = [1] * len(sizes) if by_slots else sizes
    held = []

    def free(pool, time):
        return total[pool] - sum(count * asked[shape] for where, shape, count, begin, end in held
                                 if where == pool and begin <= time < end)

    def room(pool, shape, begin, end):
        times = {begin} | {time for *_, since, until in held for time in (since, until) if begin < time < end}
        return max(0, min(free(pool, time) // asked[shape] for time in times))

    for number, kind, count, begin, end, is_given_back, passed in steps:
        profile.now[0] += passed
        now, pool, shape = float(profile.now[0]), number % pools, kind % len(sizes)
        if is_given_back and held:
            of_pool, of_shape, given, *span = held.pop(number % len(held))
            hold(profile, of_pool, of_shape, -given, *span)
        elif max(begin, now) < end and room(pool, shape, max(begin, now), end) >= count:
            held.append((pool, shape, count, max(begin, now), end))
            hold(profile, *held[-1])
        times = {now} | {time for *_, since, until in held for time in (since, until) if now < time < math.inf}
        for time in times:
            for length in (0.0, 1.5, math.inf):
                for each in range(pools):
                    assert room_during(profile, each, shape, time, time + length) == room(each, shape, time,
                                                                                          time + length)
        for length in (0.0, 1.5, math.inf):
            begins = [time for time in sorted(times) if sum(
                room(each, shape, time, time + length) for each in range(pools)) >= count]
            assert earliest(profile, tasks, shape, count, length) == (begins[0] if begins else math.inf)
    assert profile.size[IS_OPEN]
