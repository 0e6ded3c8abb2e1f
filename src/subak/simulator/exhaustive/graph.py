"""The graph of states of a federation: its tables, and the states seen.

A state is a row of numbers: the state of each role, what is true of the tasks and roles beyond what they know, what is
left of each budget, and the messages and timers under way, sorted, each once. What a role does with a message is looked
up; where it is not known yet the walk stops and says what it lacks, so that handlers are called once for each state of
a role and message, and not for each state of the federation.
"""
from typing import NamedTuple, SupportsInt

import numpy as np

from subak.marks import inlined, noinline

NONE_THERE = -1
# a row's words behind the roles' states
TRUTH, BUDGET, FLIGHT = range(3)
TASKS_MAX, BITS = 4, 4  # bits of a budget, and of each set of tasks in TRUTH
RUNNING_AT, FINISHED_AT, EXCUSED_AT, DOWN_AT = 0, 4, 8, 12
TASK_BITS = 15
# of `tally`
(STATES, HEAD, EDGES, MISSES, LACKS, MOVES, CUTS, BAD, BAD_STATE, WIDEST, LOOKAHEAD) = range(11)
COUNTS = 11
COMPLETE, FULL, GRAPH_MISSING, BROKEN, TOO_WIDE, PAUSED = range(6)  # why a walk comes back
(FINE, TWICE, AGAIN, DISAGREES, BOOKS, OVERFULL, STRAY) = range(7)  # what is wrong with a state
WRONGS = ("", "a task runs twice at once", "a task that has finished runs again",
          "a worker and its executor disagree about what runs", "a local master's books are not what its attempts hold",
          "a machine is oversubscribed", "an attempt begins that is no task's")
IMPOSSIBLE = -2  # beside budgets
LOST_LEFT, DOUBLED_LEFT, LEASES_LEFT, TAKEOVERS_LEFT, CRASHES_LEFT, EARLY_LEFT, FAILURES_LEFT = range(7)  # budgets
DISABLED, CUT = -1, -2  # instead of a role's next state
NEEDS_NOTHING, NEEDS_DOWN, NEEDS_QUIET, NEEDS_SPEAKER, NEEDS_RIVAL = range(5)
DELIVERED, CRASH, RETURN = range(3)  # of a step
MOST_MORE = 512  # states and edges that one state may add
MISSES_MAX = 512


class Graph(NamedTuple):
    """All tables of a walk; those that grow are replaced as a whole."""

    slots: int  # roles
    first_local: int  # slot of the first local master; before it are the global masters, each with its submitter
    width: int  # of a row
    early: int  # whether timers that ring early take from a budget
    row: np.ndarray  # int32[state, word]
    parent: np.ndarray  # int32[state]
    place: np.ndarray  # int32[hash], a state + 1, or 0
    edge_first: np.ndarray  # int64[state + 1], of the moves that are no faults
    edge: np.ndarray  # int32[edge], where they lead
    is_cut: np.ndarray  # uint8[state], whether a move of it was not followed
    message_to: np.ndarray  # int32[message], a slot
    crosses: np.ndarray  # uint8[message], whether it crosses the network
    outlives: np.ndarray  # uint8[message], whether it is for a submitter, which is not down when its global master is
    group: np.ndarray  # int32[message], the same for all of a kind from one role to another
    way_first: np.ndarray  # int32[message + 1]
    way: np.ndarray  # int32[place], variants: the ways to deliver a message
    cost: np.ndarray  # int32[variant], the budget that it takes from
    needs: np.ndarray  # int32[variant]
    needs_slot: np.ndarray  # int32[variant]
    repeats: np.ndarray  # uint8[variant], whether it is a timer that waits while what it would send is still under way
    lapse: np.ndarray  # int32[variant], the slot of a worker that is declared lost
    also_first: np.ndarray  # int32[variant + 1]
    also_slot: np.ndarray  # int32[effect]
    also: np.ndarray  # int32[effect], a variant that happens to another role at the same time
    crash: np.ndarray  # int32[slot], the variant, NONE_THERE where it may not
    come_back: np.ndarray  # int32[slot], the variant
    knows: np.ndarray  # int32[role state], tasks that it remembers to have finished
    speaks: np.ndarray  # uint8[role state], whether it is a local master that speaks for its cluster
    epoch: np.ndarray  # int32[role state], of a local master or worker
    memo_key: np.ndarray  # int64[hash]: role state * 2^20 + variant, + 1, or 0
    memo: np.ndarray  # int32[hash], a result, NONE_THERE where it is asked for
    result_key: np.ndarray  # int64[result]
    next_state: np.ndarray  # int32[result], a role state, DISABLED or CUT
    wrong: np.ndarray  # int32[result]
    out_first: np.ndarray  # int32[result + 1]
    out: np.ndarray  # int32[answer], messages
    halted_first: np.ndarray  # int32[result + 1]
    halted: np.ndarray  # int32[halt], timers of the executor that are stopped
    begins: np.ndarray  # int32[result], tasks
    halts: np.ndarray  # int32[result]
    ends: np.ndarray  # int32[result]
    is_void: np.ndarray  # uint8[result], whether the message does nothing, now or ever: it is not kept under way
    used: np.ndarray  # uint8[result], whether a move of the walk was this
    voided: np.ndarray  # uint8[result], whether a message was not kept for it
    miss: np.ndarray  # int64[miss, 2]: role state, variant
    child: np.ndarray  # int32[word], the row that is being made
    tally: np.ndarray  # int64[COUNTS]


