"""The Google-like generator: the paper's model alone against a loop of scipy draws, and a month to disk.

Required: 5 million tasks a second for the model alone; the month in under 60 s and 2 GB.
"""
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.stats

from subak.workload.google_like.draw import draw
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.google import google_machines
from subak.workload.google_like.parameters import Makespans, Parameters

TASKS, LOOP_TASKS, MONTH = 20_000_000, 5_000, 25_400_000
CHUNK = 1 << 16  # what stays in the second cache
PAPER = Parameters()


def bounded_exponential(rate: float) -> float:
    """Reject what is above 1, as the paper does."""
    drawn = scipy.stats.expon.rvs(scale=1 / rate)
    while drawn > 1:
        drawn = scipy.stats.expon.rvs(scale=1 / rate)
    return drawn


def scalar_task(law: Makespans, rate: float) -> tuple[float, float, float]:
    """Return one task's gap, priority and makespan, a scipy call each (the paper's Fig. 8, in other words)."""
    gap = scipy.stats.pareto.rvs(PAPER.gap_shape, loc=-1) * (PAPER.gap_shape - 1) * PAPER.dynamism
    return gap, bounded_exponential(rate), scipy.stats.lognorm.rvs(law.sigma, scale=law.mass / law.disparity)


def scalar_loop(count: int) -> np.ndarray:
    rows = []
    for _ in range(count):
        if random.random() < PAPER.type:
            rows.append(scalar_task(PAPER.tasks, PAPER.task_priority_rate))
        else:
            rows.append(scalar_task(PAPER.services, PAPER.service_priority_rate))
    return np.array(rows)


def chunks(count: int) -> float:
    """Draw *count* tasks in one thread, keeping nothing but a sum, and return the mean gap."""
    return sum(draw(PAPER, 1, first, CHUNK).gap.sum() for first in range(0, count, CHUNK)) / (count // CHUNK * CHUNK)


def compare_speed() -> None:
    random.seed(1)
    np.random.seed(1)  # scipy's default generator
    began = time.perf_counter()
    loop = scalar_loop(LOOP_TASKS)
    loop_speed = LOOP_TASKS / (time.perf_counter() - began)
    began = time.perf_counter()
    gap = chunks(TASKS)
    speed = TASKS / (time.perf_counter() - began)
    drawn = draw(PAPER, 1, 0, 1_000_000)
    print(f"scipy, a task at a time: {loop_speed:12,.0f} tasks/s   mean gap {loop[:, 0].mean():.4f} s, median makespan "
          f"{np.median(loop[:, 2]):.0f} s, mean priority {loop[:, 1].mean():.3f}")
    print(f"subak, one thread:       {speed:12,.0f} tasks/s   mean gap {gap:.4f} s, median makespan "
          f"{np.median(drawn.makespan):.0f} s, mean priority {drawn.priority.mean():.3f}")
    print(f"ratio {speed / loop_speed:,.0f} (required: 5,000,000 tasks/s)")


def write_month(folder: Path) -> None:
    """Write the month in this process, and say how long it took and how much memory."""
    began = time.perf_counter()
    written = write_generated(folder, PAPER, 1, Length(tasks=MONTH))
    (folder / "fleet").mkdir()
    google_machines().write(folder / "fleet")
    seconds, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"a month, {written.tasks:,} tasks in {written.jobs:,} jobs, to disk: {seconds:.1f} s, "
          f"{peak / 1e9:.2f} GB at the peak, {size / 1e9:.2f} GB on disk (required: 60 s, 2 GB)")


def main() -> None:
    if len(sys.argv) > 1:
        write_month(Path(sys.argv[1]))
        return
    compare_speed()
    with tempfile.TemporaryDirectory() as scratch:  # a process of its own, so that its memory is its own
        subprocess.run([sys.executable, __file__, scratch], check=True)


if __name__ == "__main__":
    main()
