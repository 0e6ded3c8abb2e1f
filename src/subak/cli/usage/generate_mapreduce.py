"""Declares the arguments and help of `subak generate-mapreduce`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.ending import loading
from subak.cli.generated import Batch, Mix, Sharing
from subak.cli.options import OverwriteOption
from subak.quantities import read_seconds
from subak.settings import DURATION

PAPER, AROUND = "The paper's numbers", "Past the paper"  # headings of the help


def generate_mapreduce(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The workload folder to write; the machines go to its "
                                                             "subfolder `fleet`.")],
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same workload.")] = 1,
    workload: Annotated[Mix, typer.Option(
        help="Identical jobs; or 80 % of them, with 15 % long and 5 % large ones.", rich_help_panel=PAPER)] = "single",
    jobs: Annotated[int, typer.Option(metavar="N", help="The number of jobs; a larger number keeps the first ones "
                                                        "unchanged.",
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
    gap: Annotated[float, typer.Option(
        parser=read_seconds, metavar=DURATION, help="Mean gap between arriving jobs (Poisson); 0: all arrive at once.",
        rich_help_panel=AROUND)] = 0.0,
    map_output: Annotated[float, typer.Option(
        metavar="BYTES", help="Output of each map, which the reduces of its job copy before they run; 0: copying takes "
                              "no time.", rich_help_panel=AROUND)] = 0.0,
    copy_rate: Annotated[float, typer.Option(metavar="BYTES", help="Bytes that a reduce copies in a second.",
                                             rich_help_panel=AROUND)] = 20e6,
    overwrite: OverwriteOption = False,
) -> None:
    """Generate a batch of MapReduce jobs on machines of different speeds (HMHS: Chen, Shen, Chen, Guo; section 4.1).

    Example: `subak generate-mapreduce --workload hybrid --cluster 3 --out W`, then `subak compare W --schedulers
    fifo+backfill,fifo-pri,r-hmhs,hmhs,hmhs-search --out R`: the makespans, and how far each is above a lower bound.
    """
    batch = Batch(workload, jobs, cluster, map_machines, reduce_machines, slow_share, slots, sharing, gap, map_output,
                  copy_rate)
    with loading():
        from subak.cli.commands.workloads.generate_mapreduce import generate_mapreduce as generate_batch  # noqa: PLC0415  (draws it)

    generate_batch(out, seed, batch, overwrite)
