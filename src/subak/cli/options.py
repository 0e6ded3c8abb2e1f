"""The options that `simulate` and `compare` share, and the scenario they add up to."""
import re
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from subak.errors import InputError
from subak.experiment.scenario import FOREVER, Scenario, read_scenario, supported_settings
from subak.federation.megha.global_master.placement import PLACEMENTS
from subak.federation.settings import PREEMPTION_RULES, UPDATES, Federation
from subak.placement.lotes.settings import LotesSettings
from subak.placement.mapreduce.search import SearchSettings
from subak.placement.schedulers import SCHEDULERS
from subak.tables import read_toml

SEEDS = re.compile(r"\s*(\d{1,19})\s*(?:-\s*(\d{1,19})\s*)?", re.ASCII)  # one, or from one to another
SEEDS_MAX = 10_000
COUNT_MAX = 2**31 - 1  # of what an option counts
SEED_MAX = 2**62  # of what is drawn with an int64, and with those behind it
DEFAULT_WORKLOAD = "google2011"
# headings of the help
INPUT, TIME, FAIR = "What is scheduled on what", "Time", "Fair shares"
FEDERATED, OUTPUT = "A federation", "What is kept"

WorkloadOption = Annotated[str, typer.Argument(
    metavar="WORKLOAD", help="A workload folder made by `subak convert`, or the name of a shipped sample "
                             "(google2011).")]
FleetOption = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="The fleet folder [default: the folder `fleet` in the workload's].", show_default=False,
    rich_help_panel=INPUT)]
MachinesOption = Annotated[int, typer.Option(
    metavar="N", min=0, help="Instead of a fleet: N alike machines, of the size that --capacity gives.",
    show_default=False, rich_help_panel=INPUT)]
CapacityOption = Annotated[list[str] | None, typer.Option(
    metavar="RESOURCE=AMOUNT", help="With --machines: the capacity of each machine, such as cpu=0.5; once for each "
                                    "resource.",
    show_default=False, rich_help_panel=INPUT)]
ScenarioOption = Annotated[Path | None, typer.Option(
    metavar="FILE.toml", help="Read all of this from a scenario file, such as a run folder's scenario.toml; not "
                              "together with other options than --out.", show_default=False, rich_help_panel=INPUT)]
IntervalOption = Annotated[float | None, typer.Option(
    metavar="SECONDS", help="Length of the timeline's intervals [default: about 400 over the arrivals].",
    show_default=False, rich_help_panel=TIME)]
UntilOption = Annotated[float, typer.Option(
    metavar="SECONDS", help="Stop at this instant [default: when everything has ended].", show_default=False,
    rich_help_panel=TIME)]
FederationOption = Annotated[Path | None, typer.Option(
    metavar="FILE.toml", help="Settings of the schedulers that are federations, a key each, such as probe_ratio = 3; "
                              "the options below come before it.", show_default=False, rich_help_panel=FEDERATED)]
GlobalMastersOption = Annotated[int | None, typer.Option(
    metavar="N", help="Global masters; also schedulers that sample, and distributors [default: 10].",
    show_default=False, rich_help_panel=FEDERATED)]
LocalMastersOption = Annotated[int | None, typer.Option(
    metavar="N", help="Local masters, each with a cluster of its own [default: the clusters that the fleet names, or "
                      "10].", show_default=False, rich_help_panel=FEDERATED)]
HeartbeatOption = Annotated[float | None, typer.Option(
    metavar="SECONDS", help="Between a local master's periodic updates [default: 10].", show_default=False,
    rich_help_panel=FEDERATED)]
DelayOption = Annotated[float | None, typer.Option(
    metavar="SECONDS", help="That a message is under way [default: 0.0005].", show_default=False,
    rich_help_panel=FEDERATED)]
ServiceScaleOption = Annotated[float | None, typer.Option(
    metavar="TIMES", help="All service times times this; 0: masters cost nothing [default: 1].", show_default=False,
    rich_help_panel=FEDERATED)]
UpdatesOption = Annotated[str | None, typer.Option(
    metavar="|".join(UPDATES), help="What updates carry: what changed, or the whole cluster [default: changes].",
    show_default=False, rich_help_panel=FEDERATED)]
PlacementOption = Annotated[str | None, typer.Option(
    metavar="|".join(PLACEMENTS), help="Which machine of a partition a global master takes: the first that fits, the "
                                       "best aligned (Tetris's score), or the one whose bin lacks the task's class "
                                       "most (LoTES) [default: first-fit].",
    show_default=False, rich_help_panel=FEDERATED)]
PreemptionOption = Annotated[str | None, typer.Option(
    metavar="|".join(PREEMPTION_RULES), help="Preemption for queues below their share [default: off].",
    show_default=False, rich_help_panel=FEDERATED)]
ShareOption = Annotated[list[str] | None, typer.Option(
    metavar="QUEUE=SHARE", help="With --preemption: a queue's share of one, such as research=0.25; once for each queue "
                                "[default: even shares].", show_default=False, rich_help_panel=FEDERATED)]
FaultsOption = Annotated[Path | None, typer.Option(
    metavar="FILE.toml", help="A plan of what goes wrong, for megha and central: messages lost, doubled or late, roles "
                              "cut off, crashed, restarted; it is copied into the run folder.",
    show_default=False, rich_help_panel=FEDERATED)]
QueuesOption = Annotated[Path | None, typer.Option(
    metavar="TREE.toml", help="Weights and limits of queues (see `subak queues`): what the fair orders go by, and what "
                              "the shares of any run are measured by [default: weight 1 for each]; it is copied into "
                              "the run folder.",
    show_default=False, rich_help_panel=FAIR)]
