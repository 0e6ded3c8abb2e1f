"""The plain twin of backfilling: what is free when is added up anew for each question, everybody is asked in turn."""
import math

from naive import ORDERS, free_share

CHOICES = {
    "first-fit": lambda world, machines: min(machines),
    "best-fit": lambda world, machines: min(machines, key=lambda machine: (free_share(world, machine), machine)),
}


def expected_end(begin, seconds):
    """What takes no time is there at an instant all the same."""
    return max(begin + seconds, math.nextafter(begin, math.inf))


class Rigid:
    """Gangs that start together, under one of the four rules; a policy of `naive.Twin`."""

    def __init__(self, world, gang_of_task, rule, order="fifo", placement="first-fit"):
        self.world, self.rule, self.order, self.choose = world, rule, ORDERS[order], CHOICES[placement]
        self.gangs = {}
        for task, gang in enumerate(gang_of_task):
            self.gangs.setdefault(gang, []).append(task)
        self.gang_of_task = gang_of_task
        self.seconds = {gang: max(world.expected[task] for task in tasks) for gang, tasks in self.gangs.items()}
        self.by_slots = all(request == world.requests[0] for request in world.requests)
        self.pool_of = [tuple(met[machine] for met in world.met) if self.by_slots else machine
                        for machine in range(len(world.capacity))]
        self.waiting, self.here = [], set()  # gangs in the order of their arrival, tasks that wait
        self.reserved = {}  # gang -> (begin, {pool: count})
        self.until = {}  # gang that runs -> when it is expected to end
        self.seen, self.changes = set(), 0
        self.head, self.news = None, False
        for tasks in self.gangs.values():
            if len(tasks) > 1 and len(tasks) > self.most_at_once(tasks[0]):
                for task in tasks:
                    world.status[task] = "UNPLACEABLE"

    # -- amounts over time

    def most_at_once(self, task):
        world = self.world
        declared = {machine: [amounts] for machine, amounts in enumerate(world.capacity) if amounts}
        for _, machine, amounts in world.changes:
            declared.setdefault(machine, []).append(amounts or [0] * len(world.units))
        return sum(
            self.copies([max(column) for column in zip(*each, strict=True)], world.requests[task])
            for machine, each in declared.items() if world.meets(task, machine))

    @staticmethod
    def copies(amounts, request):
        return min((have // asked for have, asked in zip(amounts, request, strict=True) if asked), default=10**9)

    def pool(self, machine):
        return self.pool_of[machine]

    def pools(self, task):
        """Those that a task may use, in order."""
        usable = [machine for machine in range(len(self.world.capacity)) if self.world.meets(task, machine)]
        return sorted({self.pool(machine) for machine in usable})

    def capacity(self, pool):
        machines = [machine for machine in range(len(self.world.capacity)) if self.pool(machine) == pool]
        amounts = [self.world.capacity[machine] or [0] * len(self.world.units) for machine in machines]
        if self.by_slots:
            return [sum(self.copies(each, self.world.requests[0]) for each in amounts)]
        return amounts[0]

    def asked(self, task):
        return [1] if self.by_slots else self.world.requests[task]

    def held(self):
        """(pool, begin, end, amounts) of all that runs or has a reservation."""
        world = self.world
        for task in world.with_status("RUNNING"):
            yield self.pool(world.machine[task]), -math.inf, self.until[self.gang_of_task[task]], self.asked(task)
        for gang, (begin, pools) in self.reserved.items():
            for pool, count in pools.items():
                amounts = [count * each for each in self.asked(self.gangs[gang][0])]
                yield pool, begin, expected_end(begin, self.seconds[gang]), amounts

    def room(self, pool, task, begin, end):
        held = [entry for entry in self.held() if entry[0] == pool]
        times = {begin} | {time for entry in held for time in entry[1:3] if begin < time < end}
        least = 10**9
        for time in times:
            free = self.capacity(pool)
            for _, since, until, amounts in held:
                if since <= time < until:
                    free = [have - taken for have, taken in zip(free, amounts, strict=True)]
            least = min(least, max(0, self.copies(free, self.asked(task))))
        return least

    def earliest(self, gang):
        now, tasks = self.world.now, self.left(gang)
        times = {now} | {time for entry in self.held() for time in entry[1:3] if now < time < math.inf}
        for time in sorted(times):
            room = sum(self.room(pool, tasks[0], time, time + self.seconds[gang]) for pool in self.pools(tasks[0]))
            if room >= len(tasks):
                return time
        return math.inf

    def left(self, gang):
        return [task for task in self.gangs[gang] if self.world.status[task] != "FINISHED"]

    # -- what happens

    def departed(self, world, freed):
        self.note(world)
        self.serve(world)

    def passed(self, world):
        self.note(world)
        if self.news:
            self.serve(world)

    def arrived(self, world, tasks):
        self.here |= set(tasks)
        for task in tasks:
            gang = self.gang_of_task[task]
            if gang not in self.waiting and set(self.left(gang)) <= self.here:
                self.waiting.append(gang)
        self.waiting.sort(key=lambda gang: self.order(world, self.gangs[gang][0]))
        self.serve(world)

    def note(self, world):
        """What ended, earlier or later than expected or not; what changed; what should have ended."""
        running = {gang for gang, tasks in self.gangs.items() if any(world.status[task] == "RUNNING" for task in tasks)}
        late = False
        for task in set(world.with_status("FINISHED")) - self.seen:
            self.seen.add(task)
            self.news |= self.until[self.gang_of_task[task]] > world.now
            late |= self.until[self.gang_of_task[task]] < world.now
        self.until = {gang: time for gang, time in self.until.items() if gang in running}
        changes = sum(time <= world.now for time, _, _ in world.changes)
        overdue = [gang for gang, time in self.until.items() if time <= world.now]
        if overdue or late or changes > self.changes:
            self.reserved, self.head, self.news, self.changes = {}, None, True, changes
        for gang in overdue:
            start = next(world.start[task] for task in self.gangs[gang] if world.status[task] == "RUNNING")
            longer = max(self.seconds[gang], 1.0)
            while start + longer <= world.now:
                longer *= 2
            self.until[gang] = start + longer

    def serve(self, world):
        if self.rule == "strict":
            while self.waiting and self.start(world, self.waiting[0]):
                pass
        elif self.rule == "backfill":
            for gang in list(self.waiting):
                self.start(world, gang)
        elif self.rule == "easy":
            self.serve_head(world)
            for gang in list(self.waiting):
                if gang != self.head:
                    self.start(world, gang)
        else:
            while self.keep_reservations(world) and self.news:
                pass
        self.news = False

    def keep_reservations(self, world):
        moved = False
        for gang in list(self.waiting):
            before = self.reserved.get(gang, (math.inf,))[0]
            if self.news or before == math.inf or before <= world.now:
                started = self.start_or_reserve(world, gang)
                after = world.now if started else self.reserved.get(gang, (math.inf,))[0]
                moved |= after < before < math.inf
        return moved

    def serve_head(self, world):
        for gang in list(self.waiting):
            if gang == self.head and self.reserved[gang][0] > world.now and not self.news:
                return
            self.reserved.pop(self.head, None)
            self.head = None
            if not self.start_or_reserve(world, gang) and gang in self.reserved:
                self.head = gang
                return

    def start_or_reserve(self, world, gang):
        self.reserved.pop(gang, None)
        begin, tasks = self.earliest(gang), self.left(gang)
        if begin <= world.now and self.start(world, gang):
            return True
        if begin < math.inf:
            pools, wanted = {}, len(tasks)
            for pool in self.pools(tasks[0]):
                room = min(wanted, self.room(pool, tasks[0], begin, begin + self.seconds[gang]))
                wanted -= room
                if room:
                    pools[pool] = room
            self.reserved[gang] = (begin, pools)
        return False

    def start(self, world, gang):
        """All of a gang, or nobody; under a rule with reservations only where none is in the way."""
        begun, sequence, ends, attempts = [], world.sequence, list(world.ends), list(world.attempts)
        before = {task: (world.start[task], world.finish[task], world.machine[task]) for task in self.left(gang)}
        is_new = gang not in self.until
        for task in self.left(gang):
            machines = [machine for machine in world.fitting(task) if not self.reserved or self.room(
                self.pool(machine), task, world.now, world.now + self.seconds[gang]) >= 1]
            if not machines:
                for each in begun:
                    world.status[each] = "WAITING"
                    world.start[each], world.finish[each], world.machine[each] = before[each]
                world.sequence, world.ends, world.attempts = sequence, ends, attempts
                if is_new:
                    self.until.pop(gang, None)
                return False
            self.until[gang] = expected_end(world.now, self.seconds[gang])
            world.begin(task, self.choose(world, machines))
            begun.append(task)
        self.waiting.remove(gang)
        self.here -= set(begun)
        return True
