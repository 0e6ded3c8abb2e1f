"""Finds the tasks for which machines are to be held back (hold_back.py), and asks local masters."""
import numpy as np

from subak.federation.megha.global_master.hold_back import (
    FOREVER,
    HELD_MAX,
    as_held_for,
    differs,
    let_go,
    look_later,
    want,
)
from subak.federation.megha.global_master.phases import take_turn_if_news
from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Rules, Topology, speaker
from subak.federation.messages import HOLD_BACK, NOBODY, PASSED_OVER, Outbox, go_on, is_filling, post
from subak.fleet.index import SEEN
from subak.marks import inlined, noinline
from subak.placement.hold_back import NOT_PASSED_OVER, TIMES_MAX, choose, note_room

EARLY = 1e-6  # seconds by which a timer may be early, of what rounding leaves


@noinline
def on_passed_over(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, now: float, message: np.void, out: Outbox
) -> None:
    """Settle for whom machines are held back, and ask local masters for what differs from it."""
    holding, first = master.holding, message["machine"]
    if message["count"] != holding.search.which_look:
        return
    if first == NOBODY:
        choose_lane(master, rules, tasks, now)
        first = 0
    first = ask_for_holds(master, topology, first, now, out)
    if first < holding.wanted.size:
        go_on(out, PASSED_OVER, master.number, first)["count"] = holding.search.which_look
        return
    delay = next_look(master, rules, now)
    holding.search.watching = 0
    if delay < FOREVER:
        look_later(holding, master.number, delay, out)
    take_turn_if_news(master, out)


@noinline
def choose_lane(master: GlobalMaster, rules: Rules, tasks: OpenTasks, now: float) -> None:
    """Hold machines back for the lane that has been passed over longest, where that is long enough.

    Passed over is nobody of a lane whose tasks have all been placed, or withdrawn. Who was held for in vain for long
    has its turn again after as long; who is too large for all machines that are there, after a while.
    """
    holding, root = master.holding, master.lanes.root
    for lane in range(holding.since.size):
        if holding.since[lane] < NOT_PASSED_OVER and root[lane] == NOBODY:
            holding.since[lane] = NOT_PASSED_OVER
            if holding.search.for_lane == lane:
                let_go(master.fleet, holding, master.number)
    lane = longest_passed_over(master)
    if is_behind(master, rules, holding.since[lane]):
        let_go(master.fleet, holding, master.number)
        return
    is_early = holding.search.for_lane != NOBODY and now + EARLY < holding.search.look_at
    if is_early or now + EARLY < holding.since[lane] + rules.hold_back_after:
        return
    times = holding.search.in_vain + 1 if holding.search.for_lane == lane else 0
    let_go(master.fleet, holding, master.number)
    count = machines_for(master, tasks, root[lane], min(times, TIMES_MAX))
    if count == 0 or times == HELD_MAX:
        holding.since[lane] = now + max(times, 1) * patience(rules) - rules.hold_back_after
        return
    for place in range(count):
        want(master.fleet, holding, master.number, holding.room.chosen[place], tasks.number[root[lane]])
    holding.frontier[SEEN, tasks.shape[root[lane]]] = 0  # so that nothing was searched in vain
    holding.search.for_lane, holding.search.in_vain, holding.search.look_at = lane, times, now + patience(rules)


@inlined
def is_behind(master: GlobalMaster, rules: Rules, since: float) -> bool:
    """Whether another master has a machine held back for what has been passed over for longer than *since*."""
    holding = master.holding
    for machine in range(holding.holder.size):
        holder = holding.holder[machine]
        if holder != NOBODY and holder != master.number:  # noqa: PLR1714  (numbers of two types)
            if abs(holding.held_since[machine] - since) <= 2.0 * rules.heartbeat:
                if holder < master.number:
                    return True
            elif holding.held_since[machine] < since:
                return True
    return False


@inlined
def longest_passed_over(master: GlobalMaster) -> int:
    """Return the lane that has been passed over longest, the first of equals; any where none is."""
    longest = 0
    for lane in range(master.holding.since.size):
        if master.holding.since[lane] < master.holding.since[longest]:
            longest = lane
    return longest


@inlined
def patience(rules: Rules) -> float:
    """Return for how long machines are held back, seconds, before more are, or it was in vain."""
    return max(rules.hold_back_after, rules.heartbeat)


@inlined
def machines_for(master: GlobalMaster, tasks: OpenTasks, task: int, times: int) -> int:
    """Choose machines for a task, or its gang, *times* doubled; return how many, 0 where all could not hold it.

    Those that another master has held back are chosen only where the others could not hold it.
    """
    holding, gang, shape = master.holding, tasks.gang[task], tasks.shape[task]
    count = 1 if gang == NOBODY else int(tasks.gangs[gang]["size"])
    note_room(as_held_for(master.fleet, holding, holding.open), tasks, holding.room, shape, count)
    if holding.room.idle.sum() < count:
        note_room(as_held_for(master.fleet, holding, holding.everything), tasks, holding.room, shape, count)
    if holding.room.idle.sum() < count:
        return 0
    return choose(holding.room, count << times, count)


@inlined
def ask_for_holds(master: GlobalMaster, topology: Topology, first: int, now: float, out: Outbox) -> int:
    """Ask local masters to hold back what is wanted, and nothing else, from a machine on; return how far it went."""
    holding = master.holding
    for machine in range(first, holding.wanted.size):
        if is_filling(out):
            return machine
        if differs(holding, master.number, machine):
            cluster = topology.machine[machine]["cluster"]
            instance = speaker(topology, cluster, master.cluster[cluster]["epoch"])
            row = post(out, HOLD_BACK, master.number, instance, NOBODY, machine)
            row["incarnation"], row["epoch"] = master.counts.incarnation, master.cluster[cluster]["epoch"]
            row["seen"] = master.cluster[cluster]["seen"]
            if holding.wanted[machine] != NOBODY:
                seconds = max(now - holding.since[holding.search.for_lane], 0.0)
                row["task"], row["delay"] = holding.wanted[machine], seconds
    return int(holding.wanted.size)


@inlined
def next_look(master: GlobalMaster, rules: Rules, now: float) -> float:
    """Return after how many seconds to look again; inf where nobody is passed over and nothing is held back."""
    holding = master.holding
    at, soon = holding.since[longest_passed_over(master)] + rules.hold_back_after, now + rules.heartbeat
    if holding.search.for_lane != NOBODY:
        at = holding.search.look_at
    if at <= now:  # another master comes first, or there are others who have been passed over as long
        return rules.heartbeat
    if holding.search.for_lane != NOBODY or holding.search.differing > 0:
        at = min(at, soon)
    return float(at - now)
