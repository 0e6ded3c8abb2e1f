"""Declares the options shared by `simulate` and `compare`, and builds a scenario from them."""
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from subak.cli import completion
from subak.errors import InputError
from subak.experiment.scenario import (
    FOREVER,
    GANGS,
    TOGETHER,
    Scenario,
    read_scenario,
    refuse_unknown,
    supported_settings,
)
from subak.federation.choices import PLACEMENTS
from subak.federation.settings import PREEMPTION_RULES, PROFILES, UPDATES, Federation
from subak.measures.energy.settings import energy_names
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import HOLD_BACK_AFTER, LOCALITY_WAIT, SCHEDULERS
from subak.quantities import read_seconds
from subak.resources import parse_amounts, parse_numbers
from subak.toml_files import read_toml
from subak.workload.redraws import RESAMPLES
from subak.workload.samples import DEFAULT_SAMPLE, sample_names

# headings of the help
INPUT, TIME, FAIR = "What is scheduled on what", "Time", "Fair shares"
DURATION = "DURATION"  # such as 90, 30min or 1-02:30:00
FEDERATED, OUTPUT = "A federation", "What is kept"

FleetOption = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="The fleet folder [default: the folder `fleet` in the workload's].", show_default=False,
    rich_help_panel=INPUT)]
MachinesOption = Annotated[int, typer.Option(
    metavar="N", min=0, help="Instead of a fleet: N identical machines of the size given by --capacity.",
    show_default=False, rich_help_panel=INPUT)]
CapacityOption = Annotated[list[str] | None, typer.Option(
    metavar="RESOURCE=AMOUNT,...", help="With --machines: the capacity of each machine, such as cpu=64,memory=256Gi or "
                                        "cpu=50%; or once for each resource. 256G is 7 % less than 256Gi, 256 alone "
                                        "often MiB.",
    show_default=False, rich_help_panel=INPUT)]
AddOption = Annotated[list[str] | None, typer.Option(
    metavar="N:RESOURCE=AMOUNT,...", help="Then add N identical machines, such as 200:cpu=0.5,memory=0.5, without "
                                          "attributes; once for each kind.",
    show_default=False, rich_help_panel=INPUT)]
RemoveOption = Annotated[list[str] | None, typer.Option(
    metavar="N|P%[:RESOURCE=AMOUNT,...]", help="Then remove N machines, or P per cent, evenly over the kinds; or only "
                                               "machines with exactly this capacity, such as 100:cpu=0.5.",
    show_default=False, rich_help_panel=INPUT)]
ScaleOption = Annotated[float, typer.Option(
    metavar="TIMES", help="Multiply the number of machines, keeping the mix: 1.5 adds copies, 0.9 removes evenly. "
                          "Applies before --remove and --add-machines.", rich_help_panel=INPUT)]
OverwriteOption = Annotated[bool, typer.Option(
    "--overwrite", help="Replace the folder of --out if it exists and is one of subak's.", rich_help_panel=OUTPUT)]


def _option(metavar: str, text: str, panel: str | None = None, *names: str, show_default: bool = False,
            **more: Any) -> Any:
    """Return an option of a scenario; its help says what its default means, but where that is shown."""
    if metavar == DURATION:
        more["parser"] = read_seconds
    if "|" in metavar:
        more["autocompletion"] = completion.words(metavar.split("|"))
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_default=show_default, **more)


