"""The breadth-first walk over a graph, by looked-up moves."""
import numpy as np

from subak.marks import inlined, noinline
from subak.simulator.exhaustive.graph import (
    AGAIN,
    BAD,
    BAD_STATE,
    BITS,
    BROKEN,
    BUDGET,
    COMPLETE,
    CRASH,
    CUT,
    CUTS,
    DELIVERED,
    DOUBLED_LEFT,
    DOWN_AT,
    EARLY_LEFT,
    EDGES,
    EXCUSED_AT,
    FINE,
    FINISHED_AT,
    FLIGHT,
    FULL,
    GRAPH_MISSING,
    HEAD,
    IMPOSSIBLE,
    LOOKAHEAD,
    LOST_LEFT,
    MISSES,
    MOST_MORE,
    MOVES,
    NEEDS_DOWN,
    NEEDS_NOTHING,
    NEEDS_QUIET,
    NEEDS_RIVAL,
    NONE_THERE,
    PAUSED,
    RETURN,
    STATES,
    TASK_BITS,
    TOO_WIDE,
    TRUTH,
    TWICE,
    WIDEST,
    Graph,
    add_state,
    look_up,
)


@inlined
def is_down(graph: Graph, row: np.ndarray, slot: int) -> bool:
    """Whether a role has crashed and not come back."""
    return bool((row[graph.slots + TRUTH] >> (DOWN_AT + slot)) & 1)


@inlined
def finds_nobody(graph: Graph, row: np.ndarray, message: int) -> bool:
    """Whether a message's receiver is down; the submitter beside a global master is not."""
    return is_down(graph, row, graph.message_to[message]) and not graph.outlives[message]


@inlined
def left(graph: Graph, row: np.ndarray, budget: int) -> int:
    """Return how often something may still happen."""
    return (row[graph.slots + BUDGET] >> (BITS * budget)) & TASK_BITS


@noinline
def add_to_flight(graph: Graph, message: int) -> None:
    """Let a message be under way; it is there once. The row's last word stays empty, unless it is too wide."""
    child, place = graph.child, graph.slots + FLIGHT
    while place < graph.width and child[place] != NONE_THERE and child[place] < message:
        place += 1
    if place < graph.width and child[place] == message:
        return
    moved = message
    while place < graph.width:
        child[place], moved = moved, child[place]
        if moved == NONE_THERE:
            return
        place += 1
    graph.tally[WIDEST] = graph.width + 1


@noinline
def take_from_flight(graph: Graph, message: int) -> None:
    """Let a message be under way no more, if it is."""
    child, place = graph.child, graph.slots + FLIGHT
    while place < graph.width and child[place] != message:
        place += 1
    while place < graph.width:
        child[place] = child[place + 1] if place + 1 < graph.width else NONE_THERE
        place += 1


@noinline
def step(  # noqa: PLR0913, PLR0917  (a move has many parts)
    graph: Graph, number: int, slot: int, variant: int, gone: int, charge: int, kind: int, adds: bool
) -> int:
    """Make the state to which a move leads, and add it; return whether the move needs something that is lacking.

    *gone*: the message that is no more under way, NONE_THERE where it stays; *charge*: the budget that it takes from.
    """
    row, result, wrong = graph.row[number], NONE_THERE, FINE
    if variant != NONE_THERE:
        result = look_up(graph, row[slot], variant)
        if result == NONE_THERE:
            return 1
        charge = price(graph, row, variant, result, charge)
        if charge == IMPOSSIBLE:
            note_cut(graph, number, result, adds)
            return 0
    begin_child(graph, row, gone, charge)
    if result != NONE_THERE:
        if happen(graph, row, slot, variant, result, kind, adds):
            return 1
        wrong = note_truth(graph, result)
    if adds:
        add_move(graph, number, charge, wrong)
    return 0


