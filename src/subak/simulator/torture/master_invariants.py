"""The invariants of a global master after every message; letters as in invariants.py."""

import numpy as np

from subak.federation.megha.global_master.gangs import gang_is_settled
from subak.federation.megha.global_master.requests import is_settled
from subak.federation.megha.global_master.state import (
    NEVER_SEEN,
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASE_WAITING,
    PHASES,
)
from subak.federation.megha.ledger import ENTRY_WHOLE
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import OFF
from subak.federation.messages import (
    NOBODY,
    PLACE,
    SETTLE,
)
from subak.placement.claims import TASK_RUNNING as PHYSICALLY
from subak.queues.lanes import ACTIVE_LANES as LANES_ACTIVE
from subak.simulator.federated.by_task import row_of_each, states_by_task
from subak.simulator.federated.network import on_the_way
from subak.simulator.torture.folds import ATTEMPT_OF, ROUND_OF, TASK_OF, Broken, Fold, must
from subak.simulator.torture.watched import Watched

FLY = frozenset((PHASES[PHASE_FLYING], PHASES[PHASE_LEAVING]))


def check_master(watch: Watched, number: int, kind: int) -> None:
    """Check one global master after a message of a kind."""
    mine, table = np.flatnonzero(watch.owner == number), states_by_task(watch.roles)
    check_view(watch, number, mine, table)
    check_lanes(watch, number, mine, table)
    check_gangs(watch, number, table)
    check_idle(watch, number, kind)
    check_rows(watch, number)


def check_rows(watch: Watched, number: int) -> None:
    """(l) A row is that of one open task, or free; nothing of a former one is left in it."""
    tasks, master = watch.roles.submitters[number].tasks, watch.roles.masters[number]
    ever = tasks.counts.tasks_ever
    numbers = tasks.number[:ever]
    is_open = numbers[numbers != NOBODY].tolist()
    must(len(is_open) == len(set(is_open)) == tasks.counts.tasks_open, "l",
         f"global master {number} has rows for tasks {is_open}, and counts {tasks.counts.tasks_open}")
    must(all(watch.owner[task] == number for task in is_open), "l",
         f"of tasks {is_open} some are not of global master {number}")
    free: list[int] = []
    row = tasks.counts.free_task
    while row != NOBODY and len(free) <= ever:
        free.append(row)
        row = int(tasks.next[row])
    of_nobody = np.flatnonzero(numbers == NOBODY).tolist()
    must(sorted(free) == of_nobody, "l", f"rows {free} are listed as free, those of nobody are {of_nobody}")
    busy = master.task["queued"][:ever] | master.task["flying"][:ever]
    stale = np.flatnonzero(busy & (master.task["tenant"][:ever] != numbers + 1)).tolist()
    must(not stale, "l", f"rows {stale} of global master {number} were given back while they were in use")


def check_view(watch: Watched, number: int, mine: np.ndarray, table: np.ndarray) -> None:
    """(d) Its view is a fold of each local master's ledger, plus its launches in flight."""
    master = watch.roles.masters[number]
    reborn = master.counts.incarnation != watch.incarnation[number]
    watch.incarnation[number] = master.counts.incarnation
    flying = mine[table["flying"][mine]]
    phases = [PHASES[phase] for phase in table["phase"][flying].tolist()]
    must(FLY.issuperset(phases), "d", f"tasks {flying.tolist()} fly in phases {phases}")
    for cluster, fold in enumerate(watch.view[number]):
        if reborn:
            fold.forget()
            fold.seen = NEVER_SEEN
        bring_up(watch, number, cluster, fold, mine)
        first, end = watch.span[cluster]
        free, consumed = fold.free.copy(), fold.consumed.copy()
        for task in flying:
            machine = table["machine"][task]
            if first <= machine < end:
                free[:, machine - first] -= watch.request[task]
                consumed[watch.queue[task]] += watch.request[task]
        if not np.array_equal(free, master.fleet.free[:, first:end]):
            raise Broken(differs(watch, number, cluster, free))
        must(np.array_equal(consumed, master.consumed[cluster]), "d",
             f"global master {number} counts other amounts for queues in cluster {cluster} than the ledger")
        if watch.roles.rules.preemption != OFF:
            check_held(watch, number, cluster, fold)
        check_holds(watch, number, cluster, fold)
        check_bins(watch, number, cluster, fold, {int(task): int(table["machine"][task]) for task in flying})
    must(np.array_equal(master.consumed.sum(axis=0), master.total), "d",
         f"global master {number} has totals that are no sums")
    watch.check_summary(master.fleet, 0, master.fleet.free.shape[1], f"global master {number}")


