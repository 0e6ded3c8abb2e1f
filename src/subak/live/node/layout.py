"""The numbers that all processes of a federation agree on: who is there, and how much room each table has.

They follow from the file of the federation and never change while it runs. A number belongs to whoever gives it: shapes
and tasks to a global master, configurations and machines to a local master or its standby; so nobody has to ask anybody
else, and what two of them give never clashes.
"""
from functools import cached_property
from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Meta, Struct

from subak.federation.megha.bounds import Sizes
from subak.federation.megha.topology import MACHINE_PLACE, QUEUE_PLACE, Rules, Topology, records
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, NOBODY, WORKER
from subak.fleet.state import BLOCK

Room = Annotated[int, Meta(ge=1, le=1 << 24)]
Peer = tuple[int, int]  # a role, and the number of a process within it
Preemption = Literal["off", "strict", "paper"]
PREEMPTIONS = get_args(Preemption)  # in the order of their numbers: OFF, STRICT, PAPER


class Rooms(Struct, frozen=True, forbid_unknown_fields=True):
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

    global_masters: int
    clusters: int
    resources: tuple[str, ...]
    standby: bool = True
    rooms: Rooms = Rooms()

    @cached_property
    def places(self) -> int:
        """How many tasks a global master may have: a power of two."""
        return 1 << (self.rooms.tasks - 1).bit_length()

    @cached_property
    def blocks_each(self) -> int:
        """Blocks of a partition."""
        return -(-self.rooms.machines // (BLOCK * self.global_masters))

    @cached_property
    def machines_each(self) -> int:
        """Places for machines of a cluster."""
        return self.blocks_each * self.global_masters * BLOCK

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
    def shapes(self) -> int:
        """Numbers of shapes of all global masters."""
        return self.global_masters * self.rooms.shapes

    @cached_property
    def machines(self) -> int:
        """Places for machines of all clusters."""
        return self.machines_each * self.clusters

    @cached_property
    def local_masters(self) -> int:
        """Local masters and standbys."""
        return self.clusters * (2 if self.standby else 1)

    def shapes_of(self, master: int) -> range:
        """Return the numbers of the shapes that a global master gives."""
        return range(master * self.rooms.shapes, (master + 1) * self.rooms.shapes)

    def configurations_of(self, local: int) -> range:
        """Return the numbers of the configurations that a local master, or standby, gives."""
        return range(local * self.rooms.configurations, (local + 1) * self.rooms.configurations)

    def machines_of(self, local: int) -> list[int]:
        """Return the numbers of the machines that a local master, or standby, gives, in the order in which it does.

        The partitions of its cluster in turn; the active one of a pair gives the even places, the standby the odd ones.
        """
        first, side = local % self.clusters * self.machines_each, local // self.clusters
        step = 2 if self.standby else 1
        partition = self.blocks_each * BLOCK
        return [first + master * partition + place for place in range(side, partition, step)
                for master in range(self.global_masters)]

    def masters_of(self, cluster: int) -> list[int]:
        """Return the local master of a cluster, and behind it its standby."""
        return list(range(cluster, self.local_masters, self.clusters))

    def cluster_of(self, machine: int) -> int:
        """Return the cluster of a machine."""
        return machine // self.machines_each

    def owner_of(self, task: int) -> int:
        """Return the global master that gave a task its number."""
        return task // self.places % self.global_masters

    def job_of(self, task: int) -> int:
        """Return the number of a task's job."""
        return task // self.places

    def is_peer(self, peer: Peer) -> bool:
        """Whether a peer can be of this federation."""
        role, number = peer
        room = {GLOBAL_MASTER: self.global_masters, LOCAL_MASTER: self.local_masters, WORKER: self.machines}
        return 0 <= number < room.get(role, 0)

    def topology(self) -> Topology:
        """Return the tables that all roles look machines and queues up in, with no machine there yet."""
        number = np.arange(self.machines)
        partitions = self.clusters * self.global_masters
        machine = records(
            MACHINE_PLACE, cluster=number // self.machines_each,
            home=number // (self.blocks_each * BLOCK) % self.global_masters,
            configuration=np.full(self.machines, NOBODY))
        return Topology(
            self.global_masters, self.clusters, machine, np.zeros(self.clusters, np.int32),
            np.arange(partitions + 1) * self.blocks_each, np.zeros(self.rooms.queues, QUEUE_PLACE),
            np.zeros((len(self.resources), self.rooms.configurations * self.local_masters), np.int32), 0)


class Timing(Struct, frozen=True, forbid_unknown_fields=True):
    """How long to wait for what, in seconds; see `Rules`."""

    heartbeat: float = 1.0
    retry: float = 1.0
    lease: float = 6.0
    timer_slack: float = 0.5
    preemption: Preemption = "off"
    preemptions_max: int = 3

    @property
    def fresh(self) -> float:
        """How old a sign of life may be that a master answers, and still begin an executor's lease anew."""
        return self.lease / 12.0

    @property
    def executor_lease(self) -> float:
        """How long an executor goes on when it is told nothing more: then no other machine has begun the same yet."""
        return self.lease - self.fresh - self.timer_slack

    def rules(self, standby: bool) -> Rules:
        """Return the rules that roles follow."""
        preemption = PREEMPTIONS.index(self.preemption)
        return Rules(self.heartbeat, self.retry, self.lease, self.timer_slack, False, preemption, self.preemptions_max,
                     standby)
