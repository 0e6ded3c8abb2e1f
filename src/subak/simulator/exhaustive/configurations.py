"""Tiny federations, and what may go wrong in each of them."""
import math

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.federation.megha.attempts import Attempts, build_attempts
from subak.federation.megha.ledger import ENTRY, Ledger
from subak.federation.megha.roles import Megha
from subak.federation.settings import Federation
from subak.fleet.table import make_fleet
from subak.resources import Resource
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import Opened, open_federated
from subak.workload.table import STAGE_COLUMNS, make_workload

SLOT = (Resource("slot", 1.0, ""),)
ROWS = 8  # attempts that a pool has room for
ENTRIES = 1024  # of a ledger: some whole states of two partitions


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A tiny federation of one cluster, and how often what may go wrong in a walk."""

    name: str
    tasks: int = 1  # each takes a machine
    global_masters: int = 1
    workers: int = 1
    standby: bool = False
    beats: bool = True  # whether the local master sends periodic updates
    lost: int = 0  # messages
    doubled: int = 0
    leases: int = 0  # that run out at a worker that lives
    takeovers: int = 0  # of a standby while the other one lives
    crashes: int = 0  # of the roles in `crashing`
    crashing: tuple[str, ...] = ()  # names of roles, as "worker 0"
    failures: int = 0  # of attempts that come to their end
    retries: int = 0  # how often a task is tried again after such
    cancelled: int = 0  # tasks that their users cancel at some time, the first ones
    early: int | None = None  # timers that ring while something is under way; None: any number
    returns: bool = True  # whether who has crashed may come back
    numbers: int = 3  # starts and reports that a local master may number, of a machine; moves beyond are not followed

    @property
    def budgets(self) -> tuple[int, ...]:
        """How often each of BUDGETS may happen."""
        return tuple(getattr(self, name) or 0 for name in BUDGETS)


BUDGETS = ("lost", "doubled", "leases", "takeovers", "crashes", "early", "failures")  # in the order of graph.py


def open_configuration(configuration: Configuration) -> Opened:
    """Return the federation at rest, with small tables; its times are such that a lease holds every other."""
    tasks, machines = configuration.tasks, configuration.workers
    workload = make_workload(
        pl.DataFrame({"job": [f"j{row}" for row in range(tasks)], "queue": ["q"] * tasks, "user": ["ada"] * tasks}),
        pl.DataFrame({
            "job": list(range(tasks)), "name": ["s"] * tasks, "depends_on": [[]] * tasks, "kind": ["TASK"] * tasks,
            "priority": [0] * tasks, "constraints": [[]] * tasks, "slot": [1.0] * tasks,
        }, schema={**STAGE_COLUMNS, "slot": pl.Float64}),
        pl.DataFrame({"stage": list(range(tasks)), "index": list(range(tasks)), "arrival": [0.0] * tasks,
                      "run_time": [1.0] * tasks}),
        SLOT,
    )
    fleet = make_fleet(pl.DataFrame({"machine": [f"m{row}" for row in range(machines)], "cluster": ["c"] * machines,
                                     "present": [True] * machines, "slot": [1.0] * machines}), SLOT)
    settings = Federation(
        global_masters=configuration.global_masters, local_masters=1, retry=0.5, lease=6.0, timer_slack=0.5,
        heartbeat=1.0 if configuration.beats else math.inf, standby=configuration.standby)
    opened = open_federated(workload, fleet, MEGHA, settings, 1, 1e6, math.inf, compiled=False)
    opened.roles = _small(opened.roles)
    opened.roles.jobs.terms["retries"], opened.roles.jobs.terms["backoff"] = configuration.retries, 1.0
    return opened


def _small(roles: Megha) -> Megha:
    """Return the roles with pools and rings for a handful of attempts."""
    def pool(rows: Attempts) -> Attempts:
        return build_attempts(rows.first.size, ROWS)

    def ring() -> Ledger:
        return Ledger(np.zeros(ENTRIES, ENTRY), np.array([0, -1, 0]))

    return roles._replace(
        locals=[local._replace(rows=pool(local.rows), ledger=ring()) for local in roles.locals],
        workers=roles.workers._replace(rows=pool(roles.workers.rows)))


CONFIGURATIONS = (
    Configuration(name="one-task", lost=2, doubled=2),
    Configuration(name="two-tasks", tasks=2, lost=1, doubled=1, early=1),
    Configuration(name="two-masters", tasks=2, global_masters=2, workers=2, doubled=1, beats=False),
    Configuration(name="lease", leases=1, lost=1, early=1, numbers=3),
    Configuration(name="two-workers", workers=2, leases=1, lost=1, early=0),
    Configuration(name="worker-crash", crashes=1, crashing=("worker 0",), lost=1, early=1),
    Configuration(name="global-master-crash", crashes=1, crashing=("global master 0",), lost=1, doubled=1, early=1),
    Configuration(name="global-master-tasks", tasks=2, crashes=1, crashing=("global master 0",), early=0),
    Configuration(name="local-master-crash", crashes=2, crashing=("local master 0",), early=1),
    Configuration(name="standby", standby=True, takeovers=1, lost=1, early=1),
    Configuration(name="pair-crash", standby=True, crashes=2, crashing=("local master 0", "standby 0"), early=0),
    Configuration(name="failure", failures=2, retries=1, doubled=1, early=1),
    Configuration(name="cancel", cancelled=1, lost=1, doubled=1, early=1),
)


def named(name: str) -> Configuration:
    """Return a configuration by its name. Raises InputError where there is none."""
    found = next((each for each in CONFIGURATIONS if each.name == name), None)
    if found is None:
        raise InputError(f"--config: there is no configuration {name!r}; there are "
                         f"{', '.join(each.name for each in CONFIGURATIONS)}")
    return found
