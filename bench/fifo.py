"""First in, first out on one-slot machines, against SimPy and a loop over a heap: the same tasks on 1,000 machines.

SimPy has a Resource, which knows who holds it, and a Container, which counts, and is faster. The loop is the least that
anybody would write: it knows when each machine is free next, and nothing else.

Required: at least 20 times SimPy's tasks a second, faster than the loop, the same mean completion time to 6 digits.
"""
import heapq
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import simpy

from _workloads import one_slot_fleet, one_slot_tasks
from subak.placement.schedulers import SCHEDULERS
from subak.simulator.simulate import simulate

TASKS, MACHINES, ROUNDS = 200_000, 1_000, 5


def of_resource(arrivals: list[float], run_times: list[float]) -> list[float]:
    """Return each task's completion minus arrival in SimPy's own first-in-first-out resource."""
    environment = simpy.Environment()
    machines = simpy.Resource(environment, capacity=MACHINES)

    def task(number, seconds):
        with machines.request() as machine:
            yield machine
            yield environment.timeout(seconds)
        completions[number] = environment.now - arrivals[number]

    return _run(environment, task, arrivals, run_times, completions := [0.0] * len(arrivals))


def of_container(arrivals: list[float], run_times: list[float]) -> list[float]:
    """Return the same where machines are the contents of SimPy's container."""
    environment = simpy.Environment()
    machines = simpy.Container(environment, capacity=MACHINES, init=MACHINES)

    def task(number, seconds):
        yield machines.get(1)
        yield environment.timeout(seconds)
        machines.put(1)
        completions[number] = environment.now - arrivals[number]

    return _run(environment, task, arrivals, run_times, completions := [0.0] * len(arrivals))


def _run(environment, task, arrivals, run_times, completions) -> list[float]:
    def source():
        for number, (at, seconds) in enumerate(zip(arrivals, run_times, strict=True)):
            yield environment.timeout(at - environment.now)
            environment.process(task(number, seconds))

    environment.process(source())
    environment.run()
    return completions


def of_loop(arrivals: list[float], run_times: list[float]) -> list[float]:
    """Return the same of a loop over a heap of the times at which machines are free."""
    free, completions = [0.0] * MACHINES, []
    for at, seconds in zip(arrivals, run_times, strict=True):
        end = max(at, free[0]) + seconds
        heapq.heapreplace(free, end)
        completions.append(end - at)
    return completions


def timed(function: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    """Return the seconds that a call took, and what it returned."""
    began = time.perf_counter()
    found = function(*arguments)
    return time.perf_counter() - began, found


def main() -> None:
    workload, fleet = one_slot_tasks(TASKS, MACHINES), one_slot_fleet(MACHINES)
    arrival, run_time = workload.tasks["arrival"].to_numpy(), workload.tasks["run_time"].to_numpy()
    simulate(workload, fleet, SCHEDULERS["first-fit"], until=1.0)  # compile, or load, the engine
    peers = {"SimPy's resource": of_resource, "SimPy's container": of_container, "a loop over a heap": of_loop}
    seconds: dict[str, list[float]] = {name: [] for name in (*peers, "subak", "subak's loop")}
    for _ in range(ROUNDS):
        means = []
        for name, peer in peers.items():
            took, completions = timed(peer, arrival.tolist(), run_time.tolist())
            seconds[name].append(took)
            means.append(statistics.fmean(completions))
        took, outcome = timed(simulate, workload, fleet, SCHEDULERS["first-fit"])
        seconds["subak"].append(took)
        seconds["subak's loop"].append(outcome.loop_result.seconds)
        means.append(float((outcome.simulation.progress.start + run_time - arrival).mean()))
        if np.ptp(means) > 1e-6 * means[0]:
            raise SystemExit(f"the mean completion times differ: {means}")
    ours = statistics.median(seconds["subak"])
    for name, found in seconds.items():
        print(f"{name:<20} {TASKS / statistics.median(found):>12,.0f} tasks/s   "
              f"{TASKS / max(found):,.0f} to {TASKS / min(found):,.0f}   "
              f"subak is {statistics.median(found) / ours:.2f} times it")
    print("required: 20 times SimPy, above the loop; the mean completion time is the same to 6 digits")


if __name__ == "__main__":
    main()
