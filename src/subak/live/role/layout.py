"""The numbers that all processes agree on: who is in the federation, and how large each table is.

They follow from the file of the federation. A number belongs to whoever gives it: shapes and tasks to a global master,
configurations and machines to a local master or its standby; so nobody has to ask anybody else, and what two of them
give never clashes. What a number means depends on the number of its giver and on `Rooms`, never on how many others
there are: so masters and clusters may come and go (written_for.py says what may not change).
"""
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Meta, Struct

from subak.federation.megha.bounds import Sizes
from subak.federation.megha.topology import MACHINE_PLACE, QUEUE_PLACE, Rules, Topology, records
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, NOBODY, WORKER
from subak.fleet.state import BLOCK
from subak.live.jobfile.spec import TASKS
from subak.placement.schedulers import HOLD_BACK_AFTER

Room = Annotated[int, Meta(ge=1, le=1 << 24)]
Peer = tuple[int, int]  # a role, and the number of a process within it
Preemption = Literal["off", "strict", "paper"]
PREEMPTIONS = get_args(Preemption)  # in the order of their numbers: OFF, STRICT, PAPER
OF_A_KIND_MAX = 64  # numbers that global masters may have, and clusters; what others number depends on it
NUMBERING = 3  # how numbers follow from each other; another one is of another version of subak
STANDBYS = OF_A_KIND_MAX  # number of the standby of cluster 0


class Rooms(Struct, frozen=True):
    """How much of everything there may be at once; memory is used as it comes to be."""

    tasks: Room = 1 << 20  # that have not ended, of a global master; rounded up to a power of two: a largest job fits
    machines: Room = 1024  # of a cluster; rounded up to whole blocks for each global master
    shapes: Room = 4096  # kinds of tasks, by what they ask for, of the jobs of a global master that are open
    configurations: Room = 4096  # kinds of machines that a local master has ever seen
    queues: Room = 256
    attempts_each: Room = 512  # of a machine, with those that have ended and are not noted yet
    attempts: Room = 8  # of a cluster likewise, for each of its machines; and ATTEMPTS_MORE


ATTEMPTS_MORE = 4096


