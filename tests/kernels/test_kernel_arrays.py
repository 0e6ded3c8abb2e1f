"""The arrays of a state: by name, replaced, and the small ones in one block, where what was shared is shared."""
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small import fleet_of, plain
from subak.federation.settings import Federation
from subak.kernels.arrays import LARGE, LINE, arrays_of, in_one_block, with_arrays
from subak.queues.tree import TreeFile
from subak.records import Numbers
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated

RECORD = np.dtype([("flag", np.int8), ("number", np.int64), ("share", np.float64)])  # of 17 bytes


class Inner(NamedTuple):
    table: np.ndarray
    column: np.ndarray
    number: int


class Outer(NamedTuple):
    inners: list[Inner]
    rows: np.ndarray
    more: Any


def owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def span(array):
    """Where the memory begins and ends that an array is a part of."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def shared(arrays):
    """Which two of some arrays share memory."""
    spans = [span(each) if each.size else (0, 0) for each in arrays]
    return {(one, other) for one, (low, high) in enumerate(spans) for other, (first, last) in enumerate(spans)
            if low < last and first < high}


@st.composite
def states(draw):
    """States of arrays of all kinds, and views of the same memory."""
    def array():
        shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
        kind = draw(st.sampled_from([np.int8, np.int32, np.float64, np.bool_, RECORD]))
        made = np.zeros(shape, kind, order=draw(st.sampled_from("CF")))
        held = made.reshape(-1, order="A").view(np.uint8)
        filled = draw(st.sampled_from([slice(0), slice(None), slice(-1, None)]))  # nothing, everything, the last
        held[filled] = np.arange(1, held.size + 1)[filled] % (2 if kind is np.bool_ else 100)
        return made

    def part(of):
        how = draw(st.sampled_from(["itself", "transposed", "reversed", "later", "column", "repeated"]))
        if how == "column":
            return of["number"] if of.dtype.names else of
        if how == "repeated":
            return np.broadcast_to(of, (2, *of.shape))
        return {"itself": of, "transposed": of.T, "reversed": of[::-1], "later": of[1:]}[how]

    tables = [array() for _ in range(draw(st.integers(1, 4)))]
    parts = [part(draw(st.sampled_from(tables))) for _ in range(draw(st.integers(1, 6)))]
    if draw(st.booleans()):
        parts[0] = parts[0].copy()
        parts[0].flags.writeable = False
    return Outer([Inner(each, parts[0], 3) for each in tables], parts[-1], (parts, "word", 2.5))


@given(states())
def test_a_state_in_one_block_is_the_same_state(state):
    moved = in_one_block(in_one_block(state))
    before, after = arrays_of(state), arrays_of(moved)
    assert list(before) == list(after)
    for name, array in before.items():
        other = after[name]
        assert other.tobytes() == array.tobytes(), name
        assert (other.dtype, other.shape, other.strides) == (array.dtype, array.shape, array.strides)
        assert (other.flags.writeable, other.flags.c_contiguous, other.flags.f_contiguous) == (
            array.flags.writeable, array.flags.c_contiguous, array.flags.f_contiguous)
    assert shared(before.values()) == shared(after.values())
    assert not any(np.may_share_memory(one, other) for one in before.values() for other in after.values() if one.size)
    ones, others = list(before.values()), list(after.values())
    for one, mine in zip(ones, others, strict=True):
        assert [one is each for each in ones] == [mine is each for each in others]
    assert (type(moved), type(moved.inners), type(moved.inners[0])) == (Outer, list, Inner)
    assert moved.more[1:] == ("word", 2.5) and moved.inners[0].number == 3


@given(states())
def test_each_begins_where_a_line_of_the_cache_does(state):
    before, after = arrays_of(state), arrays_of(in_one_block(state))
    assert len({id(owner(each)) for each in after.values() if each.size}) <= 1
    for name, array in before.items():
        if array.size and span(array)[0] == span(owner(array))[0]:
            assert span(after[name])[0] % LINE == 0, name


def test_what_is_large_stays_where_it_is():
    large, small = np.zeros(LARGE // 8), np.zeros(LARGE // 8 - 1)
    moved = in_one_block((large, large[3:5], small))
    assert moved[0] is large and moved[1].base is large
    assert moved[2] is not small and not np.may_share_memory(moved[2], small)


def test_memory_with_gaps_stays_where_it_is():
    """An array over every other number of somebody else's memory is not copied: what lies between is not its own."""
    memory = bytearray(range(64))
    gaps = np.ndarray((4,), np.int64, memory, 0, (16,))
    assert in_one_block([gaps])[0] is gaps