VARIANT_BITS = 20


@inlined
def look_up(graph: Graph, state: int, variant: int) -> int:
    """Return the result of a variant in a role's state; NONE_THERE where it is not known, which is noted."""
    key = (np.int64(state) << VARIANT_BITS) + variant + 1
    mask = graph.memo_key.size - 1
    place = mixed(key) & mask
    while graph.memo_key[place] != 0:
        if graph.memo_key[place] == key:
            result = graph.memo[place]
            if result == NONE_THERE:
                graph.tally[LACKS] += 1
            return int(result)
        place = (place + 1) & mask
    graph.tally[LACKS] += 1
    if graph.tally[MISSES] < graph.miss.shape[0]:
        graph.memo_key[place], graph.memo[place] = key, NONE_THERE
        graph.miss[graph.tally[MISSES], 0], graph.miss[graph.tally[MISSES], 1] = state, variant
        graph.tally[MISSES] += 1
    return NONE_THERE


@inlined
def mixed(key: SupportsInt) -> int:
    """Return a hash of a number that is not negative."""
    number = (int(key) * 0x2545F4914F6CDD1D) & 0x7FFFFFFFFFFFFFFF
    return (number ^ (number >> 31)) & 0x7FFFFFFFFFFFFFFF


@inlined
def hash_of(row: np.ndarray, width: int) -> int:
    """Return a hash of a row."""
    number = 0
    for word in range(width):
        number = ((number ^ (int(row[word]) + 1)) * 0x2545F4914F6CDD1D) & 0x7FFFFFFFFFFFFFFF
        number ^= number >> 29
    return number


@noinline
def add_state(graph: Graph, parent: int) -> int:
    """Return the number of the state that was made, which is added if it is new."""
    child, mask = graph.child, graph.place.size - 1
    place = hash_of(child, graph.width) & mask
    while graph.place[place] != 0:
        known = graph.place[place] - 1
        same = True
        for word in range(graph.width):
            if graph.row[known, word] != child[word]:
                same = False
                break
        if same:
            return int(known)
        place = (place + 1) & mask
    new = graph.tally[STATES]
    graph.place[place] = new + 1
    for word in range(graph.width):
        graph.row[new, word] = child[word]
    graph.parent[new] = parent
    graph.tally[STATES] += 1
    return int(new)


# -- tables that have grown --------------------------------------------------------------------------------------------


def place_states(graph: Graph, _now: float, states: int) -> int:
    """Enter the first *states* into an empty table."""
    mask = graph.place.size - 1
    for number in range(states):
        place = hash_of(graph.row[number], graph.width) & mask
        while graph.place[place] != 0:
            place = (place + 1) & mask
        graph.place[place] = number + 1
    return 0


def place_results(graph: Graph, first: float, last: int) -> int:
    """Enter results *first* to *last* - 1: where they were asked for, or into an empty table."""
    mask = graph.memo_key.size - 1
    for result in range(int(first), last):
        key = graph.result_key[result]
        place = mixed(key) & mask
        while graph.memo_key[place] not in (0, key):
            place = (place + 1) & mask
        graph.memo_key[place], graph.memo[place] = key, result
    return 0