@inlined
def begin_child(graph: Graph, row: np.ndarray, gone: int, charge: int) -> None:
    """Begin a state as another is, less a message and what a move takes from a budget."""
    for word in range(graph.width):
        graph.child[word] = row[word]
    if gone != NONE_THERE:
        take_from_flight(graph, gone)
    if charge != NONE_THERE:
        graph.child[graph.slots + BUDGET] -= 1 << (BITS * charge)


@inlined
def happen(
    graph: Graph, row: np.ndarray, slot: int, variant: int, result: int, kind: int, adds: bool
) -> bool:
    """Let what comes of a variant come to the state that is being made; return whether something is lacking."""
    child = graph.child
    graph.used[result] |= np.uint8(adds)
    child[slot] = graph.next_state[result]
    for place in range(graph.halted_first[result], graph.halted_first[result + 1]):
        take_from_flight(graph, graph.halted[place])
    for place in range(graph.out_first[result], graph.out_first[result + 1]):
        add_to_flight(graph, graph.out[place])
    if happen_also(graph, variant, adds):
        return True
    if kind == CRASH:
        go_down(graph, row, slot)
    elif kind == RETURN:
        child[graph.slots + TRUTH] &= ~(1 << (DOWN_AT + slot))
    if graph.lapse[variant] != NONE_THERE:
        excuse(graph, graph.lapse[variant], 0)
    return drop_void(graph, result, slot, graph.also_first[variant] < graph.also_first[variant + 1])


@inlined
def go_down(graph: Graph, row: np.ndarray, slot: int) -> None:
    """Let a role be down, with its timers and what it remembered."""
    graph.child[graph.slots + TRUTH] |= 1 << (DOWN_AT + slot)
    drop_timers(graph, slot)
    excuse(graph, NONE_THERE, graph.knows[row[slot]] if slot < graph.first_local else 0)


@inlined
def note_cut(graph: Graph, number: int, result: int, adds: bool) -> None:
    """Note that a move from a state is not followed, if its numbers are why."""
    if adds and graph.next_state[result] == CUT:
        graph.is_cut[number] = 1
        graph.tally[CUTS] += 1


@inlined
def add_move(graph: Graph, number: int, charge: int, wrong: int) -> None:
    """Add the state that was made, and the move to it; note what is wrong with it."""
    graph.tally[MOVES] += 1
    new = add_state(graph, number)
    if charge == NONE_THERE and new != number:
        graph.edge[graph.tally[EDGES]] = new
        graph.tally[EDGES] += 1
    if wrong != FINE and graph.tally[BAD] == FINE:
        graph.tally[BAD], graph.tally[BAD_STATE] = wrong, new


@inlined
def price(graph: Graph, row: np.ndarray, variant: int, result: int, charge: int) -> int:
    """Return the budget that a variant takes from, *charge* unless it is a timer that rings early, or IMPOSSIBLE."""
    if graph.next_state[result] < 0:
        return IMPOSSIBLE
    if charge != NONE_THERE or not graph.repeats[variant]:
        return charge
    for at in range(graph.slots + FLIGHT, graph.width):
        message = row[at]
        if message == NONE_THERE:
            return NONE_THERE
        if graph.crosses[message]:
            if graph.early:
                return EARLY_LEFT if left(graph, row, EARLY_LEFT) > 0 else IMPOSSIBLE
            if is_like_an_answer(graph, result, message):
                return IMPOSSIBLE
    return NONE_THERE


@inlined
def is_like_an_answer(graph: Graph, result: int, message: int) -> bool:
    """Whether a message is of a kind, and from whom and to whom, an answer is."""
    for place in range(graph.out_first[result], graph.out_first[result + 1]):
        answer = graph.out[place]
        if graph.crosses[answer] and graph.group[message] == graph.group[answer]:
            return True
    return False


