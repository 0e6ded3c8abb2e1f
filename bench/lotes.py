"""LoTES: tasks a second on Google's 12,583 machines at 80 % load, beside other schedulers, and how long a plan takes.

Tasks with the classes of LoTES's Table 2 come to machines that are at that load from the beginning; every scheduler
runs in a process of its own. Required: 500,000 tasks a second for lotes, less than 2 s for a plan.
"""
import json
import resource
import subprocess
import sys
import time

from subak.placement.lotes.plan import make_plan
from subak.policy import find_scheduler
from subak.reproduce.lotes.workload import Month, month_of
from subak.simulator.simulate import simulate
from subak.workload.google_like.google import google_machines

TASKS, LOAD, ROUNDS, REQUIRED = 4_000_000, 0.8, 3, 500_000
SCHEDULERS = ("lotes", "lotes+least-work", "lotes+deficit", "lotes+sampled", "first-fit", "best-fit", "greedy",
              "tetris")


def measure(scheduler: str) -> dict[str, float]:
    """Return tasks a second (median, least, most), the mean wait, seconds for a plan and the peak memory in GB."""
    fleet = google_machines()
    workload = month_of(Month(TASKS, 29 * TASKS / 25_400_000, LOAD, burst=LOAD), fleet, seed=1)
    simulate(workload, fleet, find_scheduler(scheduler), until=0.0)  # compile, or load, the engine
    began = time.perf_counter()
    make_plan(workload, fleet)
    planned = time.perf_counter() - began
    runs = [simulate(workload, fleet, find_scheduler(scheduler)) for _ in range(ROUNDS)]
    rates = sorted(TASKS / run.loop_result.seconds for run in runs)
    waits = runs[0].simulation.progress.start - runs[0].simulation.progress.ready
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {"median": rates[ROUNDS // 2], "least": rates[0], "most": rates[-1], "mean_wait_s": float(waits.mean()),
            "plan_s": planned, "peak_gb": peak}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    print(f"{'scheduler':16}{'tasks/s':>12}{'least':>12}{'most':>12}{'mean wait s':>13}{'plan s':>8}{'GB':>7}")
    for scheduler in SCHEDULERS:
        done = subprocess.run([sys.executable, __file__, scheduler], check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        verdict = "" if scheduler != "lotes" else " reached" if row["median"] >= REQUIRED else " NOT REACHED"
        print(f"{scheduler:16}{row['median']:12,.0f}{row['least']:12,.0f}{row['most']:12,.0f}{row['mean_wait_s']:13.3f}"
              f"{row['plan_s']:8.2f}{row['peak_gb']:7.2f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
