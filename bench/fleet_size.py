"""Cost against the size of the fleet: tasks a second at 80 % load on 1,000 to 50,000 machines."""
from _workloads import google_fleet, google_tasks
from subak.policy import find_scheduler
from subak.simulator.simulate import simulate

TASKS = 500_000
SIZES = (1_000, 5_000, 12_583, 25_000, 50_000)
SCHEDULERS = ("first-fit", "greedy", "tetris")


def main() -> None:
    print(f"{'machines':>10}" + "".join(f"{name:>14}" for name in SCHEDULERS) + "   (tasks/s)")
    for size in SIZES:
        fleet = google_fleet(size)
        workload = google_tasks(TASKS, fleet)
        rates = []
        for name in SCHEDULERS:
            simulate(workload, fleet, find_scheduler(name), until=1.0)
            rates.append(TASKS / simulate(workload, fleet, find_scheduler(name)).loop_result.seconds)
        print(f"{size:>10,}" + "".join(f"{rate:>14,.0f}" for rate in rates))


if __name__ == "__main__":
    main()
