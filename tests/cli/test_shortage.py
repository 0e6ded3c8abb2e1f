"""Why a task fits nowhere: counted by hand, and against a loop over machines and demands."""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subak.federation.megha.catalog import Catalog, empty_fleet
from subak.fleet.shortage import Shortage, shortage
from subak.placement.hold_back import close_to_others
from subak.workload.predicates import Constraint, is_met
from subak.workload.tasks import Requests

RACKS = ("a", "b", "")


def fleet_of(machines, request, constraint):
    """A fleet of (capacity, free, rack), and one shape."""
    view = empty_fleet(2, 128, 4, 1)
    shapes = Requests(np.zeros((2, 1), np.int32), np.zeros(1, np.int32))
    catalog = Catalog(shapes.request, shapes.constraint_set, np.zeros((2, 1), np.int32), view.allowed)
    for number, (capacity, free, rack) in enumerate(machines):
        view.capacity[:, number], view.free[:, number] = capacity, free
        catalog.describe(number, {"rack": rack} if rack else {})
    catalog.shape(request, [constraint] if constraint else [])
    return view, shapes


def test_a_shortage_by_hand():
    machines = [((4, 8), (4, 8), "a"), ((4, 8), (1, 8), "a"), ((2, 8), (2, 0), "a"), ((0, 0), (0, 0), "a"),
                ((4, 8), (4, 8), "b")]
    fleet, shapes = fleet_of(machines, (3, 4), Constraint("rack", "=", "a"))
    assert shortage(fleet, shapes, 0, 0, 64) == Shortage(4, 1, [1, 0], [1, 1], 0, 1, 2)
    assert shortage(fleet, shapes, 0, 64, 128) == Shortage(0, 0, [0, 0], [0, 0], 0, 0, 0)
    assert shortage(fleet, shapes, 0, 4, 5) == Shortage(1, 1, [0, 0], [0, 0], 0, 0, 0)


amount = st.integers(0, 4)
machine = st.tuples(st.tuples(amount, amount), st.tuples(amount, amount), st.sampled_from(RACKS))


@given(st.lists(machine, max_size=70), st.tuples(amount, amount), st.sampled_from([None, *RACKS]),
       st.sets(st.integers(0, 69)))
def test_a_shortage_is_what_a_loop_counts(machines, request, rack, closed):
    constraint = None if rack is None else Constraint("rack", "=", rack)
    fleet, shapes = fleet_of(machines, request, constraint)
    for number in closed:
        close_to_others(fleet.open, number)
    there = [each for each in machines if any(each[0])]
    is_held = [number in closed for number, each in enumerate(machines) if any(each[0])]
    meets = [constraint is None or is_met(constraint, {"rack": each[2]} if each[2] else {}) for each in there]
    small = [[each[0][number] < request[number] for each in there] for number in range(2)]
    full = [[each[0][number] >= request[number] > each[1][number] for each in there] for number in range(2)]
    fits = [ok and all(each[1][number] >= request[number] for number in range(2))
            for ok, each in zip(meets, there, strict=True)]
    assert shortage(fleet, shapes, 0, 0, 128) == Shortage(
        len(there), meets.count(False), [sum(each) for each in small], [sum(each) for each in full],
        sum(fit and held for fit, held in zip(fits, is_held, strict=True)),
        sum(fit and not held for fit, held in zip(fits, is_held, strict=True)),
        sum(ok and all(each[0][number] >= request[number] for number in range(2))
            for ok, each in zip(meets, there, strict=True)))