@inlined
def happen_also(graph: Graph, variant: int, adds: bool) -> bool:
    """Let what happens to other roles at the same time happen; return whether something is lacking."""
    lacking = False
    for place in range(graph.also_first[variant], graph.also_first[variant + 1]):
        slot = graph.also_slot[place]
        if not is_down(graph, graph.child, slot):
            result = look_up(graph, graph.child[slot], graph.also[place])
            if result == NONE_THERE:
                lacking = True
            else:
                graph.used[result] |= np.uint8(adds)
                graph.child[slot] = graph.next_state[result]
    return lacking


@noinline
def drop_void(graph: Graph, result: int, changed: int, several: bool) -> bool:
    """Drop messages that do nothing, now or ever, of those whose receiver has changed or that were just sent.

    Return whether something is lacking. *several*: whether other roles than *changed* have.
    """
    child, place = graph.child, graph.slots + FLIGHT
    while place < graph.width and child[place] != NONE_THERE:
        message = child[place]
        slot = graph.message_to[message]
        if (several or slot == changed or is_answer(graph, result, message)) and not is_down(graph, child, slot):
            met = look_up(graph, child[slot], graph.way[graph.way_first[message]])
            if met == NONE_THERE:
                return True
            if graph.is_void[met]:
                graph.voided[met] = 1
                take_from_flight(graph, message)
                continue
        place += 1
    return False


@inlined
def is_answer(graph: Graph, result: int, message: int) -> bool:
    """Whether a message was just sent."""
    for place in range(graph.out_first[result], graph.out_first[result + 1]):  # noqa: SIM110
        if graph.out[place] == message:
            return True
    return False


@inlined
def drop_timers(graph: Graph, slot: int) -> None:
    """Drop all timers of a role, which is down; not those of a submitter beside it, which are on disk."""
    child, place = graph.child, graph.slots + FLIGHT
    while place < graph.width and child[place] != NONE_THERE:
        message = child[place]
        if graph.crosses[message] == 0 and graph.message_to[message] == slot and not graph.outlives[message]:
            take_from_flight(graph, message)
        else:
            place += 1


@inlined
def excuse(graph: Graph, silent: int, noted: int) -> None:
    """Excuse a second run of tasks whose end no role remembers, as decision 11 does.

    *silent*: slot of a worker that was not heard for a lease: what it remembers does not count. *noted*: tasks whose
    end a global master had noted that crashed: local masters may forget it, and then heed no worker's word.
    """
    child, slots, known = graph.child, graph.slots, 0
    for slot in range(slots):
        if slot != silent and (slot < graph.first_local or not is_down(graph, child, slot)):
            remembered = graph.knows[child[slot]]  # of a global master that is down: its submitter's
            known |= remembered & ~noted if slot >= graph.first_local else remembered
    finished = (child[slots + TRUTH] >> FINISHED_AT) & TASK_BITS
    child[slots + TRUTH] |= (finished & ~known) << EXCUSED_AT


@inlined
def note_truth(graph: Graph, result: int) -> int:
    """Note which tasks begin and end; return what is wrong with the state that is being made."""
    child, at = graph.child, graph.slots + TRUTH
    truth = child[at] & ~(graph.halts[result] | graph.ends[result])
    truth |= graph.ends[result] << FINISHED_AT
    begins = graph.begins[result]
    wrong = graph.wrong[result]
    if begins & truth:
        wrong = TWICE
    elif begins & (truth >> FINISHED_AT) & ~(truth >> EXCUSED_AT):
        wrong = AGAIN
    child[at] = truth | begins
    return int(wrong)


@inlined
def may(graph: Graph, row: np.ndarray, slot: int, variant: int) -> bool:
    """Whether a variant's budget is not used up, and the other role that it looks at is as it must be.

    A local master hears nothing of another that is down, does not speak, or speaks in an earlier epoch than its own.
    """
    if graph.cost[variant] != NONE_THERE and left(graph, row, graph.cost[variant]) == 0:
        return False
    needs, other = graph.needs[variant], graph.needs_slot[variant]
    if needs == NEEDS_NOTHING:
        return True
    down = is_down(graph, row, other)
    if needs == NEEDS_DOWN:
        return down
    if needs == NEEDS_RIVAL:
        return not down and obeys_rival(graph, row, slot, other)
    quiet = down or graph.speaks[row[other]] == 0 or graph.epoch[row[other]] < graph.epoch[row[slot]]
    return quiet == (needs == NEEDS_QUIET)


