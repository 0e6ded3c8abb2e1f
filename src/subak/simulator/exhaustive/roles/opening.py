"""A tiny federation at rest, before its first event."""
import math

import polars as pl

from subak.federation.megha.attempts import Attempts, build_attempts
from subak.federation.megha.ledger import Ledger, build_ledger
from subak.federation.megha.roles import Megha
from subak.federation.settings import Federation
from subak.fleet.table import make_fleet
from subak.resources import Resource
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import Opened, open_federated
from subak.workload.table import STAGE_COLUMNS, make_workload

SLOT = (Resource("slot", 1.0, ""),)
ROWS = 8  # attempts that a pool has room for
ENTRIES = 1024  # of a ledger: some whole states of two partitions


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
    opened = open_federated(workload, fleet, MEGHA, settings, 1, 1e6, math.inf, compiled=False,
                            hold_back_after=0.0 if configuration.holds else math.inf)
    opened.roles = _small(opened.roles)
    opened.roles.jobs.terms["retries"], opened.roles.jobs.terms["backoff"] = configuration.retries, 1.0
    return opened


def _small(roles: Megha) -> Megha:
    """Return the roles with pools and rings for a handful of attempts."""
    def pool(rows: Attempts) -> Attempts:
        return build_attempts(rows.first.size, ROWS)

    def ring() -> Ledger:
        return build_ledger(ENTRIES, ENTRIES)

    return roles._replace(
        locals=[local._replace(rows=pool(local.rows), ledger=ring()) for local in roles.locals],
        workers=roles.workers._replace(rows=pool(roles.workers.rows)))
