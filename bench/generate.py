"""The Google-like generator: the paper's model alone beside vectorised NumPy, and a month to disk.

The peer draws the same laws with NumPy's fastest generator (SFC64) and its ziggurats, in chunks that stay in the second
cache, and cannot be cut into chunks without changing what is drawn: a generator a thread. Both are timed in turn, and
the best of several rounds counts. Required: 5 million tasks a second for the model alone on one core; the month in
under 60 s and 2 GB.
"""
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from subak.workload.google_like.draw import PaperTasks, draw
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.google import google_machines
from subak.workload.google_like.parameters import Parameters

TASKS, ROUNDS, MONTH = 10_000_000, 5, 25_400_000
CHUNK = 1 << 16  # what stays in the second cache
PAPER = Parameters()
RATES = np.array([PAPER.task_priority_rate, PAPER.service_priority_rate])
MU, SIGMA = (np.array([getattr(law, name) for law in (PAPER.tasks, PAPER.services)]) for name in ("mu", "sigma"))


def vectorised(random: np.random.Generator, count: int) -> PaperTasks:
    """Return tasks of the paper's model (its Fig. 8), a call of NumPy's a column; what is above 1 is drawn again."""
    gap = random.pareto(PAPER.gap_shape, count) * ((PAPER.gap_shape - 1) * PAPER.dynamism)
    service = random.random(count) >= PAPER.type
    law = service.view(np.uint8)
    priority = random.standard_exponential(count) / RATES[law]
    while (wrong := np.flatnonzero(priority > 1)).size:
        priority[wrong] = random.standard_exponential(wrong.size) / RATES[law[wrong]]
    return PaperTasks(gap, service, priority, np.exp(MU[law] + SIGMA[law] * random.standard_normal(count)))


def by_numpy(threads: int) -> Callable[[int], float]:
    """Return what draws a chunk, by its number, and returns the sum of its gaps; a generator a thread."""
    generators = [np.random.Generator(np.random.SFC64(number)) for number in range(threads)]
    return lambda number: float(vectorised(generators[number % threads], CHUNK).gap.sum())


def by_subak(threads: int) -> Callable[[int], float]:
    return lambda number: float(draw(PAPER, 1, number * CHUNK, CHUNK).gap.sum())


def speed(chunk: Callable[[int], float], threads: int) -> tuple[float, float]:
    """Draw all tasks, keeping nothing but a sum; return tasks a second and the mean gap, seconds."""
    chunks = TASKS // CHUNK
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:  # thread t draws chunks t, t + threads, ...
        gaps = pool.map(lambda own: sum(map(chunk, range(own, chunks, threads))), range(threads))
        gap = sum(gaps) / (chunks * CHUNK)
    return chunks * CHUNK / (time.perf_counter() - began), gap


def compare_speed() -> None:
    cores = len(os.sched_getaffinity(0))
    for threads in dict.fromkeys((1, cores)):
        sides = {"vectorised NumPy": by_numpy(threads), "subak": by_subak(threads)}
        found = [{name: speed(chunk, threads) for name, chunk in sides.items()} for _ in range(ROUNDS)]
        best = {name: max(each[name] for each in found) for name in sides}
        for name, (rate, gap) in best.items():
            print(f"{threads} of {cores} cores, {name:<17} {rate:12,.0f} tasks/s   mean gap {gap:.4f} s")
        ratio = best["subak"][0] / best["vectorised NumPy"][0]
        print(f"  ratio {ratio:.2f}" + (" (required: 5,000,000 tasks/s)" if threads == 1 else ""))
    check_laws()


def check_laws() -> None:
    """Print what both drew: they must be the same laws."""
    for name, tasks in (("vectorised NumPy", vectorised(np.random.Generator(np.random.SFC64(1)), 1_000_000)),
                        ("subak", draw(PAPER, 1, 0, 1_000_000))):
        print(f"{name:<17} median makespan {np.median(tasks.makespan):.1f} s, "
              f"mean priority {tasks.priority.mean():.4f}, services {tasks.service.mean():.4f}")


def write_month(folder: Path) -> None:
    """Write the month in this process, and say how long it took, on how many cores, and how much memory."""
    began, used = time.perf_counter(), time.process_time()
    written = write_generated(folder, PAPER, 1, Length(tasks=MONTH))
    (folder / "fleet").mkdir()
    google_machines().write(folder / "fleet")
    seconds, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"a month, {written.tasks:,} tasks in {written.jobs:,} jobs, to disk: {seconds:.1f} s, "
          f"{(time.process_time() - used) / seconds:.2f} cores busy, {peak / 1e9:.2f} GB at the peak, "
          f"{size / 1e9:.2f} GB on disk (required: 60 s, 2 GB)")


def main() -> None:
    if len(sys.argv) > 1:
        write_month(Path(sys.argv[1]))
        return
    compare_speed()
    with tempfile.TemporaryDirectory() as scratch:  # a process of its own, so that its memory is its own
        subprocess.run([sys.executable, __file__, scratch], check=True)


if __name__ == "__main__":
    main()
