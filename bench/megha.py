"""Federations: tasks a second, memory, and the cost of a task as the data center grows.

Jobs of 20 alike tasks in a Poisson stream at 80 % load, a million tasks; every case runs in a process of its own, so
that its memory is its own. Required: 200,000 tasks a second for megha on 10,000 machines with 10 global and 10 local
masters, 100,000 on 50,000 machines with 50 local masters, 300,000 for sparrow on 10,000 workers.
"""
import json
import resource
import subprocess
import sys

from subak.federation.settings import Federation
from subak.policy import find_scheduler
from subak.reproduce.workloads import machines, steady, workload_of
from subak.simulator.simulate import simulate

TASKS, LOAD, ROUNDS = 1_000_000, 0.8, 3
CASES = (  # scheduler, machines, local masters, tasks, required tasks a second
    ("megha", 10_000, 10, TASKS, 200_000), ("megha", 50_000, 50, TASKS, 100_000),
    ("sparrow", 10_000, 10, TASKS, 300_000),
)
GROWTH = tuple(("megha", size, 10, 200_000, None) for size in (1_000, 5_000, 10_000, 20_000, 50_000))


def measure(scheduler: str, size: int, local_masters: int, tasks: int) -> dict[str, float]:
    """Return tasks a second (median, least, most) and the peak memory in GB, of this process."""
    workload, fleet = workload_of(steady(tasks, size, LOAD, seed=1)), machines(size, local_masters)
    settings = Federation(local_masters=local_masters, service_profile="python",  # as before masters were compiled
                          service_scale=0.0 if scheduler == "sparrow" else 1.0)
    simulate(workload, fleet, find_scheduler(scheduler), until=0.0, federation=settings)  # compile, or load, the engine
    rates = sorted(tasks / simulate(workload, fleet, find_scheduler(scheduler), federation=settings).loop_result.seconds
                   for _ in range(ROUNDS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {"median": rates[ROUNDS // 2], "least": rates[0], "most": rates[-1], "peak_gb": peak}


def main() -> None:
    if len(sys.argv) > 1:
        scheduler, *numbers = sys.argv[1:]
        print(json.dumps(measure(scheduler, *map(int, numbers))))
        return
    for scheduler, size, local_masters, tasks, required in (*CASES, *GROWTH):
        done = subprocess.run([sys.executable, __file__, scheduler, *map(str, (size, local_masters, tasks))],
                              check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        wanted = f"   (required: {required:,})" if required else ""
        print(f"{scheduler:<8} {size:>6,} machines, {local_masters:>2} local masters, {tasks:>9,} tasks: "
              f"{found['median']:>9,.0f} tasks/s   {found['least']:,.0f} to {found['most']:,.0f}   "
              f"{1e6 / found['median']:.2f} us a task   {found['peak_gb']:.2f} GB{wanted}", flush=True)


if __name__ == "__main__":
    main()