@inlined
def obeys_rival(graph: Graph, row: np.ndarray, slot: int, worker: int) -> bool:
    """Whether a worker obeys the other local master of the pair, which speaks: it hears it, and not this one."""
    other = 2 * graph.first_local + 1 - slot
    heard = not is_down(graph, row, other) and graph.speaks[row[other]] != 0
    return bool(heard and graph.epoch[row[worker]] == graph.epoch[row[other]])


@noinline
def expand(graph: Graph, number: int, adds: bool) -> int:
    """Make all moves from a state; return how many need what is lacking."""
    lacking, row, slots = 0, graph.row[number], graph.slots
    for place in range(slots + FLIGHT, graph.width):
        if row[place] == NONE_THERE:
            break
        lacking += deliver(graph, number, row[place], adds)
    for slot in range(slots):
        crash, come_back = graph.crash[slot], graph.come_back[slot]
        if is_down(graph, row, slot):
            if come_back != NONE_THERE:
                lacking += step(graph, number, slot, come_back, NONE_THERE, NONE_THERE, RETURN, adds)
        elif crash != NONE_THERE and may(graph, row, slot, crash):
            lacking += step(graph, number, slot, crash, NONE_THERE, graph.cost[crash], CRASH, adds)
    return lacking


@inlined
def deliver(graph: Graph, number: int, message: int, adds: bool) -> int:
    """Make the moves in which a message comes, or a timer rings, in each way; comes twice, or is lost."""
    lacking, row, slot = 0, graph.row[number], graph.message_to[message]
    if finds_nobody(graph, row, message):
        return step(graph, number, slot, NONE_THERE, message, NONE_THERE, DELIVERED, adds)
    for way in range(graph.way_first[message], graph.way_first[message + 1]):
        variant = graph.way[way]
        if may(graph, row, slot, variant):
            lacking += step(graph, number, slot, variant, message, graph.cost[variant], DELIVERED, adds)
    if graph.crosses[message]:
        first = graph.way[graph.way_first[message]]
        if left(graph, row, DOUBLED_LEFT) > 0:
            lacking += step(graph, number, slot, first, NONE_THERE, DOUBLED_LEFT, DELIVERED, adds)
        if left(graph, row, LOST_LEFT) > 0:
            lacking += step(graph, number, slot, NONE_THERE, message, LOST_LEFT, DELIVERED, adds)
    return lacking


def walk(graph: Graph, _now: float, most: int) -> int:
    """Expand states, breadth first, up to number *most*; return why it stops."""
    count = graph.tally
    count[MISSES] = 0
    while count[HEAD] < count[STATES]:
        if count[HEAD] >= most:
            return PAUSED
        if count[STATES] + MOST_MORE > graph.row.shape[0] or count[EDGES] + MOST_MORE > graph.edge.size:
            return FULL
        edges, moves, cuts = count[EDGES], count[MOVES], count[CUTS]
        if expand(graph, count[HEAD], True) > 0:
            count[EDGES], count[MOVES], count[CUTS] = edges, moves, cuts
            look_ahead(graph)
            return GRAPH_MISSING
        if count[WIDEST] > graph.width:
            return TOO_WIDE
        count[HEAD] += 1
        graph.edge_first[count[HEAD]] = count[EDGES]
        if count[BAD] != FINE:
            return BROKEN
    return COMPLETE


@inlined
def look_ahead(graph: Graph) -> None:
    """Note what the next states will lack, so that it is made good at once."""
    count = graph.tally
    for number in range(count[HEAD] + 1, min(count[STATES], count[HEAD] + 1 + count[LOOKAHEAD])):
        if count[MISSES] >= graph.miss.shape[0]:
            return
        expand(graph, number, False)
