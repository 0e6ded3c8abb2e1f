"""What must hold after every step of a central run; passed as ``simulate(..., check=check)``. Messages have numbers."""
import numpy as np

from subak.fleet.index import first_block
from subak.fleet.state import BLOCK, FREE_WHEN_ABSENT
from subak.placement.claims import (
    STATUSES,
    TASK_BLOCKED,
    TASK_FINISHED,
    TASK_NOT_ARRIVED,
    TASK_RUNNING,
    TASK_UNPLACEABLE,
    TASK_WAITING,
)
from subak.queues.lanes import ACTIVE_LANES, NOBODY
from subak.simulator.engine.heap import SIZE


def check(simulation, lanes):
    """Every rule that holds for every scheduler."""
    check_world(simulation, lanes)
    check_lanes(simulation, lanes)


def check_world(simulation, _):
    """Every rule but that who waits is in a lane: gangs are elsewhere."""
    check_amounts(simulation)
    check_summaries(simulation.fleet)
    check_frontiers(simulation)
    check_counts(simulation)
    check_attempts(simulation)
    check_shared(simulation)
    check_stages(simulation)


def work_conserving(simulation, lanes):
    """Every rule, and nobody waits who fits somewhere."""
    check(simulation, lanes)
    for task in np.flatnonzero(simulation.claims.status == TASK_WAITING):
        machines = fitting(simulation, task)
        assert machines.size == 0, f"task {task} waits at {now(simulation)} but fits machines {machines.tolist()}"


def head_is_stuck(simulation, lanes):
    """Every rule of a strict order: one lane, and its first task fits nowhere."""
    check(simulation, lanes)
    assert lanes.root.size == 1, f"a strict order has one lane, this one has {lanes.root.size}"
    head = int(lanes.root[0])
    if head != NOBODY:
        machines = fitting(simulation, head)
        assert machines.size == 0, f"task {head} is first at {now(simulation)} but fits machines {machines.tolist()}"


class Watch:
    """A check with a memory: what is over stays over, and time and attempts only grow."""

    def __init__(self, rule=check):
        self.rule = rule
        self.before = None
        self.steps = 0

    def __call__(self, simulation, lanes):
        self.rule(simulation, lanes)
        state = (now(simulation), simulation.claims.status.copy(), simulation.progress.attempts.copy(),
                 simulation.progress.event.copy())
        if self.before is not None:
            self.compare(self.before, state)
        self.before = state
        self.steps += 1

    @staticmethod
    def compare(before, after):
        (time, status, attempts, finish), (time_now, status_now, attempts_now, finish_now) = before, after
        assert time_now >= time, f"time went back from {time} to {time_now}"
        assert (attempts_now >= attempts).all(), f"attempts fell at {time_now}"
        over = (status == TASK_FINISHED) | (status == TASK_UNPLACEABLE)
        assert (status_now[over] == status[over]).all(), f"a task that was over changed at {time_now}"
        ended = status == TASK_FINISHED
        assert (finish_now[ended] == finish[ended]).all(), f"a finish in the past changed at {time_now}"


def now(simulation):
    return simulation.clock.now