def bring_up(watch: Watched, number: int, cluster: int, fold: Fold, mine: np.ndarray) -> None:
    """Fold what the master has seen since."""
    row = watch.roles.masters[number].cluster[cluster]
    epoch, seen = int(row["epoch"]), int(row["seen"])
    if seen == NEVER_SEEN or (epoch, seen) == (fold.epoch, fold.seen):
        return
    history = watch.history.get((cluster + watch.clusters * (epoch % 2), epoch), [])
    must(seen <= len(history), "d", f"global master {number} has seen version {seen} of epoch {epoch} of cluster "
                                    f"{cluster}, which has {len(history)}")
    if fold.seen == NEVER_SEEN or epoch != fold.epoch:
        begin = max(place for place in range(seen) if history[place][0] == ENTRY_WHOLE)
    else:
        begin = fold.seen
    whole = next((place for place in range(seen - 1, begin - 1, -1) if history[place][0] == ENTRY_WHOLE), begin)
    for place in range(whole, seen):
        fold.apply(history[place], watch.asked)
        watch.entries.append(tuple(history[place][field] for field in (0, TASK_OF, ROUND_OF, ATTEMPT_OF)))
    fold.epoch, fold.seen = epoch, seen


def differs(watch: Watched, number: int, cluster: int, free: np.ndarray) -> str:
    """Say where a view differs."""
    first, end = watch.span[cluster]
    there = watch.roles.masters[number].fleet.free[:, first:end]
    place = int(np.flatnonzero((free != there).any(axis=0))[0])
    return (f"(d) global master {number} believes machine {first + place} has {there[:, place].tolist()} free; its "
            f"ledger and the launches in flight leave {free[:, place].tolist()}")


def check_held(watch: Watched, number: int, cluster: int, fold: Fold) -> None:
    """(d) It knows who holds what."""
    master, (first, end) = watch.roles.masters[number], watch.span[cluster]
    held = set()
    for machine in watch.machines:
        if first <= machine < end:
            for row in watch.rows(master.held.row, master.held.first, machine):
                held.add((machine, int(row["task"]), int(row["attempt"])))
    must(held == fold.held, "d", f"global master {number} differs from its ledger in who holds what: "
                                 f"{sorted(held ^ fold.held)}")


def check_holds(watch: Watched, number: int, cluster: int, fold: Fold) -> None:
    """(d) It knows for whom machines are held back, and its searches leave out those of others, and its own."""
    master, (first, end) = watch.roles.masters[number], watch.span[cluster]
    holding, there = master.holding, fold.holder
    must(np.array_equal(there, holding.holder[first:end]), "d", f"global master {number} has machines of cluster "
         f"{cluster} held back for {holding.holder[first:end].tolist()}, its ledger for {there.tolist()}")
    wanted = holding.wanted[first:end] != NOBODY
    is_nobodys = there == NOBODY
    is_open_to = ((master.fleet.open, is_nobodys & ~wanted), (holding.open, is_nobodys | (there == number)))
    for bits, may in is_open_to:
        is_open = np.unpackbits(bits.astype("<u8").view(np.uint8), bitorder="little")[first:end].astype(bool)
        others = np.flatnonzero(is_open != may).tolist()
        must(not others, "d", f"global master {number} searches other machines of cluster {cluster} than those that "
                              f"are not held back: {others}")
    is_mine = (holding.holder == number) & ((holding.wanted == NOBODY) | (holding.wanted == holding.held_for))
    must(holding.search.differing == (is_mine != (holding.wanted != NOBODY)).sum(), "d",
         f"global master {number} counts {holding.search.differing} machines that differ from what it wants held back")


def check_bins(watch: Watched, number: int, cluster: int, fold: Fold, flying: dict[int, int]) -> None:
    """(d) It knows how many of each class run where, if machines emulate bins."""
    master, (first, end) = watch.roles.masters[number], watch.span[cluster]
    held = [(machine, task) for machine, task, _ in fold.held]
    held += [(machine, task) for task, machine in flying.items()]
    counted = np.zeros_like(master.bins.running)
    for machine, task in held if len(counted) else []:
        if first <= machine < end:
            counted[master.bins.class_of_shape[watch.sim.tasks.shape[task]], machine] += 1
    must(np.array_equal(counted[:, first:end], master.bins.running[:, first:end]), "d",
         f"global master {number} counts other tasks in the bins of cluster {cluster} than the ledger has")