@dataclass(frozen=True)
class ScenarioOptions:
    """What `simulate` and `compare` are given beside schedulers and seeds, in the order of their help.

    A row is an option, and is named for the field of `Scenario` or of `Federation` that it fills; None, and an empty
    list, leave that at its default.
    """

    workload: Annotated[str, typer.Argument(
        metavar="WORKLOAD", help="A workload folder made by `subak convert`, or the name of a shipped sample: "
                                 f"{' or '.join(sample_names())}; `subak simulate -` reads one through a pipe.",
        autocompletion=completion.workload)] = DEFAULT_SAMPLE
    fleet: FleetOption = None
    machines: MachinesOption = 0
    capacity: CapacityOption = None
    scale: ScaleOption = 1.0
    remove: RemoveOption = None
    add_machines: AddOption = None
    only_queues: Annotated[list[str] | None, _option(
        "QUEUE", "Only the jobs of this queue and of those below it, such as a partition; once for each [default: all "
                 "jobs].", INPUT, "--only-queue")] = None
    load: Annotated[float, _option(
        "TIMES", "Multiply the load, such as 1.3: jobs arrive that much more densely, with the same run "
                 "times.", INPUT, show_default=True)] = 1.0
    resample: Annotated[str | None, _option(
        "|".join(RESAMPLES), "How a seed changes the workload. days: seed 1 is the trace; others redraw its days, "
                             "whole or user by user (eighths of a trace shorter than 5 days). model: another workload "
                             "from the model that generated it. none: not at all [default: auto: redraw if there are "
                             "several seeds, and warn if the trace has too few days].", INPUT)] = None
    interval: Annotated[float | None, _option(
        DURATION, "Length of the timeline's intervals [default: about 400 over the arrivals].", TIME)] = None
    until: Annotated[float, _option(
        DURATION, "Stop at this instant, such as 5400, 1h30m, 2d or 1-02:30:00 "
                    "[default: when everything has ended].", TIME)] = FOREVER
    measure_from: Annotated[float | None, _option(
        DURATION, "Start of the measured window: tasks that arrive from then on, and averages over time from then on "
                  "[default: the first arrival whose true time the workload shows].", TIME)] = None
    measure_until: Annotated[float | None, _option(
        DURATION, "End of the measured window; inf: the end of the run [default: the last arrival, which leaves out "
                  "the drain].", TIME)] = None
    objectives: Annotated[list[str] | None, _option(
        "TEXT", "An objective, such as 'wait.p95 < 60s for queue=prod'; once for each. Measures: wait, turnaround, "
                "slowdown (of tasks), job_wait, completion and job_slowdown (of jobs), each as mean, median, max or a "
                "percentile. Groups: queue, user, priority, length (short, long) or "
                "class.", TIME, "--objective")] = None
    energy: Annotated[Path | None, _option(
        "FILE.toml", "Power of machines, prices of a kWh and a machine-hour, and emissions of a kWh: a file, or the "
                     "name "
                     f"of a shipped one ({', '.join(energy_names())}); it is copied into the run folder. Objectives "
                     "may then be of energy, cost and carbon, such as 'energy.total < 500kWh'.", TIME)] = None
    gangs: Annotated[str, _option(
        "|".join(GANGS), "Workloads with gangs (tasks that start together) under schedulers that start tasks one by "
                         "one: together refuses them; apart splits the gangs, and every table says so.", TIME,
        show_default=True)] = TOGETHER
    slow_start: Annotated[float, _option(
        "SHARE", "Tasks may start when this share of the tasks of their predecessor stage has ended. They hold their "
                 "machine until all have ended, and copy available output meanwhile.", TIME, show_default=True)] = 1.0
    locality_wait: Annotated[float, _option(
        DURATION, "For delay-scheduling: how long a stage waits for a machine that holds its input, and then equally "
                  "long for one in the same rack; 0: fair sharing without "
                  "delay.", TIME, show_default=True)] = LOCALITY_WAIT
    search_seconds: Annotated[float, _option(
        DURATION, "For hmhs-search: how long to improve the plan. The kept scenario records the number of moves, so it "
                  "can be repeated.", TIME, show_default=True)] = 1.0
    search_moves: Annotated[int | None, _option(
        "N", "For hmhs-search: try exactly this many moves instead.", TIME, min=0)] = None
    scenario: Annotated[Path | None, _option(
        "FILE.toml", "Read all settings from a scenario file, such as a run folder's scenario.toml; only --out may be "
                     "added.", INPUT)] = None
    federation: Annotated[Path | None, _option(
        "FILE.toml", "Settings of federations, one key each, such as probe_ratio = 3; the options below override "
                     "it.", FEDERATED)] = None
    global_masters: Annotated[int | None, _option(
        "N", "Number of global masters; for other federations, of sampling schedulers or distributors [default: "
             "10].", FEDERATED)] = None
    local_masters: Annotated[int | None, _option(
        "N", "Number of local masters, one for each cluster [default: the clusters that the fleet names, or 10].",
        FEDERATED)] = None
    heartbeat: Annotated[float | None, _option(
        DURATION, "Time between a local master's periodic updates [default: 10].", FEDERATED)] = None
    delay: Annotated[float | None, _option(
        DURATION, "One-way message latency [default: 0.0005].", FEDERATED)] = None
    service_profile: Annotated[str | None, _option(
        "|".join(PROFILES), "Service times of masters: those of compiled handlers, or of plain Python [default: "
                            "compiled].", FEDERATED)] = None
    service_scale: Annotated[float | None, _option(
        "TIMES", "Factor for all service times; 0: masters take no time [default: 1].", FEDERATED)] = None
    updates: Annotated[str | None, _option(
        "|".join(UPDATES), "Content of updates: only the changes, or the whole cluster [default: changes].",
        FEDERATED)] = None
    placement: Annotated[str | None, _option(
        "|".join(PLACEMENTS), "How a global master chooses a machine within a partition: the first that fits, the best "
                              "aligned (Tetris's score), or the one whose bin lacks the task's class most (LoTES) "
                              "[default: first-fit].", FEDERATED)] = None
    preemption: Annotated[str | None, _option(
        "|".join(PREEMPTION_RULES), "Preemption for queues below their share [default: off].", FEDERATED)] = None
    shares: Annotated[list[str] | None, _option(
        "QUEUE=SHARE", "With --preemption: the share of a queue, such as research=0.25 or 25%; once for each queue "
                       "[default: equal shares].", FEDERATED, "--share")] = None
    faults: Annotated[Path | None, _option(
        "FILE.toml", "A fault plan, for megha and central: messages lost, doubled or late, roles cut off, crashed, "
                     "restarted; it is copied into the run folder.", FEDERATED)] = None
    failures: Annotated[Path | None, _option(
        "FILE.toml", "A plan of task failures, for megha and central: attempts fail or time out, users cancel, with "
                     "retries and deadlines; it is copied into the run folder.",
        FEDERATED)] = None
    queues: Annotated[Path | None, _option(
        "TREE.toml", "Weights and limits of queues (see `subak queues`), for the fair orders and for the shares "
                     "reported by any run [default: weight 1 for each]; it is copied into the run "
                     "folder.", FAIR)] = None
    reclaims_per_hour: Annotated[float, _option(
        "N", "Under a fair order: queues below their guarantees may preempt N tasks an hour from the queue furthest "
             "above its own; at most a minute's worth at once.", FAIR, show_default=True)] = 0.0
    hold_back_after: Annotated[float, _option(
        DURATION, "Under a fair order, and in megha and central: how long smaller tasks may pass a waiting task or "
                  "gang before machines are held back for it; inf: for ever.",
        FAIR,
        show_default=True)] = HOLD_BACK_AFTER
    lotes: Annotated[Path | None, _option(
        "FILE.toml", "Settings of lotes: its classes, bins, choice of machines and replanning; see `subak explain "
                     "lotes`.")] = None
    request_error: Annotated[float, _option(
        "SHARE", "Requests differ from use by up to this share, either way. A task that uses more than it asked for is "
                 "killed, waits again, and then asks for its true use.", show_default=True)] = 0.0
    usage_swing: Annotated[float, _option(
        "SHARE", "Usage varies: during the first or the last part of its life a task uses, and holds, this share of "
                 "its request less. If its use rises while its machine is full, it is killed, waits again, and then "
                 "holds its whole request.", show_default=True)] = 0.0
    interference: Annotated[float, _option(
        "TIMES", "Overcommit CPU by this factor, such as 1.5 (1: none, for use with --request-error). Tasks that "
                 "together want more CPU than their machine has share it and run longer. Memory is never "
                 "overcommitted. Not under federations.", show_default=True)] = 0.0
    estimates: Annotated[str, _option(
        "exact|user|factor=F|class|none", "What schedulers know of run times. exact: the run times; user: the users' "
                                          "own estimates; factor=F: the run time times a factor from 1 to F; class: "
                                          "the mean of tasks with the same request; none: the mean of all tasks "
                                          "[default: user if the workload has estimates, else exact].")] = ""
    check_policy: Annotated[bool, typer.Option(
        "--check-policy", help="Compile policies from files with bounds checks: slower, but a policy that indexes "
                               "outside its arrays is stopped with a message.")] = False
    parameters: Annotated[list[str] | None, _option(
        "NAME=VALUE", "The value of a number that a policy file declares with parameter(); once for each [default: the "
                      "file's value].", None, "--parameter")] = None

    @property
    def files(self) -> list[Path]:
        """What the command reads beside the workload; no result may be written over it."""
        return [value for value in vars(self).values() if isinstance(value, Path)]


