"""Declares the arguments and help of `subak generate`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.ending import loading
from subak.cli.generated import Number, Numbers
from subak.cli.options import NOTHING_GIVEN, Given, OverwriteOption, machines_from, takes_machines
from subak.quantities import read_seconds
from subak.settings import DURATION

PAPER, AROUND, LENGTH = "The paper's numbers", "Around the paper's model", "How much"  # headings of the help


@takes_machines
def generate(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The workload folder to write; the machines go to its "
                                                             "subfolder `fleet`. `-`: write it to standard output, "
                                                             "as a tar that `subak simulate -` reads.")],
    tasks: Annotated[int | None, typer.Option(
        metavar="N", help="The number of tasks. Google's month had 25400000; at the paper's gap they arrive in 14.7 "
                          "days.",
        show_default=False,
        rich_help_panel=LENGTH)] = None,
    seconds: Annotated[Number, typer.Option(
        parser=read_seconds, metavar=DURATION,
        help="Instead of --tasks: all tasks that arrive before this time, such as 2h.", show_default=False,
        rich_help_panel=LENGTH)] = None,
    load: Annotated[Number, typer.Option(
        metavar="SHARE", help="Instead of --dynamism: the mean load, as a share of the fleet's scarcer resource, such "
                              "as 0.8.", show_default=False,
        rich_help_panel=LENGTH)] = None,
    given: Given = NOTHING_GIVEN,
    parameters: Annotated[Path | None, typer.Option(
        metavar="FILE.toml", help="Parameters of every model, as `subak fit` writes them; the options below override "
                                  "single ones.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same workload.")] = 1,
    dynamism: Annotated[Number, typer.Option(
        parser=read_seconds, metavar=DURATION, help="Mean gap between tasks [default: 0.05].", show_default=False,
        rich_help_panel=PAPER)] = None,
    gap_shape: Annotated[Number, typer.Option(
        metavar="B", help="Shape of the Pareto law of the gaps [default: 4].", show_default=False,
        rich_help_panel=PAPER)] = None,
    type_: Annotated[Number, typer.Option(
        "--type", metavar="SHARE", help="Share of tasks; the rest are services [default: 0.7].", show_default=False,
        rich_help_panel=PAPER)] = None,
    task_mass: Annotated[Number, typer.Option(
        parser=read_seconds, metavar=DURATION, help="Mean makespan of tasks [default: 1700].", show_default=False,
        rich_help_panel=PAPER)] = None,
    task_disparity: Annotated[Number, typer.Option(
        metavar="RATIO", help="Mean over median makespan of tasks [default: 3.8].", show_default=False,
        rich_help_panel=PAPER)] = None,
    service_mass: Annotated[Number, typer.Option(
        parser=read_seconds, metavar=DURATION, help="Mean makespan of services [default: 8000].", show_default=False,
        rich_help_panel=PAPER)] = None,
    service_disparity: Annotated[Number, typer.Option(
        metavar="RATIO", help="Mean over median makespan of services [default: 24].", show_default=False,
        rich_help_panel=PAPER)] = None,
    users: Annotated[int | None, typer.Option(
        metavar="N", help="The number of users, each with a queue; their sizes follow Zipf's law [default: "
                          "1].", show_default=False,
        rich_help_panel=AROUND)] = None,
    diurnal: Annotated[Number, typer.Option(
        metavar="AMPLITUDE", help="Amplitude of a daily rhythm of the arrivals, 0 to 1; the mean rate stays the same "
                                  "[default: off].",
        show_default=False, rich_help_panel=AROUND)] = None,
    constraints: Annotated[Number, typer.Option(
        metavar="SHARE", help="This share of the tasks has placement constraints, by Megha's tables; the machines "
                              "get attributes to match [default: off].", show_default=False,
        rich_help_panel=AROUND)] = None,
    google_classes: Annotated[bool, typer.Option(
        "--google-classes", help="Google's priorities and scheduling classes instead of the paper's priority in "
                                 "thousandths.", rich_help_panel=AROUND)] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Generate a workload like Google's of 2011 (Da Costa, Grange, De Courchelle, 2016), or like a fitted trace.

    Without --fleet or --machines, the fleet is Google's 12,583 machines (LoTES, Table 1), so that
    `subak compare FOLDER` runs as it is. Jobs, stages, gangs and failures are set in the parameter file.

    Example: `subak generate --tasks 1000000 --load 0.8 --out W`, then `subak compare W --schedulers first-fit,tetris`.
    """
    place = machines_from(given)
    numbers = Numbers(dynamism, gap_shape, type_, task_mass, task_disparity, service_mass, service_disparity, users,
                      diurnal, constraints, google_classes)
    with loading():
        from subak.cli.commands.workloads.generate import generate as generate_workload  # noqa: PLC0415  (loads the model)

    generate_workload(out, tasks, seconds, load, place, parameters, seed, numbers, overwrite)