ReclaimsOption = Annotated[float, typer.Option(
    metavar="N", help="Under a fair order: a queue below its guarantee may take places back from the queue furthest "
                      "above its own, N an hour; a minute's worth at once.", rich_help_panel=FAIR)]
LotesOption = Annotated[Path | None, typer.Option(
    "--lotes", metavar="FILE.toml", help="Settings of lotes, its classes, bins, choice and plans during a run; see "
                                         "`subak explain lotes`.", show_default=False)]
RequestErrorOption = Annotated[float, typer.Option(
    metavar="SHARE", help="Requests are wrong by up to this share of what tasks use, either way; a task that uses more "
                          "than it asked for is ended, waits again and then asks for what it uses.")]
SlowStartOption = Annotated[float, typer.Option(
    metavar="SHARE", help="Tasks that wait for a stage may start when this share of its tasks has ended; they hold "
                          "their machine until all have, and copy what is there meanwhile.", rich_help_panel=TIME)]
SearchSecondsOption = Annotated[float, typer.Option(
    metavar="SECONDS", help="For hmhs-search: how long to improve the plan; the kept scenario holds how many moves "
                            "that were, and so repeats it.",
    rich_help_panel=TIME)]
SearchMovesOption = Annotated[int | None, typer.Option(
    metavar="N", min=0, help="For hmhs-search: try exactly so many moves instead.", show_default=False,
    rich_help_panel=TIME)]
CheckPolicyOption = Annotated[bool, typer.Option(
    "--check-policy", help="Compile policies from files with bounds checks: slower, but one that leaves its arrays is "
                           "stopped, and named.")]
OverwriteOption = Annotated[bool, typer.Option(
    "--overwrite", help="Replace the folder of --out if it exists and is one of subak's.", rich_help_panel=OUTPUT)]


def scenario_from(
    file: Path | None, workload: str, schedulers: list[str] | None, default_schedulers: list[str],
    seeds: list[int] | None, fleet: Path | None, machines: int, capacity: list[str] | None, interval: float | None,
    until: float, federation: Federation | None, faults: Path | None, queues: Path | None, reclaims_per_hour: float,
    lotes: Path | None, request_error: float, slow_start: float, search: SearchSettings, check_policy: bool,
) -> Scenario:
    """Return the scenario of a file, or of the flags; None means not given.

    Raises InputError for a mistake in either, or for both at once.
    """
    flags = Scenario(
        workload=workload, fleet=str(fleet or ""), machines=machines, capacity=parse_amounts(capacity or []),
        interval=interval, until=until, slow_start=slow_start,
    )
    plan, tree = str(faults or ""), str(queues or "")
    if file is None:
        if capacity and not machines:
            raise InputError("--capacity: goes with --machines N")
        names = default_schedulers if schedulers is None else schedulers
        if federation is not None and not any(supported_settings(name) for name in names):
            known = ", ".join(each.name for each in SCHEDULERS.values() if each.settings)
            raise InputError(f"settings of a federation: none of the schedulers {', '.join(names)} is one; {known} are")
        return msgspec.structs.replace(flags, schedulers=names, seeds=seeds or [1],
                                       federation=federation or Federation(), faults=plan, queues=tree,
                                       reclaims_per_hour=reclaims_per_hour, request_error=request_error,
                                       check_policy=check_policy,
                                       lotes=read_toml(lotes, LotesSettings) if lotes else LotesSettings(),
                                       search_seconds=search.seconds, search_moves=search.moves)
    others = (federation, plan, tree, reclaims_per_hour, lotes, request_error, check_policy,
              search != SearchSettings(), flags != Scenario())
    if schedulers is not None or seeds is not None or any(others):
        raise InputError("--scenario: holds everything, so the other options must be left out")
    return read_scenario(file)


def federation_from(file: Path | None, shares: list[str] | None, **given: object) -> Federation | None:
    """Return the settings of a file with the options given before them, None where neither is there.

    Raises InputError for a setting that does not exist or cannot be.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    if shares:
        changes["shares"] = parse_amounts(shares, "--share", "QUEUE=SHARE, such as research=0.25")
    if file is None and not changes:
        return None
    known = Federation() if file is None else read_toml(file, Federation)
    return msgspec.structs.replace(known, **changes)


def parse_amounts(texts: list[str], option: str = "--capacity", form: str = "RESOURCE=AMOUNT, such as cpu=4",
                  ) -> dict[str, float]:
    """Return {name: amount} of texts such as ``cpu=4``. Raises InputError, naming *option*, for another form."""
    amounts: dict[str, float] = {}
    for text in texts:
        name, separator, amount = text.partition("=")
        if name in amounts:
            raise InputError(f"{option}: must name each once, {name} comes again")
        try:
            amounts[name] = float(amount)
        except ValueError:
            separator = ""
        if not separator or not name:
            raise InputError(f"{option}: must be {form}, not {text!r}")
    return amounts


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of a text such as ``1,2,5-8``. Raises InputError for another form."""
    seeds: list[int] = []
    for part in text.split(","):
        found = SEEDS.fullmatch(part)
        first, last = (int(number) for number in (found[1], found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise InputError(f"--seeds: must be whole numbers such as 1,2,5-8, not {text!r}")
        if last - first + len(seeds) >= SEEDS_MAX:
            raise InputError(f"--seeds: must be at most {SEEDS_MAX:,}, not {text!r}")
        seeds.extend(range(first, last + 1))
    return seeds


def split_names(text: str) -> list[str]:
    """Return the names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


__all__ = ["DEFAULT_WORKLOAD", "FOREVER", "OUTPUT"]