def fitting(simulation, task):
    """The machines that meet the task's constraints and have its request free: by hand, without the index."""
    fleet, tasks = simulation.fleet, simulation.tasks
    shape = tasks.shape[task]
    request = tasks.request[:, shape]
    enough = (fleet.free[:, : fleet.machines] >= request[:, None]).all(axis=0)
    words = fleet.allowed[tasks.constraint_set[shape]].tolist()
    allowed = [words[machine // BLOCK] >> (machine % BLOCK) & 1 == 1 for machine in range(fleet.machines)]
    return np.flatnonzero(enough & np.array(allowed))


def far_factor(inputs, task, machine):
    """What the run time is multiplied by for where the input lies."""
    if not inputs.holder.shape[1]:
        return 1.0
    racks = {inputs.rack[each] for each in inputs.holder[:, task] if each >= 0} - {-1}
    near = 0 if machine in inputs.holder[:, task] else 1 if inputs.rack[machine] in racks else 2
    return inputs.factor[near, task]


def end_of(simulation, task):
    """When the task's attempt ends: behind the shuffle and its inputs, the run time times its machine's factor.

    One that uses more than it asked for is ended when a part of its run time has passed.
    """
    speeds, machine, start = simulation.speeds, simulation.progress.machine[task], simulation.progress.start[task]
    factor = speeds.factor[speeds.group[task]][machine] if len(speeds.factor) else 1.0
    run = simulation.tasks.run_time[task] * factor * far_factor(speeds.inputs, task, machine)
    end = start + ((speeds.shuffle[task] if len(speeds.shuffle) else 0.0) + run)
    opened = simulation.slow.opened
    if len(opened):
        end = max(end, opened[simulation.stages.of_task[task]] + run)
    overuse = simulation.overuse
    goes_on = not len(overuse.part) or simulation.tasks.shape[task] == overuse.shape[task]
    part = 1.0 if goes_on or end == np.inf else min(overuse.part[task], 1.0)
    return end - (1.0 - part) * run if part < 1.0 else end


def may_end(simulation, task):
    """When a running attempt ends if nobody comes or goes: at full pace, or later where its machine gives less."""
    shared, machine, start = simulation.interference, simulation.progress.machine[task], simulation.progress.start[task]
    if not len(shared.wants) or not shared.wants[task]:
        return end_of(simulation, task)
    since, pace = shared.since[machine], shared.pace[machine]
    if since < start or (since == 0 and pace == 1):  # nobody there was slowed down since it started
        return end_of(simulation, task)
    return since + shared.left[task] / pace


def check_shared(simulation):
    """Each machine's attempts are listed in the order of their starts, and get the same part of what they want."""
    shared, progress = simulation.interference, simulation.progress
    if not len(shared.wants):
        return
    running = np.flatnonzero(simulation.claims.status == TASK_RUNNING)
    for machine in range(simulation.fleet.machines):
        listed, task = [], int(shared.first[machine])
        while task >= 0:
            assert int(shared.before[task]) == (listed[-1] if listed else -1), f"machine {machine}: {task} behind whom?"
            listed.append(task)
            task = int(shared.next[task])
        assert int(shared.last[machine]) == (listed[-1] if listed else -1), f"machine {machine} ends with whom?"
        there = [task for task in running.tolist() if progress.machine[task] == machine and shared.wants[task]]
        assert sorted(listed) == there, f"machine {machine} lists {listed}, there run {there}"
        starts = [float(progress.start[task]) for task in listed]
        assert starts == sorted(starts), f"machine {machine} lists starts {starts}"
        wanted, physical = sum(int(shared.wants[task]) for task in listed), int(shared.physical[machine])
        assert shared.wanted[machine] == wanted, f"machine {machine}: {shared.wanted[machine]} noted, {wanted} wanted"
        pace = min(1.0, physical / wanted) if wanted else 1.0
        assert shared.pace[machine] == pace, f"machine {machine} gives {shared.pace[machine]}, not {pace}"
        assert shared.pace[machine] * wanted <= physical * (1 + 1e-12), f"machine {machine} gives more than it has"
    assert shared.size[0] == 0, f"{shared.size[0]} machines are touched at {now(simulation)}"
    assert not shared.is_touched.any(), f"machines {np.flatnonzero(shared.is_touched)} are touched"


def held_amounts(simulation):
    """int64[resource, padded machine]: the requests of the running tasks, added up machine by machine."""
    tasks = simulation.tasks
    held = np.zeros(simulation.fleet.free.shape, np.int64)
    for task in np.flatnonzero(simulation.claims.status == TASK_RUNNING):
        held[:, simulation.progress.machine[task]] += tasks.request[:, tasks.shape[task]]
    return held


def check_amounts(simulation):
    """free + used = capacity where a machine is, nothing where it is not, and the totals are the sums."""
    fleet, held = simulation.fleet, held_amounts(simulation)
    there = fleet.free[0] != FREE_WHEN_ABSENT
    for resource in range(len(fleet.free)):
        free, capacity = fleet.free[resource].astype(np.int64), fleet.capacity[resource].astype(np.int64)
        bad = there & (free + held[resource] != capacity)
        assert not bad.any(), (f"machine {first(bad)}, resource {resource} at {now(simulation)}: free "
                               f"{free[bad][0]} + held {held[resource][bad][0]} != capacity {capacity[bad][0]}")
        bad = there & (free < 0)
        assert not bad.any(), f"machine {first(bad)} is oversubscribed: free {free[bad][0]} of resource {resource}"
        bad = ~there & ((free != FREE_WHEN_ABSENT) | (capacity != 0) | (held[resource] != 0))
        assert not bad.any(), (f"machine {first(bad)} is absent but has free {free[bad][0]}, capacity "
                               f"{capacity[bad][0]}, held {held[resource][bad][0]} of resource {resource}")
        assert fleet.used[resource] == held[resource].sum(), (
            f"used {fleet.used[resource]} of resource {resource}, the running hold {held[resource].sum()}")
        assert fleet.present[resource] == capacity.sum(), (
            f"present {fleet.present[resource]} of resource {resource}, the machines have {capacity.sum()}")
    assert not there[fleet.machines:].any(), "a machine of the padding is present"


def check_summaries(fleet):
    """The index tells the truth about every block."""
    for resource, row in enumerate(fleet.free.tolist()):
        for block in range(len(row) // BLOCK):
            machines, noted = row[block * BLOCK : (block + 1) * BLOCK], fleet.block_free_max[resource, block]
            true, count = max(machines), fleet.block_at_max[resource, block]
            assert noted == true, f"block {block} notes at most {noted} of resource {resource} free, it is {true}"
            assert count == machines.count(true), (
                f"block {block} notes {count} machines with {true} of resource {resource} free, not "
                f"{machines.count(true)}")
    last = int(fleet.allowed[0, -1])
    assert last >> ((fleet.machines - 1) % BLOCK + 1) == 0, f"the padding meets constraints: {last:#x}"


def check_frontiers(simulation):
    """No machine before the block where a search would begin fits the shape."""
    status, shapes = simulation.claims.status, simulation.tasks.shape
    for task in {int(shapes[task]): int(task) for task in np.flatnonzero(status == TASK_WAITING)}.values():
        begin = first_block(simulation.fleet, int(shapes[task])) * BLOCK
        machines = fitting(simulation, task)
        assert (machines >= begin).all(), f"a search for task {task} begins at {begin}, it fits {machines.tolist()}"


def check_counts(simulation):
    """Arrived = blocked + waiting + running + finished + unplaceable, and the counters equal the statuses."""
    status, count = simulation.claims.status, simulation.counts
    arrived = count.next_arrival
    tally = {name: int((status[:arrived] == code).sum()) for code, name in enumerate(STATUSES)}
    assert tally["NOT_ARRIVED"] == 0, f"{tally['TASK_NOT_ARRIVED']} of the first {arrived} tasks have not arrived"
    assert sum(tally.values()) == arrived, f"{arrived} arrived, but {tally}"
    assert count.waiting_now == tally["WAITING"], f"{count.waiting_now} wait, the statuses say {tally}"
    assert count.running_now == tally["RUNNING"], f"{count.running_now} run, the statuses say {tally}"
    later = status[arrived:]
    absent = (later == TASK_NOT_ARRIVED) | (later == TASK_UNPLACEABLE)
    assert absent.all(), f"a task runs before its arrival: {later.tolist()}"
    assert simulation.claims.size[0] == 0, f"{simulation.claims.size[0]} claims were not committed"
    shapes = simulation.record.shape_by_size.size
    by_shape = np.bincount(simulation.tasks.shape[status == TASK_WAITING], minlength=shapes)
    noted = simulation.record.waiting_by_shape
    assert (by_shape == noted).all(), f"waiting by shape {noted.tolist()}, the statuses say {by_shape.tolist()}"
    freed = simulation.step.freed[: count.freed_now].tolist()
    assert sorted(freed) == np.flatnonzero(simulation.step.is_freed).tolist(), f"freed {freed} differs from its flags"


def check_attempts(simulation):
    """A running task has exactly one event in the heap, a task that does not run none; the heap is in order."""
    progress, status, size = simulation.progress, simulation.claims.status, int(simulation.events.size[SIZE])
    slots = [tuple(slot.item()) for slot in simulation.events.slot[:size]]
    for place in range(1, size):
        parent = (place - 1) // 4
        assert slots[parent][:2] < slots[place][:2], f"event {slots[place]} lies below {slots[parent]}"
    live = [task for _, sequence, task, _ in slots if status[task] == TASK_RUNNING and progress.event[task] == sequence]
    running = np.flatnonzero(status == TASK_RUNNING).tolist()
    assert sorted(live) == running, f"running {running}, live events of {sorted(live)}"
    assert size - len(live) == simulation.counts.lost_events, (
        f"{simulation.counts.lost_events} events of lost attempts noted, the heap has {size - len(live)}")
    finish = {task: time for time, sequence, task, _ in slots if progress.event[task] == sequence}
    time = now(simulation)
    for task in running:
        assert simulation.tasks.arrival[task] <= progress.ready[task] <= progress.start[task] <= time, (
            f"task {task} arrived {simulation.tasks.arrival[task]}, ready {progress.ready[task]}, "
            f"started {progress.start[task]}, now {time}")
        assert finish[task] == may_end(simulation, task), f"task {task} is to end at {finish[task]}"
    ended = status == TASK_FINISHED
    shared = simulation.interference
    finished = shared.end[ended] if len(shared.wants) else np.array(
        [end_of(simulation, task) for task in np.flatnonzero(ended)])
    assert (finished <= time).all(), f"a task finished after now ({time})"
    assert (progress.attempts[ended | (status == TASK_RUNNING)] >= 1).all(), "a task ran without an attempt"
    assert time <= simulation.clock.until, f"now {time} is after the last instant {simulation.clock.until}"


def check_stages(simulation):
    """A stage counts its tasks that are left, and only a stage that waits for others blocks its tasks."""
    stages, status = simulation.stages, simulation.claims.status
    if stages.of_task.size == 0:
        assert not (status == TASK_BLOCKED).any(), "a task is blocked without dependencies"
        return
    left = np.bincount(stages.of_task[status != TASK_FINISHED], minlength=stages.left.size)
    assert (left == stages.left).all(), f"left in stages {stages.left.tolist()}, the statuses say {left.tolist()}"
    waits = stages.waits[stages.of_task]
    assert (waits[status == TASK_BLOCKED] > 0).all(), "a task is blocked though its stage waits for nobody"
    active = (status == TASK_WAITING) | (status == TASK_RUNNING) | (status == TASK_FINISHED)
    assert (waits[active] == 0).all(), "a task goes on before the stages that its stage waits for ended"
    if len(simulation.slow.opened):
        open_ = simulation.slow.unfinished == 0
        assert (np.isfinite(simulation.slow.opened) == open_).all(), "a stage is open before those it waits for ended"
        assert open_[stages.of_task[status == TASK_FINISHED]].all(), "a task finished before its inputs were there"


def check_lanes(simulation, lanes):
    """Each waiting task is in exactly one lane, each lane is a heap of its length, the active ones are listed."""
    rank, holding = simulation.tasks.rank, np.flatnonzero(lanes.root != NOBODY).tolist()
    members = {lane: lane_members(lanes, rank, lane) for lane in holding}
    for lane in {*holding, *np.flatnonzero(lanes.length).tolist()}:
        tasks = members.get(lane, [])
        assert lanes.length[lane] == len(tasks), f"lane {lane} has length {lanes.length[lane]}, holds {tasks}"
    waiting = np.flatnonzero(simulation.claims.status == TASK_WAITING).tolist()
    inside = sorted(task for tasks in members.values() for task in tasks)
    assert inside == waiting, f"waiting {waiting}, in lanes {inside}"
    active = lanes.active[: lanes.size[ACTIVE_LANES]].tolist()
    assert sorted(active) == holding, f"active lanes {active}, lanes with tasks {holding}"
    assert [int(lanes.position[lane]) for lane in active] == list(range(len(active))), "positions differ from places"
    assert lanes.size[1] == 0, f"{lanes.size[1]} lanes are left in a round that is over"


def lane_members(lanes, rank, lane):
    """The tasks of a lane; every child comes after its parent."""
    found, open_tasks = [], [int(lanes.root[lane])] if lanes.root[lane] != NOBODY else []
    while open_tasks:
        task = open_tasks.pop()
        found.append(task)
        child = int(lanes.child[task])
        while child != NOBODY:
            assert (rank[task], task) < (rank[child], child), f"lane {lane}: task {child} lies below {task}"
            open_tasks.append(child)
            child = int(lanes.sibling[child])
    return found


def first(bad):
    return int(np.argmax(bad))