# What a field holds where that is not the option's own value.
READ_AS: dict[str, Callable[[Any], object]] = {
    "capacity": parse_amounts,
    "shares": lambda texts: parse_numbers(texts, "--share", "QUEUE=SHARE, such as research=0.25"),
    "lotes": lambda path: read_toml(path, LotesSettings),
    "parameters": lambda texts: parse_numbers(texts, "--parameter", "NAME=VALUE, such as depth=4"),
}


def takes_scenario(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of a scenario where a command has its parameter `given`; it gets them back in it, as one."""
    return takes_options(command, [
        inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=row.type)
        for row in fields(ScenarioOptions)])


def takes_options(command: Callable[..., None], rows: list[inspect.Parameter]) -> Callable[..., None]:
    """Do as `takes_scenario` with these *rows* of it; the first is the command's first argument."""
    own = list(inspect.signature(command).parameters.values())
    here = [parameter.name for parameter in own].index("given")

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        command(given=ScenarioOptions(**{row.name: values.pop(row.name) for row in rows}), **values)

    # what Typer reads
    parameters = [rows[0], *own[:here], *rows[1:], *own[here + 1:]]
    shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return with_options


def scenario_from(
    given: ScenarioOptions, schedulers: list[str] | None, seeds: list[int] | None, default_schedulers: list[str],
) -> Scenario:
    """Return the scenario of a file, or of the options; of schedulers and seeds, None means not given.

    Raises InputError for a mistake in either, or for both at once.
    """
    if given.scenario is not None:
        if schedulers is not None or seeds is not None or changed_options(given).keys() != {"scenario"}:
            raise InputError("--scenario: holds everything, so the other options must be left out")
        return read_scenario(given.scenario)
    names = default_schedulers if schedulers is None else schedulers
    refuse_unknown(names)
    federation = federation_from(given)
    if federation is not None and not any(supported_settings(name) for name in names):
        known = ", ".join(each.name for each in SCHEDULERS.values() if each.settings)
        raise InputError(f"settings of a federation: none of the schedulers {', '.join(names)} is one; {known} are")
    return Scenario(**{**_values(given, Scenario), "federation": federation or Federation(), "schedulers": names,
                       "seeds": seeds or [1]})


def federation_from(given: ScenarioOptions) -> Federation | None:
    """Return the settings of a file with the options given before them, None where neither is there.

    Raises InputError for a setting that does not exist or cannot be.
    """
    changes = _values(given, Federation)
    if given.federation is None and not changes:
        return None
    known = Federation() if given.federation is None else read_toml(given.federation, Federation)
    return msgspec.structs.replace(known, **changes)


def changed_options(given: ScenarioOptions) -> dict[str, Any]:
    """Return the options that are not at their defaults, by name."""
    usual = vars(ScenarioOptions())
    return {name: value for name, value in vars(given).items() if value not in (usual[name], [])}


def _values(given: ScenarioOptions, kind: type[Scenario | Federation]) -> dict[str, Any]:
    """Return the fields of *kind* that options fill: all but those left at their defaults."""
    changed = {name: value for name, value in changed_options(given).items() if name in kind.__struct_fields__}
    return {name: READ_AS.get(name, _as_word)(value) for name, value in changed.items()}


def _as_word(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def split_names(text: str) -> list[str]:
    """Return the names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
