"""Measures a federation for summary.json: messages, requests, roles, allocation time, queue shares."""
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from subak.federation.megha.roles import Megha
from subak.federation.megha.topology import OFF
from subak.federation.messages import HANDLER, KINDS, ROLES, WORKER
from subak.federation.settings import supported_by
from subak.measures.of_run import spread
from subak.measures.runs import FederationFacts, QueueFacts, RoleFacts, Spread, WindowFacts
from subak.measures.tasks.sketch import Sketches
from subak.measures.tasks.tally import EXACT_MAX, Columns
from subak.measures.window import measured
from subak.records import total
from subak.simulator.engine.setup import NO_ROW
from subak.simulator.federated.simulate import Federated
from subak.simulator.federated_results import PARTS
from subak.simulator.outcome import Outcome

ALLOCATION = "allocation"
ALLOCATIONS = (ALLOCATION, *PARTS)  # columns: the allocation time, and its parts
SUMMARY_QUEUES_MAX = 50  # that a summary lists


class FederationTally:
    """What is only known of a federation's tasks, in their order, some at a time."""

    def __init__(self, window: WindowFacts, tasks: int, folder: Path | None) -> None:
        """Begin a run of so many *tasks*, in memory or with room in *folder*."""
        self.window, self.held = window, QueuesHeld(window)
        exact = folder is None or tasks <= EXACT_MAX
        self.columns = Columns(ALLOCATIONS, folder) if exact else None
        self.sketches = {name: Sketches() for name in ALLOCATIONS}

    def add(self, outcome: Outcome, tasks: pl.DataFrame) -> None:
        """Add the run of some tasks; *tasks* is their table."""
        self.held.add(outcome, tasks)
        counted = allocations(tasks, self.window)
        if self.columns is not None:
            self.columns.add(counted)
            return
        for name in ALLOCATIONS:
            values = counted[name].fill_null(float("nan")).to_numpy()
            self.sketches[name].add(np.zeros(values.size, np.int64), values, 1)

    def facts(self, outcome: Outcome) -> FederationFacts:
        """Return the facts of the run, which *outcome* is in the end. Messages are those of the whole run."""
        columns = self.columns
        spreads = {name: self.sketches[name].spread(0) if columns is None else spread(columns.column(name))
                   for name in ALLOCATIONS}
        return _facts_of_spreads(outcome, spreads, self.held)


def _facts_of_spreads(outcome: Outcome, spreads: dict[str, Spread], held: "QueuesHeld") -> FederationFacts:
    """Return the facts of a run, from the spreads of ALLOCATIONS, and from what queues held."""
    assert outcome.federated is not None
    federated, network = outcome.federated, outcome.federated.network
    queues = held.facts(outcome)
    return FederationFacts(
        settings=_plain(federated.settings, supported_by(outcome.scheduler)),
        service={kind: seconds for kind, seconds, count in zip(
            KINDS, network.service.tolist(), network.handled.tolist(), strict=True) if seconds and count},
        allocation=spreads[ALLOCATION],
        parts={name: spreads[name] for name in PARTS},
        messages={kind: count for kind, count in zip(KINDS, network.handled.tolist(), strict=True) if count},
        lost=network.counts.lost, doubled=network.counts.duplicated,
        counts=_counts(federated.roles) if isinstance(federated.roles, Megha) else {},
        roles=_roles(federated, outcome.prepared.machine_order != NO_ROW, outcome.loop_result.end),
        queues=queues[:SUMMARY_QUEUES_MAX], queues_left_out=max(len(queues) - SUMMARY_QUEUES_MAX, 0),
    )


def allocations(tasks: pl.DataFrame, window: WindowFacts) -> pl.DataFrame:
    """Return ALLOCATIONS of the tasks that count: the last start minus ready, and the parts that add up to it."""
    return measured(tasks, window).select(pl.col("start").sub(pl.col("ready")).alias(ALLOCATION), *PARTS)


