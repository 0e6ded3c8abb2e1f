"""A month of a Google-size cluster: 25 million tasks of Table 2's classes on 12,583 machines at 80 % load, first fit.

Everything that `subak simulate` does on a folder: read, simulate, measure, write. Required: under 60 s and 6 GB.
"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from _workloads import google_fleet, google_tasks

TASKS = 25_000_000


def write_inputs(folder: Path) -> None:
    """Write the workload and its fleet (in a process of its own, so that its memory is not counted)."""
    fleet = google_fleet()
    (folder / "fleet").mkdir(parents=True)
    fleet.write(folder / "fleet")
    google_tasks(TASKS, fleet).write(folder)


def main() -> None:
    if len(sys.argv) > 1:
        write_inputs(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        workload, run = Path(scratch) / "month", Path(scratch) / "run"
        subprocess.run([sys.executable, __file__, str(workload)], check=True)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "subak", "simulate", str(workload), "--out", str(run)], check=True)
        seconds = time.perf_counter() - began
        speed = msgspec.json.decode((run / "summary.json").read_bytes())["speed"]
        print(f"{TASKS:,} tasks: {seconds:.1f} s in all, {speed['seconds']:.1f} s of it the event loop "
              f"({speed['tasks_per_second']:,.0f} tasks/s), {speed['peak_memory_bytes'] / 1e9:.2f} GB at the peak "
              f"(required: 60 s, 6 GB)")


if __name__ == "__main__":
    main()