def check_lanes(watch: Watched, number: int, mine: np.ndarray, table: np.ndarray) -> None:
    """(e) Every waiting task is in its lane, once; flags and counts agree."""
    master = watch.roles.masters[number]
    members: list[int] = []
    asked = watch.roles.jobs.asked
    for queue in master.own[: master.counts.own_queues]:
        low, high = master.lane_span[queue]
        active = sorted(master.lanes.active[low : low + master.lane_size[queue, LANES_ACTIVE]].tolist())
        own = np.unique(asked["lane"][asked["queue"] == queue])
        full = [lane for lane in own.tolist() if master.lanes.root[lane] != NOBODY]
        must(low + len(active) <= high, "e", f"queue {queue} has {len(active)} lanes in {high - low} places")
        must(active == full, "e", f"queue {queue} lists lanes {active} as active, {full} hold tasks")
        for lane in full:
            inside = tasks_in(watch, number, int(master.lanes.root[lane]))
            must(all(asked["lane"][task] == lane for task in inside), "e", f"lane {lane} holds {inside}")
            members += inside
    must(len(members) == len(set(members)), "e",
         f"a task is twice in the lanes of global master {number}: {members}")
    flags = mine[table["queued"][mine]].tolist()
    must(sorted(members) == flags, "e", f"in lanes {sorted(members)}, flagged {flags}")
    must(master.counts.queued == len(members), "e", f"{master.counts.queued} noted in lanes, there "
                                                            f"are {len(members)}")
    waiting = mine[(table["phase"][mine] == PHASE_WAITING) & (watch.gang[mine] == NOBODY)]
    apart = set(waiting.tolist()).difference(members)
    rows = row_of_each(watch.roles) if apart else {}
    lost = sorted(task for task in apart if is_settled(master, rows[task]))
    must(not lost or is_settling(watch, number), "e", f"tasks {lost} wait in no lane")


def is_settling(watch: Watched, number: int) -> bool:
    """Whether a global master has yet to go on with what a whole state settles."""
    used = on_the_way(watch.net)
    return bool(((watch.net.flight["kind"][used] == SETTLE) & (watch.net.flight["to"][used] == number)).any())


def tasks_in(watch: Watched, master: int, root: int) -> list[int]:
    """Return the tasks of a lane."""
    lanes, found, open_tasks = watch.roles.masters[master].lanes, [], [root]
    while open_tasks:
        task = open_tasks.pop()
        found.append(int(lanes.number[task]))
        must(len(found) <= len(watch.queue), "e", "a lane is a ring")
        child = int(lanes.child[task])
        while child != NOBODY:
            open_tasks.append(child)
            child = int(lanes.sibling[child])
    return found


def check_gangs(watch: Watched, number: int, table: np.ndarray) -> None:
    """(e) Gangs count their members rightly, none of a gang runs while another is only held or requested."""
    master, tasks = watch.roles.masters[number], watch.roles.submitters[number].tasks
    for gang, row in enumerate(watch.roles.jobs.gang_row):
        is_here = row != NOBODY and watch.owner[np.flatnonzero(watch.gang == gang)[0]] == number
        if not is_here or master.gang["tenant"][row] != tasks.gangs["number"][row] + 1:
            continue
        these = members_of(watch, tasks, row)
        phase = table["phase"][these]
        waiting = int(np.isin(phase, (PHASE_WAITING, PHASE_ENDED)).sum())
        must(master.gang["waiting"][row] == waiting, "e", f"gang {gang} counts {master.gang['waiting'][row]} "
                                                           f"that wait or have ended, there are {waiting}")
        apart = np.isin(phase, (PHASE_FLYING, PHASE_HELD)).any() and (phase == PHASE_RUNNING).any()
        must(not apart, "e", f"gang {gang} starts in parts: {[PHASES[code] for code in phase]}")
        settled = gang_is_settled(master, tasks, row)
        all_wait = waiting == watch.roles.jobs.gang_size[gang] and (phase == PHASE_WAITING).any()
        if settled and all_wait and not is_settling(watch, number):
            must(table["queued"][these].any(), "e", f"gang {gang} waits in no lane")
        for task in these[(watch.sim.claims.status[these] == PHYSICALLY)]:
            must(table["phase"][task] not in (PHASE_FLYING, PHASE_HELD), "e",
                 f"task {task} of gang {gang} runs before its gang may go")


def members_of(watch: Watched, tasks: OpenTasks, gang: int) -> np.ndarray:
    """Return the tasks of a gang that were submitted."""
    found: list[int] = []
    row = int(tasks.gangs[gang]["first"])
    while row != NOBODY:
        found.append(int(tasks.number[row]))
        must(len(found) <= len(watch.queue), "l", f"the list of gang {gang} is a ring")
        row = int(tasks.next[row])
    return np.array(found, np.int64)


def check_idle(watch: Watched, number: int, kind: int) -> None:
    """(f) A turn that requested nothing has left the view and the tasks as they were."""
    master = watch.roles.masters[number]
    now = (master.fleet.free.copy(), master.total.copy(), master.task["phase"].copy(),
           master.cluster["numbers"].sum())
    if kind == PLACE and number in watch.before and now[3] == watch.before[number][3]:
        for before, after in zip(watch.before[number], now, strict=True):
            must(np.array_equal(before, after), "f", f"global master {number} changed in a turn without a request")
    watch.before[number] = now