def _plain(settings: Any, supported: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that a scheduler supports, with text where JSON has no number."""
    return {name: "inf" if value == float("inf") else value
            for name, value in msgspec.structs.asdict(settings).items() if name in supported and value != {}}


def _counts(roles: Megha) -> dict[str, int]:
    """Return what the masters counted, over all of them."""
    of_global = total([master.tally for master in roles.masters])
    of_local = total([local.tally for local in roles.locals])
    return {
        "searches": of_global.searches, "searches without a machine": of_global.no_machine,
        "launches": of_global.launches, "repartitions": of_global.repartitions,
        "preemption attempts": of_global.preemptions, "share used up": of_global.share_used_up,
        "accepted": of_local.accepted, "refused: not free": of_local.refused_not_free,
        "refused otherwise": of_local.refused_other, "tasks preempted": of_local.preempted_tasks,
        "attempts lost": of_global.lost_attempts, "workers lost": of_local.workers_lost,
        "takeovers": of_local.takeovers, "updates": of_global.updates,
        "entries applied": of_global.entries_applied, "updates overrun": of_global.overruns,
    }


def _roles(federated: Federated, is_machine: np.ndarray, span: float) -> dict[str, RoleFacts]:
    """Return how busy each kind of role was; roles that never got a message are left out."""
    network, found = federated.network, {}
    for role, name in enumerate(ROLES[: WORKER + 1]):
        addresses = slice(int(network.first[role]), int(network.first[role + 1]))
        messages = int(network.handled[np.equal(HANDLER, role)].sum())
        worked = network.worked[addresses]
        if role == WORKER:
            worked = worked[is_machine]  # places that only fill a partition up are nobody's
        if messages:
            found[name] = RoleFacts(
                roles=len(worked), busy=_ratio(float(worked.mean()), span), busy_max=_ratio(float(worked.max()), span),
                inbox_wait=float(network.queued[addresses].sum()) / messages,
            )
    return found


class QueuesHeld:
    """What each queue held: sums over tasks, which may come some at a time, in their order."""

    def __init__(self, window: WindowFacts) -> None:
        self.window = window
        self.number: dict[str, int] = {}  # of each queue, as they first come
        self.mean = np.zeros((0, 0))  # float64[resource, queue], sums of shares, in the mean of the window
        self.now = np.zeros((0, 0))  # and in the end
        self.count = self.waiting = np.zeros(0, np.int64)

    def add(self, outcome: Outcome, tasks: pl.DataFrame) -> None:
        """Add the run of some tasks; *tasks* is their table."""
        sim, end, window = outcome.simulation, outcome.loop_result.end, self.window
        total = np.maximum(sim.fleet.present, 1).astype(np.float64)
        share = (sim.tasks.request / total[:, None])[:, sim.tasks.shape]  # float64[resource, task]
        first = tasks["start"].fill_null(end).to_numpy()
        last = tasks["finish"].fill_null(end).to_numpy()
        held = np.maximum(np.minimum(last, window.end) - np.maximum(first, window.begin), 0.0)
        of_window = held / max(window.end - window.begin, 1e-9)
        running = (tasks["status"] == "RUNNING").to_numpy().astype(np.float64)
        number = self._numbered(tasks["queue"], len(share))
        for resource, row in enumerate(share):
            np.add.at(self.mean[resource], number, row * of_window)  # in their order, as they would be added up at once
            np.add.at(self.now[resource], number, row * running)
        self.count += np.bincount(number, minlength=self.count.size)
        self.waiting += np.bincount(number[(tasks["status"] == "WAITING").to_numpy()], minlength=self.count.size)

    def _numbered(self, queue: pl.Series, resources: int) -> np.ndarray:
        """Return int64[task], the number of each task's queue; new ones get the next, and room for their sums."""
        names = queue.cast(pl.String).unique(maintain_order=True).to_list()
        for name in names:
            self.number.setdefault(name, len(self.number))
        more = len(self.number) - self.count.size
        self.count, self.waiting = np.pad(self.count, (0, more)), np.pad(self.waiting, (0, more))
        of_all = ((0, resources - len(self.mean)), (0, more))
        self.mean, self.now = np.pad(self.mean, of_all), np.pad(self.now, of_all)
        codes = queue.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
        return np.array([self.number[name] for name in names], np.int64)[codes]

    def facts(self, outcome: Outcome) -> tuple[QueueFacts, ...]:
        """Return each queue's largest share over the resources, in the mean of the window and at the end."""
        names = list(self.number)
        mean, now = self.mean.max(axis=0, initial=0.0), self.now.max(axis=0, initial=0.0)
        entitled = _entitlements(outcome, names)
        order = sorted(range(len(names)), key=lambda place: (-mean[place], names[place]))
        return tuple(QueueFacts(names[place], entitled.get(names[place]), float(mean[place]), float(now[place]),
                                int(self.count[place]), int(self.waiting[place])) for place in order)


def _entitlements(outcome: Outcome, names: list[str]) -> dict[str, float]:
    """Return the share of each queue that it is entitled to, where fairness is asked for."""
    federated = outcome.federated
    if federated is None or not isinstance(federated.roles, Megha) or federated.roles.rules.preemption == OFF:
        return {}
    given = federated.settings.shares
    rest = (1.0 - sum(given.values())) / max(len(set(names) - set(given)), 1)
    return {name: given.get(name, rest) for name in names}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
