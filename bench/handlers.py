"""What a handler of Megha costs without the compiler, as a live master in plain Python would run it, by kind.

The defaults of the service times (federation/settings.py) are these medians, rounded.
"""
import os
import time

os.environ["NUMBA_DISABLE_JIT"] = "1"

import numpy as np  # noqa: I001  (the compiler is switched off before anything is imported)
from _workloads import SHARES, google_tasks, uniform_fleet

from subak.federation.messages import KINDS
from subak.federation.settings import PART_S, SERVICE_S
from subak.placement.schedulers import SCHEDULERS
from subak.simulator.federated import engine
from subak.simulator.simulate import simulate

TASKS, MACHINES = 2000, 1000


def main():
    seconds, entries = {}, []
    plain, note_batch, due = engine.serve, engine.note_batch, []

    def noted(network, message):
        due[:] = [message]
        note_batch(network, message)

    def timed(services, tables, role, now):
        kind, carried, began = KINDS[due[0]["kind"]], int(due[0]["count"]), time.perf_counter()
        result = plain(services, tables, role, now)
        seconds.setdefault(kind, []).append(time.perf_counter() - began)
        if kind in PART_S:
            entries.append((carried, seconds[kind][-1]))
        return result

    engine.serve, engine.note_batch = timed, noted
    fleet = uniform_fleet(MACHINES, {"cpu": 0.5, "memory": 0.5}, SHARES)
    simulate(google_tasks(TASKS, fleet), fleet, SCHEDULERS["megha"])
    print(f"{TASKS:,} tasks on {MACHINES:,} machines, 10 global and 10 local masters, plain Python")
    print(f"{'kind':<12}{'messages':>10}{'median us':>12}{'default us':>12}")
    for kind, times in sorted(seconds.items()):
        print(f"{kind:<12}{len(times):>10,}{1e6 * np.median(times):>12.1f}{1e6 * SERVICE_S.get(kind, 0):>12.1f}")
    carried, took = np.array(entries).T
    slope = np.polyfit(carried, took, 1)[0]
    print(f"each entry of an update: {1e6 * slope:.1f} us (default {1e6 * PART_S['UPDATE']:.1f})")


if __name__ == "__main__":
    main()
