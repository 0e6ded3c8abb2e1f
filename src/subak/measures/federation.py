"""What summary.json says of a federation: messages, requests, roles, parts of the allocation time, shares of queues."""
from typing import Any

import msgspec
import numpy as np
import polars as pl

from subak.federation.megha.global_master.state import (
    ENTRIES_APPLIED,
    LAUNCHES,
    LOST_ATTEMPTS,
    NO_MACHINE,
    OVERRUNS,
    PREEMPTIONS,
    REPARTITIONS,
    SEARCHES,
    SHARE_USED_UP,
    UPDATES,
)
from subak.federation.megha.local_master.state import ACCEPTED, PREEMPTED_TASKS, REFUSED_NOT_FREE, REFUSED_OTHER
from subak.federation.megha.local_master.state import TAKEOVERS as TAKEN_OVER
from subak.federation.megha.local_master.state import WORKERS_LOST as WORKERS_GONE
from subak.federation.megha.roles import Megha
from subak.federation.megha.topology import OFF
from subak.federation.messages import HANDLER, KINDS, ROLES, WORKER
from subak.measures.of_run import spread
from subak.measures.runs import FederationFacts, QueueFacts, RoleFacts, Spread, WindowFacts
from subak.measures.window import measured
from subak.simulator.engine.setup import NO_ROW
from subak.simulator.federated.network import DUPLICATED, LOST
from subak.simulator.federated.simulate import Federated
from subak.simulator.federated_results import PARTS
from subak.simulator.outcome import Outcome
from subak.workload.table import Workload

SUMMARY_QUEUES_MAX = 50  # that a summary lists


def federation_facts(
    outcome: Outcome, workload: Workload, tasks: pl.DataFrame, window: WindowFacts
) -> FederationFacts:
    """Return what is only known of a federated run; *tasks* is its task table. Messages are those of the whole run."""
    assert outcome.federated is not None
    federated, network = outcome.federated, outcome.federated.network
    queues, counted = queue_facts(outcome, workload, tasks, window), measured(tasks, window)
    return FederationFacts(
        settings=_plain(federated.settings, outcome.scheduler.settings),
        service={kind: seconds for kind, seconds, count in zip(
            KINDS, network.service.tolist(), network.handled.tolist(), strict=True) if seconds and count},
        allocation=allocation_spread(counted),
        parts={name: spread(counted[name]) for name in PARTS},
        messages={kind: count for kind, count in zip(KINDS, network.handled.tolist(), strict=True) if count},
        lost=int(network.size[LOST]), doubled=int(network.size[DUPLICATED]),
        counts=_counts(federated.roles) if isinstance(federated.roles, Megha) else {},
        roles=_roles(federated, outcome.prepared.machine_order != NO_ROW, outcome.loop_result.end),
        queues=queues[:SUMMARY_QUEUES_MAX], queues_left_out=max(len(queues) - SUMMARY_QUEUES_MAX, 0),
    )


def allocation_spread(tasks: pl.DataFrame) -> Spread:
    """Return the distribution of the allocation time: the last start minus ready, which its parts add up to."""
    return spread(tasks["start"] - tasks["ready"])


def _plain(settings: Any, supported: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that a scheduler supports, with text where JSON has no number."""
    return {name: "inf" if value == float("inf") else value
            for name, value in msgspec.structs.asdict(settings).items() if name in supported and value != {}}


def _counts(roles: Megha) -> dict[str, int]:
    """Return what the masters counted, over all of them."""
    of_global = np.sum([master.tally for master in roles.masters], axis=0)
    of_local = np.sum([local.tally for local in roles.locals], axis=0)
    named = {
        "searches": of_global[SEARCHES], "searches without a machine": of_global[NO_MACHINE],
        "launches": of_global[LAUNCHES], "repartitions": of_global[REPARTITIONS],
        "preemption attempts": of_global[PREEMPTIONS], "share used up": of_global[SHARE_USED_UP],
        "accepted": of_local[ACCEPTED], "refused: not free": of_local[REFUSED_NOT_FREE],
        "refused otherwise": of_local[REFUSED_OTHER], "tasks preempted": of_local[PREEMPTED_TASKS],
        "attempts lost": of_global[LOST_ATTEMPTS], "workers lost": of_local[WORKERS_GONE],
        "takeovers": of_local[TAKEN_OVER], "updates": of_global[UPDATES],
        "entries applied": of_global[ENTRIES_APPLIED], "updates overrun": of_global[OVERRUNS],
    }
    return {name: int(count) for name, count in named.items()}


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


def queue_facts(
    outcome: Outcome, workload: Workload, tasks: pl.DataFrame, window: WindowFacts
) -> tuple[QueueFacts, ...]:
    """Return what each queue held: its largest share over the resources, in the mean of the window and at the end."""
    sim, end = outcome.simulation, outcome.loop_result.end
    total = np.maximum(sim.fleet.present, 1).astype(np.float64)
    share = (sim.tasks.request / total[:, None])[:, sim.tasks.shape]  # float64[resource, task]
    first = tasks["start"].fill_null(end).to_numpy()
    last = tasks["finish"].fill_null(end).to_numpy()
    held = np.maximum(np.minimum(last, window.end) - np.maximum(first, window.begin), 0.0)
    running = (tasks["status"] == "RUNNING").to_numpy()
    names = tasks["queue"].cast(pl.String).unique(maintain_order=True).to_list()
    number = tasks["queue"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    mean, now = (np.array([np.bincount(number, row * weight, len(names)) for row in share]).max(axis=0, initial=0.0)
                 for weight in (held / max(window.end - window.begin, 1e-9), running.astype(np.float64)))
    count = np.bincount(number, minlength=len(names))
    waiting = np.bincount(number[(tasks["status"] == "WAITING").to_numpy()], minlength=len(names))
    entitled = _entitlements(outcome, names)
    order = sorted(range(len(names)), key=lambda place: (-mean[place], names[place]))
    return tuple(QueueFacts(names[place], entitled.get(names[place]), float(mean[place]), float(now[place]),
                            int(count[place]), int(waiting[place])) for place in order)


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
