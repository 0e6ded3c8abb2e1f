"""Declares the arguments and help of `subak tune`."""
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.options import NOTHING_GIVEN, Given, OverwriteOption, scenario_from, takes_scenario
from subak.cli.usage.compare import PROCESSES_MAX
from subak.errors import InputError
from subak.experiment.seeds import parse_seeds
from subak.experiment.tuning.question import Question, space_of
from subak.settings import OUTPUT

DEFAULT_SCHEDULER = "lotes"
DEFAULT_SEEDS, DEFAULT_HELD_OUT = "1-3", "101-110"
TRIALS_MAX = 100_000
TUNING = "What is tuned"


@takes_scenario
def tune(
    scheduler: Annotated[str | None, typer.Option(
        metavar="NAME", help="The scheduler to tune: lotes, a federation, or FILE.py:NAME for a policy of your own "
                             f"[default: {DEFAULT_SCHEDULER}].", show_default=False, rich_help_panel=TUNING,
        autocompletion=completion.scheduler)] = None,
    parameter: Annotated[list[str] | None, typer.Option(
        "--tune", metavar="NAME[=LEAST:MOST]", help="A parameter to tune, and its range; once for each [default: all "
                                                    "parameters that the scheduler declares].",
        show_default=False, rich_help_panel=TUNING)] = None,
    minimise: Annotated[str, typer.Option(
        metavar="MEASURE", help="The measure to minimise, in the words of --objective, such as 'wait.p95 for "
                                "queue=prod'; its mean over the seeds.",
        rich_help_panel=TUNING)] = "slowdown.mean",
    trials: Annotated[int, typer.Option(
        metavar="N", min=1, max=TRIALS_MAX, help="The number of settings to try; the first are the given ones.",
        rich_help_panel=TUNING)] = 50,
    seeds: Annotated[str | None, typer.Option(
        metavar="1,2,5-8", help=f"Each trial runs once with each seed [default: {DEFAULT_SEEDS}].", show_default=False,
        rich_help_panel=TUNING)] = None,
    held_out: Annotated[str, typer.Option(
        "--held-out", metavar="1,2,5-8", help="Seeds on which the best settings are compared with the given ones; "
                                              "three or more give an interval.",
        rich_help_panel=TUNING)] = DEFAULT_HELD_OUT,
    held_out_workload: Annotated[str, typer.Option(
        "--held-out-workload", metavar="WORKLOAD", help="Compare on another workload [default: the same, redrawn by "
                                                        "the held-out seeds].",
        show_default=False, rich_help_panel=TUNING)] = "",
    sampler_seed: Annotated[int, typer.Option(
        "--sampler-seed", metavar="N", min=0, max=2**31 - 1, help="Seed of the search: the same seed tries the same "
                                                                  "settings.",
        rich_help_panel=TUNING)] = 1,
    given: Given = NOTHING_GIVEN,
    processes: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=PROCESSES_MAX, help="How many seeds of a trial at once [default: one a core].",
        show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the trials in this folder, and resume from those in it [default: only show the "
                               "table].", show_default=False, rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Tune a scheduler's parameters on some seeds, and judge the result on others.

    Needs the extra `tune` (Optuna): `pip install subak[tune]`.

    - `subak tune W --scheduler lotes --trials 50 --out R` tries 50 settings of LoTES; R/best.toml is the best, for
      `subak compare --scenario`.
    - `subak tune W --scheduler sparrow --tune probe_ratio=1:6 --tune probes_min --minimise wait.p99`
    - `subak tune W --scheduler megha --objective 'wait.p95 < 60s'` prefers settings that meet it.
    - `subak tune W --scheduler my_policy.py:mine` tunes what the file declares: `DEPTH = parameter("depth", 4, 1, 32)`.

    The same command resumes, also after a kill; more --trials continue the search. The table shows the settings found,
    their difference from the given ones on the held-out seeds with a 95 % interval, and which parameters mattered. It
    says so if the given settings are not beaten.
    """
    chosen = None if scheduler is None else [scheduler]
    tuned_on = None if seeds is None else parse_seeds(seeds)
    scenario = scenario_from(given, chosen, tuned_on, [DEFAULT_SCHEDULER])
    if given.scenario is None and tuned_on is None:
        scenario = msgspec.structs.replace(scenario, seeds=parse_seeds(DEFAULT_SEEDS))
    question = Question(scenario=scenario, minimise=minimise, tune=parameter or [], held_out=_held_out(held_out),
                        held_out_workload=held_out_workload, sampler_seed=sampler_seed)
    space_of(question)
    with loading():
        try:
            from subak.cli.commands.tune import tune as tune_one  # noqa: PLC0415  (loads the simulator, and Optuna)
        except ModuleNotFoundError as error:
            if error.name != "optuna":
                raise
            raise InputError("tune: Optuna is not installed; install it with pip install 'subak[tune]'") from None

    tune_one(question, given.files, trials, processes, out, overwrite)


def _held_out(text: str) -> list[int]:
    try:
        return parse_seeds(text)
    except InputError as error:
        raise InputError(str(error).replace("--seeds", "--held-out")) from None
