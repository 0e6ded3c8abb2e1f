"""Sees how a global master stands, for its metrics: read on the event loop in some milliseconds."""
import math
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from subak.federation.messages import LOCAL_MASTER
from subak.live.api.models import Health
from subak.live.config import FederationFile
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.global_master.history import OUTCOME_WORDS
from subak.live.role.waits import Waits
from subak.live.service.metrics import COUNTED, Seen
from subak.live.service.resources import queue_views


def seen_by(role: GlobalRole, file: FederationFile, health: Health, commits: Waits) -> Seen:
    """Return how a master stands."""
    clusters, now = file.clusters(), role.now
    cluster = role.master.cluster
    return Seen(
        master=role.name, federation=file.name, is_ready=health.state == "ready",
        tally={name: int(getattr(role.master.tally, name)) for name in COUNTED},
        ended={word: count for word, count in zip(OUTCOME_WORDS, role.book.outcomes, strict=True) if word},
        queues=queue_views(role, file),
        machines=_machines(role, {number: each.name for number, each in clusters.items()}),
        view_age_s={each.name: now - float(cluster[number]["seen_at"]) if cluster[number]["known"] else math.inf
                    for number, each in clusters.items()},
        connected={file.name_of_local(number): (LOCAL_MASTER, number) in role.links
                   for number in file.local_addresses()},
        pending=len(role.pending), timers=len(role.timers), held_s=health.held_ms / 1e3,
        disk_refuses=health.state == "refusing", task_waits=role.book.waits, commits=commits)


def _machines(role: GlobalRole, clusters: Mapping[int, str]) -> Callable[[], Mapping[tuple[str, str], int]]:
    """Return what counts machines by cluster and state: beside the event loop, for there may be very many."""
    facts = list(role.facts.of_kind(MACHINE).items())
    is_listed, is_there = role.master.listed.copy(), np.asarray(role.master.fleet.capacity.any(axis=0))
    layout = role.layout

    def count() -> Mapping[tuple[str, str], int]:
        found = Counter({(name, "ready"): 0 for name in clusters.values()})
        for number, fact in facts:
            machine = read_machine(fact.body)
            if machine.gone:
                continue
            state = ("unknown" if not is_listed[number] else "joining" if machine.joining else
                     "cordoned" if machine.cordoned else "ready" if is_there[number] else "lost")
            found[clusters.get(layout.cluster_of(number), "removed"), state] += 1
        return found

    return count
