"""A watched federation: its tables, and what its ledgers have said so far."""
from typing import Any

import numpy as np

from subak.federation.megha.roles import Megha
from subak.federation.messages import NOBODY
from subak.fleet.state import BLOCK, FleetState, summaries
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.network import Network
from subak.simulator.torture.folds import Asked, Fold, must


class Watched:
    """What checks go by, of local masters and of global ones."""

    def __init__(self, sim: Simulation, net: Network, roles: Megha) -> None:
        self.sim, self.net, self.roles = sim, net, roles
        topology = roles.topology
        self.masters, self.clusters = topology.global_masters, topology.local_masters
        self.instances = len(roles.locals)
        self.request = [sim.tasks.request[:, shape].astype(np.int64) for shape in sim.tasks.shape]
        self.queue = roles.jobs.asked["queue"].tolist()
        self.owner = roles.jobs.asked["owner"]
        self.capacity = [topology.capacity[:, number].astype(np.int64) for number in range(topology.capacity.shape[1])]
        self.gang = roles.jobs.gang if roles.jobs.gang.size else np.full(len(self.queue), NOBODY)
        bounds = topology.block[:: self.masters] * BLOCK
        self.span = [(int(bounds[cluster]), int(bounds[cluster + 1])) for cluster in range(self.clusters)]
        self.machines = np.flatnonzero(np.bincount(
            np.concatenate([np.flatnonzero(topology.machine["configuration"] != NOBODY), sim.changes.machine]),
            minlength=topology.machine.size)).tolist()
        start = np.zeros((len(sim.fleet.free), topology.machine.size), np.int64)
        for machine in np.flatnonzero(topology.machine["configuration"] != NOBODY):
            start[:, machine] = self.capacity[topology.machine["configuration"][machine]]
        queues = topology.queue.size

        def fold(cluster: int) -> Fold:
            first, end = self.span[cluster]
            return Fold(first, start[:, first:end], queues)

        self.history: dict[tuple[int, int], list[Any]] = {
            (number, 0): [] for number in range(self.instances)}  # by instance and epoch
        self.book = [fold(number % self.clusters) for number in range(self.instances)]
        self.view = [[fold(cluster) for cluster in range(self.clusters)] for _ in range(self.masters)]
        self.start = [fold(cluster) for cluster in range(self.clusters)]
        self.incarnation = [master.counts.incarnation for master in roles.masters]
        self.asked = Asked(self.request, self.queue, self.capacity)
        self.before: dict[int, Any] = {}  # of each global master, for (f)
        self.entries: list[tuple[int, int, int, int]] = []  # (kind, task, its round, attempt) of the last message

    def rows(self, row: np.ndarray, heads: np.ndarray, machine: int) -> list[np.void]:
        """Return the rows of a machine, and check their links."""
        found, before, number = [], NOBODY, heads[machine]
        while number != NOBODY:
            must(row[number]["machine"] == machine and row[number]["before"] == before, "a",
                 f"row {number} is not where the list of machine {machine} has it")
            found.append(row[number])
            must(len(found) <= row.size, "a", f"the list of machine {machine} is a ring")
            before, number = number, row[number]["next"]
        return found

    def check_summary(self, fleet: FleetState, first: int, end: int, who: str) -> None:
        """Check (a): what a block has free at most, and on how many machines, is what is noted."""
        noted = fleet.block_free_max, fleet.block_at_max
        for truth, each in zip(summaries(fleet.free[:, first:end]), noted, strict=True):
            must(np.array_equal(truth, each[:, first // BLOCK : end // BLOCK]), "a", f"{who} notes wrong summaries")