class Layout(Struct, frozen=True, dict=True):
    """The federation on paper."""

    global_masters: int  # with those that were removed
    clusters: int  # likewise
    resources: tuple[str, ...]  # TASKS among them where machines may run so many tasks and no more
    standby: bool = True
    rooms: Rooms = Rooms()
    no_masters: tuple[int, ...] = ()  # those that were removed
    no_clusters: tuple[int, ...] = ()

    @cached_property
    def places(self) -> int:
        """How many tasks a global master may have: a power of two."""
        return 1 << (self.rooms.tasks - 1).bit_length()

    @cached_property
    def blocks_each(self) -> int:
        """Blocks of a cluster."""
        return -(-self.rooms.machines // BLOCK)

    @cached_property
    def machines_each(self) -> int:
        """Places for machines of a cluster."""
        return self.blocks_each * BLOCK

    @cached_property
    def attempts(self) -> int:
        """How many attempts a local master may know: one that cannot note another is refused."""
        return self.machines_each * self.rooms.attempts + ATTEMPTS_MORE

    @cached_property
    def ledger(self) -> int:
        """Entries of a ledger: a power of two, and four whole states of a cluster at least."""
        return 1 << (4 * (self.machines_each + self.attempts) - 1).bit_length()

    def sizes(self, gang: int = 1) -> Sizes:
        """Return what the outboxes of all roles are as large as; *gang*: tasks that may start together.

        A local master may note all of its attempts on one machine.
        """
        return Sizes(gang, self.attempts, self.rooms.attempts_each, self.machines_each, self.global_masters,
                     self.clusters)

    @cached_property
    def tasks_each(self) -> int:
        """How many tasks a machine may run: half of the attempts that it knows, as others have ended and are kept."""
        return max(1, self.rooms.attempts_each // 2)

    def amounts(self, asked: Mapping[str, int], tasks: int) -> tuple[int, ...]:
        """Return amounts in the order of the resources; what counts *tasks* has no amount of its own."""
        return tuple(tasks if name == TASKS else asked.get(name, 0) for name in self.resources)

    @cached_property
    def shapes(self) -> int:
        """Numbers of shapes of all global masters."""
        return self.global_masters * self.rooms.shapes

    @cached_property
    def machines(self) -> int:
        """Places for machines of all clusters."""
        return self.machines_each * self.clusters

    @cached_property
    def locals(self) -> tuple[int, ...]:
        """Numbers of the local masters that are there, and behind them those of the standbys."""
        there = [cluster for cluster in range(self.clusters) if cluster not in self.no_clusters]
        return (*there, *(standby_of(cluster) for cluster in there if self.standby))

    def shapes_of(self, master: int) -> range:
        """Return the numbers of the shapes that a global master gives."""
        return range(master * self.rooms.shapes, (master + 1) * self.rooms.shapes)

    def configurations_of(self, local: int) -> range:
        """Return the numbers of the configurations that a local master, or standby, gives."""
        place = 2 * cluster_of_local(local) + local // STANDBYS
        return range(place * self.rooms.configurations, (place + 1) * self.rooms.configurations)

    @cached_property
    def configurations(self) -> int:
        """Numbers of configurations of all local masters and standbys."""
        return 2 * self.clusters * self.rooms.configurations

    def machines_of(self, local: int) -> list[int]:
        """Return the numbers of the machines that a local master, or standby, gives, in the order in which it does.

        The blocks of its cluster in turn, so that each partition has its share, however many there are; the active one
        of a pair gives the even places, the standby the odd ones; one that is alone first those, then these.
        """
        first, sides = self.machine_of(cluster_of_local(local)), [local // STANDBYS] if self.standby else [0, 1]
        return [first + block * BLOCK + place for side in sides for place in range(side, BLOCK, 2)
                for block in range(self.blocks_each)]

    def machine_of(self, cluster: int) -> int:
        """Return the number of the first machine of a cluster."""
        return cluster * self.machines_each

    def masters_of(self, cluster: int) -> list[int]:
        """Return the local master of a cluster, and behind it its standby."""
        return [cluster, standby_of(cluster)] if self.standby else [cluster]

    def cluster_of(self, machine: int) -> int:
        """Return the cluster of a machine."""
        return machine // self.machines_each

    def owner_of(self, task: int) -> int:
        """Return the global master that gave a task its number."""
        return owner_of_job(self.job_of(task))

    def job_of(self, task: int) -> int:
        """Return the number of a task's job."""
        return task // self.places

    def has(self, cluster: int) -> bool:
        """Whether a cluster is there."""
        return cluster in self.locals

    def is_peer(self, peer: Peer) -> bool:
        """Whether a peer can be of this federation."""
        role, number = peer
        if role == GLOBAL_MASTER:
            return number in range(self.global_masters) and number not in self.no_masters
        if role == LOCAL_MASTER:
            return number in self.locals
        return role == WORKER and number in range(self.machines)

    def topology(self) -> Topology:
        """Return the tables that all roles look machines and queues up in, with no machine there yet."""
        partitions = np.arange(self.clusters * self.global_masters + 1)
        block = partitions * self.blocks_each // self.global_masters
        home = np.repeat(partitions[:-1] % self.global_masters, np.diff(block) * BLOCK)
        machine = records(MACHINE_PLACE, cluster=np.arange(self.machines) // self.machines_each, home=home,
                          configuration=np.full(self.machines, NOBODY))
        is_there = np.ones(self.clusters, np.bool_)
        is_there[list(self.no_clusters)] = False
        return Topology(
            self.global_masters, self.clusters, machine, np.zeros(self.clusters, np.int32), block,
            np.zeros(self.rooms.queues, QUEUE_PLACE), np.zeros((len(self.resources), self.configurations), np.int32), 0,
            STANDBYS, is_there)


def standby_of(cluster: int) -> int:
    """Return the number of the standby of a cluster; that of its local master is the cluster's own."""
    return cluster + STANDBYS


def cluster_of_local(local: int) -> int:
    """Return the cluster of a local master, or of a standby."""
    return local % STANDBYS


def number_of_job(owner: int, serial: int) -> int:
    """Return the number of a job: the *serial*-th that a global master was given."""
    return serial * OF_A_KIND_MAX + owner


def owner_of_job(job: int) -> int:
    """Return the global master that gave a job its number."""
    return job % OF_A_KIND_MAX


def serial_of_job(job: int) -> int:
    """Return how many jobs the global master had been given, with this one, when it gave it its number."""
    return job // OF_A_KIND_MAX


class Timing(Struct, frozen=True):
    """How long to wait for what, in seconds; see `Rules`."""

    heartbeat: float = 1.0
    retry: float = 1.0
    lease: float = 6.0
    timer_slack: float = 0.5
    preemption: Preemption = "off"
    preemptions_max: int = 3
    hold_back_after: float = HOLD_BACK_AFTER

    @property
    def fresh(self) -> float:
        """How old a sign of life may be that a master answers, and still begin an agent's lease anew."""
        return self.lease / 12.0

    @property
    def agent_lease(self) -> float:
        """How long an agent goes on when it is told nothing more: then no other machine has begun the same yet."""
        return self.lease - self.fresh - self.timer_slack

    @property
    def agent_grace(self) -> float:
        """How long before the end of its lease an agent begins to end what runs, and begins nothing more."""
        return self.lease / 12.0

    def rules(self, standby: bool) -> Rules:
        """Return the rules that roles follow."""
        preemption = PREEMPTIONS.index(self.preemption)
        return Rules(self.heartbeat, self.retry, self.lease, self.timer_slack, False, preemption, self.preemptions_max,
                     standby, self.hold_back_after)
