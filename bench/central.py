"""Central schedulers on LoTES's 12,583 machines at 80 % load, two resources: tasks a second of the event loop.

Required: 1,000,000 for first-fit and greedy, 300,000 for tetris.
"""
import statistics

from _workloads import google_fleet, google_tasks
from subak.policy import find_scheduler
from subak.simulator.simulate import simulate

TASKS, ROUNDS = 1_000_000, 3
REQUIRED = {"first-fit": 1_000_000, "greedy": 1_000_000, "tetris": 300_000}
OTHERS = ("first-fit+backfill", "easy", "conservative", "best-fit", "worst-fit", "random-fit")


def main() -> None:
    fleet = google_fleet()
    workload = google_tasks(TASKS, fleet)
    for name in (*REQUIRED, *OTHERS):
        simulate(workload, fleet, find_scheduler(name), until=1.0)  # compile, or load, the engine
        rates = [TASKS / simulate(workload, fleet, find_scheduler(name)).loop_result.seconds for _ in range(ROUNDS)]
        wanted = f"   (required: {REQUIRED[name]:,})" if name in REQUIRED else ""
        print(f"{name:<20} {statistics.median(rates):>12,.0f} tasks/s   {min(rates):,.0f} to {max(rates):,.0f}{wanted}")


if __name__ == "__main__":
    main()
