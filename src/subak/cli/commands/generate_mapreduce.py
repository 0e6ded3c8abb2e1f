"""`subak generate-mapreduce`: a batch of MapReduce jobs and machines of different speeds, as HMHS draws them."""
from pathlib import Path
from typing import Annotated, Literal

import typer

from subak.cli.options import OverwriteOption
from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.output.writing import new_folder
from subak.report.console import echo
from subak.workload.mapreduce import CLUSTERS, WORKLOADS, MapReduce, Sharing, draw_batch
from subak.workload.table import Workload

PAPER, AROUND = "The paper's numbers", "Past the paper"  # headings of the help
Mix = Literal["single", "hybrid"]


def generate_mapreduce(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The workload folder to write; the machines go to its "
                                                             "subfolder `fleet`.")],
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same workload.")] = 1,
    workload: Annotated[Mix, typer.Option(
        help="Alike jobs, or 80 % of them with 15 % long and 5 % large ones.", rich_help_panel=PAPER)] = "single",
    jobs: Annotated[int, typer.Option(metavar="N", help="So many jobs; more leave the first as they are.",
                                      rich_help_panel=PAPER)] = 100,
    cluster: Annotated[int | None, typer.Option(
        metavar="1..6", help="A cluster of Table 1: its share of slow machines is 0, 20, 40, 60, 80 or 100 % "
                             "[default: 1].", show_default=False, rich_help_panel=PAPER)] = None,
    map_machines: Annotated[int, typer.Option(metavar="N", help="Machines for maps.", rich_help_panel=PAPER)] = 100,
    reduce_machines: Annotated[int, typer.Option(metavar="N", help="Machines for reduces.",
                                                 rich_help_panel=PAPER)] = 100,
    slow_share: Annotated[float | None, typer.Option(
        metavar="SHARE", help="Instead of --cluster: this share of the machines is slow.", show_default=False,
        rich_help_panel=AROUND)] = None,
    slots: Annotated[int, typer.Option(metavar="N", help="Slots of each machine, for each kind of task that it takes.",
                                       rich_help_panel=AROUND)] = 1,
    sharing: Annotated[Sharing, typer.Option(
        help="Maps and reduces have machines of their own, or share machines that have slots of both kinds, or share "
             "the slots of all machines.", rich_help_panel=AROUND)] = "none",
    gap: Annotated[float, typer.Option(metavar="SECONDS", help="Mean gap of jobs that arrive over time (Poisson); 0: "
                                                               "all at once.", rich_help_panel=AROUND)] = 0.0,
    map_output: Annotated[float, typer.Option(
        metavar="BYTES", help="That each map leaves for the reduces of its job, which copy it before they run; 0: "
                              "copying takes no time.", rich_help_panel=AROUND)] = 0.0,
    copy_rate: Annotated[float, typer.Option(metavar="BYTES", help="That a reduce copies in a second.",
                                             rich_help_panel=AROUND)] = 20e6,
    overwrite: OverwriteOption = False,
) -> None:
    """Generate a batch of MapReduce jobs on machines of different speeds (HMHS: Chen, Shen, Chen, Guo; section 4.1).

    Example: `subak generate-mapreduce --workload hybrid --cluster 3 --out W`, then `subak compare W --schedulers
    fifo+backfill,fifo-pri,r-hmhs,hmhs,hmhs-search --out R`: the makespans, and how far each is above a lower bound.
    """
    parameters = MapReduce(
        classes=WORKLOADS[workload], jobs=jobs, map_machines=map_machines, reduce_machines=reduce_machines,
        slow_share=_slow_share(cluster, slow_share), slots=slots, sharing=sharing, gap=gap,
        map_output_bytes=map_output, copy_bytes_per_second=copy_rate)
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
    echo(f"Wrote {out}: {len(workload.jobs):,} jobs of {counts.get('map', 0):,} maps and "
               f"{counts.get('reduce', 0):,} reduces, the last arriving at {workload.tasks['arrival'][-1]:,.0f} s")
    echo(f"Wrote {out / 'fleet'}: {len(fleet.machines):,} machines, {len(fleet.attributes):,} of them slow")
