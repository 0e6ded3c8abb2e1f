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
    metavar="N", min=0, help="Instead of a fleet: N alike machines, of the size that --capacity gives.",
    show_default=False, rich_help_panel=INPUT)]
CapacityOption = Annotated[list[str] | None, typer.Option(
    metavar="RESOURCE=AMOUNT,...", help="With --machines: the capacity of each machine, such as cpu=64,memory=256Gi or "
                                        "cpu=50%; or once for each resource. 256G is 7 % less than 256Gi, 256 alone "
                                        "often MiB.",
    show_default=False, rich_help_panel=INPUT)]
AddOption = Annotated[list[str] | None, typer.Option(
    metavar="N:RESOURCE=AMOUNT,...", help="Then add N alike machines, such as 200:cpu=0.5,memory=0.5, without "
                                          "attributes; once for each kind.",
    show_default=False, rich_help_panel=INPUT)]
RemoveOption = Annotated[list[str] | None, typer.Option(
    metavar="N|P%[:RESOURCE=AMOUNT,...]", help="Then take N machines out, or P per cent, evenly over the kinds; or of "
                                               "those with just that much, such as 100:cpu=0.5.",
    show_default=False, rich_help_panel=INPUT)]
ScaleOption = Annotated[float, typer.Option(
    metavar="TIMES", help="So many times the machines, of the same mix: copies, or evenly fewer. Before --remove and "
                          "--add-machines.", rich_help_panel=INPUT)]
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
        "TIMES", "So many times the workload's load, such as 1.3: jobs are submitted that much more densely, and run "
                 "for as long as they did.", INPUT, show_default=True)] = 1.0
    resample: Annotated[str | None, _option(
        "|".join(RESAMPLES), "How a seed changes the workload. days: seed 1 is the trace, others draw its days anew, "
                             "whole ones or each user's (eighths of a trace of less than 5 days); model: another "
                             "workload of the model that generated it; none: not at all [default: auto, which draws "
                             "where there are several seeds, and says where a trace tells too little].", INPUT)] = None
    interval: Annotated[float | None, _option(
        DURATION, "Length of the timeline's intervals [default: about 400 over the arrivals].", TIME)] = None
    until: Annotated[float, _option(
        DURATION, "Stop at this instant, such as 5400, 1h30m, 2d or 1-02:30:00 "
                    "[default: when everything has ended].", TIME)] = FOREVER
    measure_from: Annotated[float | None, _option(
        DURATION, "Measure the tasks that arrive then or later, and means over time from then on [default: the first "
                   "arrival that the workload shows as it came].", TIME)] = None
    measure_until: Annotated[float | None, _option(
        DURATION, "Measure up to then; inf: to the end of the run [default: the last arrival, so without the drain "
                   "behind it].", TIME)] = None
    objectives: Annotated[list[str] | None, _option(
        "TEXT", "What must hold, such as 'wait.p95 < 60s for queue=prod'; once for each. Of wait, turnaround, "
                "slowdown (of tasks), job_wait, completion and job_slowdown (of jobs): mean, median, max or a "
                "percentile; for queue, user, priority, length (short, long) or class.", TIME, "--objective")] = None
    energy: Annotated[Path | None, _option(
        "FILE.toml", "What machines draw, what a kWh and a machine-hour cost and what a kWh emits: a file, or the name "
                     f"of a shipped one ({', '.join(energy_names())}); it is copied into the run folder. Objectives "
                     "may then be of energy, cost and carbon, such as 'energy.total < 500kWh'.", TIME)] = None
    gangs: Annotated[str, _option(
        "|".join(GANGS), "Gangs, whose tasks start together, under schedulers that start tasks one by one: together "
                         "refuses them; apart takes gangs apart, and every table says so.", TIME,
        show_default=True)] = TOGETHER
    slow_start: Annotated[float, _option(
        "SHARE", "Tasks that wait for a stage may start when this share of its tasks has ended; they hold their "
                 "machine until all have, and copy what is there meanwhile.", TIME, show_default=True)] = 1.0
    locality_wait: Annotated[float, _option(
        DURATION, "For delay-scheduling: how long a stage waits for a machine that holds its input, and then as long "
                   "for one of its rack; 0: fair sharing without a delay.", TIME, show_default=True)] = LOCALITY_WAIT
    search_seconds: Annotated[float, _option(
        DURATION, "For hmhs-search: how long to improve the plan; the kept scenario holds how many moves that were, "
                   "and so repeats it.", TIME, show_default=True)] = 1.0
    search_moves: Annotated[int | None, _option(
        "N", "For hmhs-search: try exactly so many moves instead.", TIME, min=0)] = None
    scenario: Annotated[Path | None, _option(
        "FILE.toml", "Read all of this from a scenario file, such as a run folder's scenario.toml; not together with "
                     "other options than --out.", INPUT)] = None
    federation: Annotated[Path | None, _option(
        "FILE.toml", "Settings of the schedulers that are federations, a key each, such as probe_ratio = 3; the "
                     "options below come before it.", FEDERATED)] = None
    global_masters: Annotated[int | None, _option(
        "N", "Global masters; also schedulers that sample, and distributors [default: 10].", FEDERATED)] = None
    local_masters: Annotated[int | None, _option(
        "N", "Local masters, each with a cluster of its own [default: the clusters that the fleet names, or 10].",
        FEDERATED)] = None
    heartbeat: Annotated[float | None, _option(
        DURATION, "Between a local master's periodic updates [default: 10].", FEDERATED)] = None
    delay: Annotated[float | None, _option(
        DURATION, "That a message is under way [default: 0.0005].", FEDERATED)] = None
    service_profile: Annotated[str | None, _option(
        "|".join(PROFILES), "Whose service times these are: masters whose handlers are compiled, or in plain Python "
                            "[default: compiled].", FEDERATED)] = None
    service_scale: Annotated[float | None, _option(
        "TIMES", "All service times times this; 0: masters cost nothing [default: 1].", FEDERATED)] = None
    updates: Annotated[str | None, _option(
        "|".join(UPDATES), "What updates carry: what changed, or the whole cluster [default: changes].",
        FEDERATED)] = None
    placement: Annotated[str | None, _option(
        "|".join(PLACEMENTS), "Which machine of a partition a global master takes: the first that fits, the best "
                              "aligned (Tetris's score), or the one whose bin lacks the task's class most (LoTES) "
                              "[default: first-fit].", FEDERATED)] = None
    preemption: Annotated[str | None, _option(
        "|".join(PREEMPTION_RULES), "Preemption for queues below their share [default: off].", FEDERATED)] = None
    shares: Annotated[list[str] | None, _option(
        "QUEUE=SHARE", "With --preemption: a queue's share of one, such as research=0.25; once for each queue "
                       "[default: even shares].", FEDERATED, "--share")] = None
    faults: Annotated[Path | None, _option(
        "FILE.toml", "A plan of what goes wrong, for megha and central: messages lost, doubled or late, roles cut "
                     "off, crashed, restarted; it is copied into the run folder.", FEDERATED)] = None
    failures: Annotated[Path | None, _option(
        "FILE.toml", "A plan of how tasks end that do not finish, for megha and central: attempts fail or run too "
                     "long, users cancel, with retries and deadlines; it is copied into the run folder.",
        FEDERATED)] = None
    queues: Annotated[Path | None, _option(
        "TREE.toml", "Weights and limits of queues (see `subak queues`): what the fair orders go by, and what the "
                     "shares of any run are measured by [default: weight 1 for each]; it is copied into the run "
                     "folder.", FAIR)] = None
    reclaims_per_hour: Annotated[float, _option(
        "N", "Under a fair order: a queue below its guarantee may take places back from the queue furthest above its "
             "own, N an hour; a minute's worth at once.", FAIR, show_default=True)] = 0.0
    hold_back_after: Annotated[float, _option(
        DURATION, "Under a fair order, and in megha and central: for how long a task or gang is passed over, as its "
                   "turn comes in vain while smaller ones start, before machines are held back for it; inf: for ever.",
        FAIR,
        show_default=True)] = HOLD_BACK_AFTER
    lotes: Annotated[Path | None, _option(
        "FILE.toml", "Settings of lotes, its classes, bins, choice and plans during a run; see `subak explain "
                     "lotes`.")] = None
    request_error: Annotated[float, _option(
        "SHARE", "Requests are wrong by up to this share of what tasks use, either way; a task that uses more than it "
                 "asked for is ended, waits again and then asks for what it uses.", show_default=True)] = 0.0
    usage_swing: Annotated[float, _option(
        "SHARE", "Usage varies: during a part of its life, the first or the last, a task uses this share of its "
                 "request less, and holds what it uses; one whose use rises where its machine has no room is ended, "
                 "waits again and then holds all it asks for.", show_default=True)] = 0.0
    interference: Annotated[float, _option(
        "TIMES", "Machines promise so many times the CPU that they have (overcommit, such as 1.5; 1: just what they "
                 "have, with --request-error). Tasks that want more than there is share it, run longer and hold their "
                 "machine for longer; memory is never promised twice. Not under federations.", show_default=True)] = 0.0
    estimates: Annotated[str, _option(
        "exact|user|factor=F|class|none", "What schedulers are told of run times: the run times; the users' own "
                                          "estimates; the run time times a factor from 1 to F; the mean of the tasks "
                                          "that ask for the same; nothing, the mean of all [default: user where the "
                                          "workload has estimates, else exact].")] = ""
    check_policy: Annotated[bool, typer.Option(
        "--check-policy", help="Compile policies from files with bounds checks: slower, but one that leaves its "
                               "arrays is stopped, and named.")] = False
    parameters: Annotated[list[str] | None, _option(
        "NAME=VALUE", "The value of a number that a policy from a file declares with parameter(); once for each "
                      "[default: what the file says].", None, "--parameter")] = None

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
