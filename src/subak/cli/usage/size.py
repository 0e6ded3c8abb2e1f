"""Declares the arguments and help of `subak size`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.options import NOTHING_GIVEN, Given, OverwriteOption, scenario_from, takes_scenario
from subak.cli.usage.compare import PROCESSES_MAX
from subak.errors import InputError
from subak.experiment.fleet_words import MACHINES_MAX, read_capacity
from subak.experiment.scenario import Scenario
from subak.experiment.seeds import parse_seeds
from subak.measures.objective import OF_MACHINES, read_objective
from subak.settings import INPUT, OUTPUT

DEFAULT_SCHEDULER, DEFAULT_SEEDS = "first-fit", "1-10"
SIGNS = ("<", "<=")  # of objectives that more machines help to keep


@takes_scenario
def size(
    scheduler: Annotated[str | None, typer.Option(
        metavar="NAME", help="A name from `subak schedulers`, with options behind plus signs, or FILE.py:NAME for a "
                             f"policy of your own [default: {DEFAULT_SCHEDULER}].", show_default=False,
        autocompletion=completion.scheduler)] = None,
    seeds: Annotated[str | None, typer.Option(
        metavar="1,2,5-8", help="Each size runs once with each seed; several draw the workload anew, the same for "
                                f"every size, see --resample [default: {DEFAULT_SEEDS}; of a trace 1-41, itself and "
                                "40 draws].",
        show_default=False)] = None,
    kinds: Annotated[list[str] | None, typer.Option(
        "--kind", metavar="RESOURCE=AMOUNT,...", help="The machines to count, such as cpu=64,memory=256Gi (256G is 7 % "
                                                      "less, 256 alone often MiB); once for each kind that may be "
                                                      "chosen [default: the mix of the fleet].",
        show_default=False, rich_help_panel=INPUT)] = None,
    prices: Annotated[list[float] | None, typer.Option(
        "--price", metavar="AMOUNT", help="The price of a machine, in any unit; once for each --kind, in the same "
                                          "order.",
        show_default=False, rich_help_panel=INPUT)] = None,
    mixes: Annotated[list[Path] | None, typer.Option(
        "--mix", metavar="FILE.toml", help="Machines in fixed proportions, with prices or without: [[machines]] with "
                                           "count, capacity and price; once for each mix.",
        show_default=False, rich_help_panel=INPUT)] = None,
    limit: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=MACHINES_MAX, help="Try at most this many machines [default: twice the number of tasks "
                                                   "that would run at once if none "
                                                   "waited].", show_default=False)] = None,
    given: Given = NOTHING_GIVEN,
    processes: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=PROCESSES_MAX, help="How many runs at once [default: one a core].",
        show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep a page, the table of sizes, and fleet and scenario of the machines "
                               "needed in this folder [default: only show the table].", show_default=False,
        rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Find the fewest machines, or the cheapest kind of machine, with which all objectives hold.

    The first line is the answer to report. Sizes are tried by bisection. For a generated workload each size runs
    with the same seeds, and the answer has a 95 % interval over them. For a trace the fewest machines are for the trace
    itself; redraws of its days give intervals for the typical stretch of its length and for the next one, and the
    number needed. A size on which some task can never run, because no machine is large enough, misses every objective.

    - `subak size W --objective 'slurm_wait.p95 < 1h' --kind cpu=64,memory=256Gi --scheduler easy` counts nodes under
      backfill, as Slurm has it; else in strict order. `--load 1.3`: 30 % more; `--only-queue gpu`: one partition.
    - `subak size W --objective 'wait.p95 < 60s'` keeps the mix of W's fleet.
    - `subak size W --objective 'wait.p95 < 60s' --kind cpu=1 --price 5 --kind cpu=4 --price 18` finds the cheaper kind.
    - `subak size W --objective 'wait.p95 < 60s' --out S`, then `subak compare --scenario S/scenario.toml`, runs it.

    If no size tried is enough, the exit code is 1 and nothing is kept. A file for --mix keeps proportions,
    here 3 to 1:

        [[machines]]
        count = 3
        capacity = { cpu = 0.5, memory = 0.25 }
        price = 4.0

        [[machines]]
        count = 1
        capacity = { cpu = 1, memory = 1 }
        price = 9.0
    """
    usual = DEFAULT_SEEDS if given.scenario is None else None
    drawn = usual if seeds is None else seeds
    scenario = scenario_from(given, None if scheduler is None else [scheduler],
                             None if drawn is None else parse_seeds(drawn), [DEFAULT_SCHEDULER])
    found = [read_capacity(text, "--kind") for text in kinds or []]
    _refuse_scenario(scenario, bool(kinds or mixes))
    _refuse_prices(prices or [], len(found))
    with loading():
        from subak.cli.commands.size import size as size_workload  # noqa: PLC0415  (loads the simulator)

    of_each: list[float | None] = [*prices] if prices else [None] * len(found)
    priced = list(zip(found, of_each, strict=True))
    size_workload(scenario, (priced, mixes or []), given.files, (usual is not None and seeds is None, limit, processes),
                  (out, overwrite))


def _refuse_scenario(scenario: Scenario, named: bool) -> None:
    """Raise InputError for what says how many machines there are, and for objectives that more of them do not help."""
    if len(scenario.schedulers) > 1:
        raise InputError(f"size: takes one scheduler, not {len(scenario.schedulers)}")
    if scenario.machines:
        raise InputError("machines: size finds how many there must be; say what they are with --kind, such as --kind "
                         "cpu=1,memory=1")
    if named and (scenario.fleet or scenario.remove or scenario.add_machines or scenario.scale != 1.0):
        raise InputError("--kind, --mix: say what the machines are; --fleet, --scale, --remove and --add-machines say "
                         "it too, so leave them out")
    if not scenario.objectives:
        raise InputError("objective: size needs at least one, such as --objective 'wait.p95 < 60s'")
    for each in map(read_objective, scenario.objectives):
        if each.measure in OF_MACHINES:
            raise InputError(f"objective {each.text!r}: is no objective of size, since more machines make it more")
        if each.sign not in SIGNS:
            raise InputError(f"objective {each.text!r}: must be < or <= for size, since more machines make it less")


def _refuse_prices(prices: list[float], kinds: int) -> None:
    """Raise InputError unless each kind has a price, or none."""
    if prices and len(prices) != kinds:
        raise InputError(f"--price: must be given once for each --kind, there are {len(prices)} for {kinds}")
    bad = next((price for price in prices if not 0 <= price < float("inf")), None)
    if bad is not None:
        raise InputError(f"--price: must be a number, 0 or more, not {bad:g}")
