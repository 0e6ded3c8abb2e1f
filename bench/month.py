"""A month of a Google-size cluster: 29 days, 25 million tasks on 12,583 machines, first fit with backfill.

Jobs are drawn whole from the shipped sample: its 1,501 requests, its bursts, its run times times what gives a load of
0.85. A third more come at noon than in the mean, so that queues form by day and are gone by night. Everything that
`subak simulate` does on a folder: read, simulate, measure, write; as it does by itself, which is in chunks, and in one
chunk. Required: under 60 s and 4 GB.

    python bench/month.py        # or with fewer days: python bench/month.py 3
"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from _workloads import SAMPLE_SHARES, google_fleet, sample_jobs

DAYS, TASKS_A_DAY, LOAD = 29.0, 862_000, 0.85
SCHEDULER = "first-fit+backfill"
ALL_AT_ONCE = "100000000"  # tasks


def write_inputs(folder: Path, days: float) -> None:
    """Write the workload and its fleet (in a process of its own, so that its memory is not counted)."""
    fleet = google_fleet(resources=SAMPLE_SHARES)
    (folder / "fleet").mkdir(parents=True)
    fleet.write(folder / "fleet")
    sample_jobs(int(days * TASKS_A_DAY), fleet, days, LOAD).write(folder)


def measure(workload: Path, run: Path, *options: str) -> None:
    """Simulate the month in a process of its own, and print what it took."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "subak", "simulate", str(workload), "--scheduler", SCHEDULER, *options,
                    "--out", str(run)], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    summary = msgspec.json.decode((run / "summary.json").read_bytes())
    speed, waiting = summary["speed"], summary["waiting"]
    print(f"{' '.join(options) or 'by itself'}: {summary['workload']['tasks']:,} tasks of "
          f"{summary['workload']['jobs']:,} jobs: {seconds:.1f} s in all, {speed['seconds']:.1f} s of it the loop "
          f"({speed['tasks_per_second']:,.0f} tasks/s), {speed['peak_memory_bytes'] / 1e9:.2f} GB at the peak; "
          f"{waiting['mean']:,.0f} tasks wait in the mean, {waiting['max']:,.0f} at most (required: 60 s, 4 GB)")


def main() -> None:
    days = float(sys.argv[1]) if len(sys.argv) > 1 else DAYS
    if len(sys.argv) > 2:
        write_inputs(Path(sys.argv[2]), days)
        return
    with tempfile.TemporaryDirectory() as scratch:
        workload, run = Path(scratch) / "month", Path(scratch) / "run"
        subprocess.run([sys.executable, __file__, str(days), str(workload)], check=True)
        measure(workload, run)
        measure(workload, Path(scratch) / "at-once", "--chunk", ALL_AT_ONCE)
        same = all((run / name).read_bytes() == (Path(scratch) / "at-once" / name).read_bytes()
                   for name in ("tasks.parquet", "timeline.parquet", "queues.parquet", "shares.parquet"))
        print(f"both wrote the same: {same}")


if __name__ == "__main__":
    main()