def test_what_is_written_to_one_is_written_to_all_that_share_it():
    rows = np.zeros(5, RECORD)
    state = in_one_block((rows, rows["number"], [rows["share"]]))
    state[0]["number"][3] = 7
    state[2][0][:] = 0.5
    assert state[1].tolist() == [0, 0, 0, 7, 0] and state[0]["share"].tolist() == [0.5] * 5
    assert not rows["share"].any()


class Pair(Numbers):
    count: int
    share: float


def test_a_record_is_moved_once_wherever_it_stands():
    pair = Pair(count=3, share=0.5)
    moved = in_one_block((np.arange(3), pair, [pair]))
    assert (moved[1].count, moved[1].share) == (3, 0.5)
    moved[1].count = 4
    assert (moved[2][0].count, pair.count) == (4, 3)
    assert span(moved[1].array)[0] == span(moved[0])[0] + LINE


def test_a_record_is_replaced_by_name():
    pair = Pair(count=3, share=0.5)
    other = np.array([(8, 0.25)], arrays_of((pair,))["/0"].dtype)
    changed = with_arrays((pair,), {"/0": other})
    other["count"] += 1
    assert (changed[0].count, changed[0].share, pair.count) == (9, 0.25, 3)


def test_arrays_are_replaced_by_name():
    state = Outer([Inner(np.zeros(2), np.zeros(1), 4)], np.ones(1), (None,))
    assert list(arrays_of(state)) == ["/inners/0/table", "/inners/0/column", "/rows"]
    other = np.full(2, 8.0)
    changed = with_arrays(state, {**arrays_of(state), "/inners/0/table": other})
    assert changed.inners[0].table is other and changed.rows is state.rows and changed.more == (None,)
    with pytest.raises(KeyError):
        with_arrays(state, {})


def test_the_small_arrays_of_a_federation_lie_in_one_block():
    """Views, local masters' books, and what really is free: none was left where it was built.

    With room for 100,000 messages the block is large itself.
    """
    federation = Federation(global_masters=2, local_masters=2)
    opened = open_federated(plain((0, 1, 1), (0, 1, 1)), fleet_of((1,), (1,)), MEGHA, federation, 1, 1e6, 100.0)
    tables = [each.state for each in opened.services.tables]
    held = (opened.roles, opened.network, opened.simulation, opened.prepared.simulation, opened.due, opened.out, tables)
    owners = [owner(each) for each in arrays_of(held).values() if each.size]
    blocks = [span(each) for each in owners if each.nbytes >= 3 * LARGE]
    assert len(owners) > 800
    assert all(any(first <= span(each)[0] < last for first, last in blocks) for each in owners)


def test_what_changes_queues_is_told_of_what_runs():
    """Not of what was built, and copied into the block."""
    told = []
    architecture = replace(MEGHA, change_queues=lambda roles, instance, file: told.append((roles, instance.simulation)))
    opened = open_federated(plain((0, 1, 1)), fleet_of((1,)), architecture, Federation(global_masters=1), 1, 1e6, 100.0)
    opened.change_queues(TreeFile())
    assert told[0][0] is opened.roles and told[0][1] is opened.simulation
