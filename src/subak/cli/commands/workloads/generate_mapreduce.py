"""`subak generate-mapreduce`: draws a batch of MapReduce jobs and its machines, as in the HMHS paper."""
from pathlib import Path

from subak.cli.generated import Batch
from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.output.writing import new_folder
from subak.report.console import echo
from subak.report.number_text import counted
from subak.workload.mapreduce import CLUSTERS, WORKLOADS, MapReduce, draw_batch
from subak.workload.table import Workload


def generate_mapreduce(out: Path, seed: int, batch: Batch, overwrite: bool) -> None:
    """Write a batch and its machines, and say what they are."""
    parameters = MapReduce(
        classes=WORKLOADS[batch.workload], jobs=batch.jobs, map_machines=batch.map_machines,
        reduce_machines=batch.reduce_machines, slow_share=_slow_share(batch.cluster, batch.slow_share),
        slots=batch.slots, sharing=batch.sharing, gap=batch.gap, map_output_bytes=batch.map_output,
        copy_bytes_per_second=batch.copy_rate)
    with new_folder(out, "workload.toml", overwrite) as folder:
        drawn, fleet = draw_batch(parameters, seed)
        drawn.write(folder)
        (folder / "fleet").mkdir()
        fleet.write(folder / "fleet")
    _show(drawn, fleet, out)


def _slow_share(cluster: int | None, share: float | None) -> float:
    if cluster is not None and share is not None:
        raise InputError("--slow-share: stands instead of --cluster, which must be left out")
    if cluster is not None and cluster not in CLUSTERS:
        raise InputError(f"--cluster: must be one of {', '.join(map(str, CLUSTERS))}, not {cluster}")
    return CLUSTERS[cluster or 1] if share is None else share


def _show(workload: Workload, fleet: Fleet, out: Path) -> None:
    counts = dict(workload.stages["name"].gather(workload.tasks["stage"]).value_counts().rows())
    echo(f"Wrote {out}: {counted(len(workload.jobs), 'job')} of {counted(counts.get('map', 0), 'map')} and "
         f"{counted(counts.get('reduce', 0), 'reduce')}, the last arriving at {workload.tasks['arrival'][-1]:,.0f} s")
    echo(f"Wrote {out / 'fleet'}: {counted(len(fleet.machines), 'machine')}, {len(fleet.attributes):,} of them slow")
