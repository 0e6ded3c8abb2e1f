"""An experiment: a scenario is loaded, one run of it simulated, measured and written as a folder that repeats it."""
import hashlib
import platform
import resource as process
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numba
import numpy as np
import polars as pl

import subak
from subak.errors import InputError
from subak.federation.settings import Federation
from subak.fleet.table import Fleet, read_fleet, uniform_fleet
from subak.placement.lotes.settings import LotesSettings
from subak.placement.mapreduce.recipes import RECIPES
from subak.placement.mapreduce.search import SearchSettings
from subak.placement.schedulers import LOTES, SCHEDULERS, Scheduler
from subak.policy import find_scheduler, policy_file
from subak.queues.fair_orders import FAIR_ORDERS
from subak.queues.tree import read_tree
from subak.report import measures
from subak.report.batch import bound_seconds, has_bound, stints
from subak.report.fairness import fairness
from subak.report.federation import federation_facts
from subak.report.runs import FairnessFacts, FleetFacts, PlanFacts, Speed, Summary, WorkloadFacts
from subak.simulator.drive import Progress
from subak.simulator.fault_plan import read_fault_plan
from subak.simulator.federated_results import waiting_tables
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.simulator.run import Outcome, refuse_error, refuse_slow_start, simulate
from subak.tables import new_folder, read_toml, write_table, write_toml
from subak.workload.samples import sample_folder, sample_names
from subak.workload.table import Workload, read_workload

if TYPE_CHECKING:  # scipy and HiGHS, which plans are made with, take a while to load
    from subak.placement.lotes.plan import Plan

FOREVER = float("inf")
MACHINES_MAX = 10_000_000  # alike machines; more would not fit in memory


class Scenario(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to simulate; the same words as the options of `subak simulate` and `subak compare`."""

    workload: str = "google2011"  # a workload folder, or the name of a sample
    workload_digest: str = ""  # of its tables; a run is only repeated on the same
    fleet: str = ""  # a fleet folder; empty: the one inside the workload's
    fleet_digest: str = ""  # likewise
    machines: int = 0  # instead of a fleet: this many alike machines
    capacity: dict[str, float] = {}  # of each of them, in natural amounts
    schedulers: list[str] = msgspec.field(default_factory=lambda: ["first-fit"])  # or FILE.py:NAME
    seeds: list[int] = msgspec.field(default_factory=lambda: [1])  # each scheduler runs once with each
    interval: float | None = None  # seconds of the timeline's intervals
    until: float = FOREVER  # seconds: the last instant to simulate
    federation: Federation = msgspec.field(default_factory=Federation)  # settings of schedulers that are federations
    faults: str = ""  # a plan of what goes wrong, for megha and central
    queues: str = ""  # a file with weights and limits of queues, for the fair orders
    preemptions: float = 0.0  # an hour at most, for queues below their guarantees, under the fair orders
    lotes: LotesSettings = msgspec.field(default_factory=LotesSettings)  # of the scheduler that goes by plans
    request_error: float = 0.0  # by which share requests are wrong; who uses more than it asked for is ended
    slow_start: float = 1.0  # share of a stage's tasks that have ended when those that wait for it may start
    search_seconds: float = 1.0  # to search for a better plan, for schedulers that do
    search_moves: int | None = None  # instead: this many moves, which makes a run repeatable

    def __post_init__(self) -> None:
        """Refuse what no run could mean."""
        if not self.schedulers:
            raise InputError("schedulers: must name at least one")
        if not self.seeds or any(not 0 <= seed < 2**63 for seed in self.seeds):
            raise InputError(f"seeds: must be whole numbers from 0 to 2^63 - 1, at least one, not {self.seeds}")
        for name in ("schedulers", "seeds"):
            values = getattr(self, name)
            twice = next((value for value in values if values.count(value) > 1), None)
            if twice is not None:
                raise InputError(f"{name}: each must be named once, {twice!r} occurs {values.count(twice)} times")
        if self.fleet and self.machines:
            raise InputError(f"fleet and machines: give one of them, not both ({self.fleet} and {self.machines})")
        if not 0 <= self.machines <= MACHINES_MAX:
            raise InputError(f"machines: must be from 1 to {MACHINES_MAX:,}, not {self.machines:,}")
        spared = next((name for name in self.schedulers if "retry" not in heeded_settings(name)), None)
        if self.faults and spared is not None:
            raise InputError(f"faults: {spared} has no remedy for them; only megha and central have")
        for name in self.schedulers:
            refuse_slow_start(self.slow_start, find_scheduler(name))
        self._refuse_search()
        for setting in changed_settings(self.federation):
            if not any(setting in heeded_settings(name) for name in self.schedulers):
                heeders = ", ".join(each.name for each in SCHEDULERS.values() if setting in each.settings)
                raise InputError(f"federation.{setting}: none of the schedulers {', '.join(self.schedulers)} heeds it; "
                                 f"{heeders} would")
        self._refuse_unheeded()

    def _refuse_search(self) -> None:
        """Refuse what no search could mean, and one that none of the schedulers makes."""
        if SearchSettings(self.search_seconds, self.search_moves) == SearchSettings():
            return
        if not any(searches(name) for name in self.schedulers):
            known = ", ".join(name for name, recipe in RECIPES.items() if recipe.searches)
            raise InputError(f"search_seconds, search_moves: none of the schedulers {', '.join(self.schedulers)} "
                             f"searches; {known} would")

    def _refuse_unheeded(self) -> None:
        """Refuse settings that nobody heeds; but queues' weights are what any run's shares are measured by."""
        if self.federation.shares and self.federation.fairness == "off":
            raise InputError("federation.shares (--share): go with fairness (--fairness) strict or paper, not off")
        if not 0 <= self.preemptions < FOREVER:
            raise InputError(f"preemptions: must be 0 or more an hour, not {self.preemptions:g}")
        if self.preemptions and not any(is_fair(scheduler) for scheduler in self.schedulers):
            raise InputError(f"preemptions: none of the schedulers {', '.join(self.schedulers)} has a fair order; "
                             f"these are {', '.join(FAIR_ORDERS)}, alone or as in best-fit+mch")
        if self.request_error:
            for name in self.schedulers:
                refuse_error(self.request_error, find_scheduler(name))
        if self.lotes != LotesSettings() and not any(is_planned(scheduler) for scheduler in self.schedulers):
            raise InputError(f"lotes: none of the schedulers {', '.join(self.schedulers)} goes by these settings; "
                             "lotes does")


def searches(scheduler: str) -> bool:
    """Whether a scheduler, by its name, searches for a better plan."""
    return scheduler in RECIPES and RECIPES[scheduler].searches


def is_fair(scheduler: str) -> bool:
    """Whether a scheduler's name, or one of its options, is a fair order."""
    return any(part in FAIR_ORDERS for part in scheduler.split("+"))


def is_planned(scheduler: str) -> bool:
    """Whether a scheduler, by its name, goes by a plan of LoTES."""
    known = SCHEDULERS.get(scheduler.partition("+")[0])
    return known is not None and known.planned == LOTES


def changed_settings(settings: Federation | LotesSettings) -> dict[str, Any]:
    """Return the settings that differ from their defaults, in their order."""
    usual = msgspec.structs.asdict(type(settings)())
    return {name: value for name, value in msgspec.structs.asdict(settings).items() if value != usual[name]}


def heeded_settings(scheduler: str) -> tuple[str, ...]:
    """Return the settings of a federation that a scheduler heeds, by its name; none for a policy in a file."""
    known = SCHEDULERS.get(scheduler.partition("+")[0])
    return known.settings if known else ()


def settings_of(scenario: Scenario, scheduler: str) -> Federation:
    """Return the scenario's settings as far as a scheduler heeds them."""
    changed = changed_settings(scenario.federation)
    return Federation(**{name: value for name, value in changed.items() if name in heeded_settings(scheduler)})


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file; the paths in it are relative to its folder. Raises InputError with the mistake's place."""
    scenario = read_toml(path, Scenario)
    here = path.parent
    if scenario.workload not in sample_names():
        scenario.workload = str(here / scenario.workload)
    if scenario.fleet:
        scenario.fleet = str(here / scenario.fleet)
    if scenario.faults:
        scenario.faults = str(here / scenario.faults)
    if scenario.queues:
        scenario.queues = str(here / scenario.queues)
    scenario.schedulers = [str(here / name) if policy_file(name) else name for name in scenario.schedulers]
    return scenario


def load_inputs(scenario: Scenario) -> tuple[Workload, Fleet]:
    """Read workload and fleet, and note their digests.

    Raises InputError when one differs from a digest that the scenario holds already.
    """
    folder = sample_folder(scenario.workload) if scenario.workload in sample_names() else Path(scenario.workload)
    workload = read_workload(folder)
    scenario.workload_digest = _same_digest("workload", folder, scenario.workload_digest)
    if scenario.machines:
        return workload, uniform_fleet(scenario.machines, scenario.capacity, workload.resources)
    fleet_folder = Path(scenario.fleet) if scenario.fleet else folder / "fleet"
    if not fleet_folder.is_dir() and not scenario.fleet:
        names = " ".join(f"--capacity {resource.name}=1" for resource in workload.resources)
        raise InputError(f"{folder}: has no fleet; give --fleet FOLDER, or alike machines: --machines 1000 {names}")
    fleet = read_fleet(fleet_folder)
    scenario.fleet_digest = _same_digest("fleet", fleet_folder, scenario.fleet_digest)
    return workload, fleet


def _same_digest(what: str, folder: Path, expected: str) -> str:
    text = hashlib.sha256()
    for path in sorted(folder.glob("*.parquet")):
        text.update(path.read_bytes())
    digest = text.hexdigest()[:16]
    if expected and digest != expected:
        raise InputError(f"{what} {folder}: must be the one the scenario was run on ({expected}), it is now {digest}")
    return digest


def run_label(scheduler: str, seed: int, seeds: list[int]) -> str:
    """Return a run's name: the scheduler's, and the seed's where there are several."""
    name = Path(scheduler).name if policy_file(scheduler) else scheduler
    label = name.replace("/", "_").replace(":", "-")
    return f"{label}-s{seed}" if len(seeds) > 1 else label


def simulate_into(
    folder: Path,
    scenario: Scenario,
    name: str,
    seed: int,
    inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None,
    overwrite: bool = False,
) -> Summary:
    """Simulate one scheduler of the scenario with one seed, and write the run folder whole or not at all."""
    workload, fleet = inputs
    scheduler = find_scheduler(name)
    faults = read_fault_plan(Path(scenario.faults)) if scenario.faults else None
    queues = read_tree(Path(scenario.queues)) if scenario.queues else None
    with new_folder(folder, "summary.json", overwrite) as partial:
        outcome = simulate(workload, fleet, scheduler, seed, scenario.interval, scenario.until, on_progress,
                           federation=settings_of(scenario, name), faults=faults, queues=queues,
                           preemptions=scenario.preemptions, lotes=scenario.lotes,
                           request_error=scenario.request_error, slow_start=scenario.slow_start,
                           search=SearchSettings(scenario.search_seconds, scenario.search_moves))
        summary = _write(partial, outcome, scenario, inputs, run_label(name, seed, scenario.seeds))
        _write_scenario(partial, scenario, name, seed, outcome.search_moves)
    return summary


def _write(partial: Path, outcome: Outcome, scenario: Scenario, inputs: tuple[Workload, Fleet], label: str) -> Summary:
    workload, fleet = inputs
    tasks, timeline = task_table(outcome, workload, fleet), timeline_table(outcome, workload)
    write_table(tasks, partial / "tasks.parquet")
    write_table(timeline, partial / "timeline.parquet")
    attempts = attempt_table(outcome, workload, fleet)
    write_table(attempts, partial / "attempts.parquet")
    for name, table in waiting_tables(outcome, workload, fleet).items():
        write_table(table, partial / f"{name}.parquet")
    queues = read_tree(Path(scenario.queues)) if scenario.queues else None
    fair = fairness(tasks, attempts, timeline, workload, fleet, queues)
    if fair is not None:
        write_table(fair.queues, partial / "queues.parquet")
        write_table(fair.shares, partial / "shares.parquet")
    bound = bound_seconds(workload, fleet, scenario.slow_start < 1) if has_bound(workload, fleet) else None
    if bound is not None:
        write_table(stints(tasks, workload), partial / "stints.parquet")
    summary = summarise(outcome, scenario, inputs, label, tasks, timeline, fair and fair.facts)
    summary = msgspec.structs.replace(summary, makespan_bound=bound, gap=measures.gap(summary, bound))
    (partial / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1))
    return summary


def summarise(
    outcome: Outcome, scenario: Scenario, inputs: tuple[Workload, Fleet], label: str,
    tasks: pl.DataFrame, timeline: pl.DataFrame, fair: FairnessFacts | None,
) -> Summary:
    """Return the run in a page of numbers."""
    (workload, fleet), driven = inputs, outcome.driven
    names = [resource.name for resource in workload.resources]
    source = workload.provenance
    return Summary(
        scheduler=outcome.scheduler.name,
        label=label,
        seed=outcome.seed,
        options=_options(outcome.scheduler, driven.interval, scenario, outcome.search_moves),
        workload=WorkloadFacts(source.name, source.origin, source.licence, len(tasks), len(workload.jobs)),
        fleet=FleetFacts(fleet.provenance.name, len(fleet.machines)),
        resources=workload.resources,
        status=measures.status_counts(tasks),
        reasons=measures.reasons(tasks),
        response=measures.response_spread(tasks),
        slowdown=measures.slowdown_spread(tasks),
        makespan=measures.makespan(tasks),
        utilisation=measures.utilisation(timeline, names),
        waiting=measures.waiting(timeline),
        stranded=measures.stranded(timeline, names),
        attempts_lost=sum(lost.shape[1] for lost in driven.losses),
        run_time_lost=float(sum((end - start).sum() for _, _, start, end in driven.losses)),
        federation=None if outcome.federated is None else federation_facts(outcome, workload, tasks),
        fairness=fair,
        plan=plan_facts(outcome.plans) if outcome.plans else None,
        speed=Speed(len(tasks) / max(driven.seconds, 1e-9), driven.events, driven.seconds, peak_memory_bytes()),
        versions={"subak": subak.__version__, "python": platform.python_version(), "numba": numba.__version__,
                  "numpy": np.__version__, "polars": pl.__version__},
    )


def plan_facts(plans: "tuple[Plan, ...]") -> PlanFacts:
    """Return what the first plan of a run promised, and what all of them took."""
    first = plans[0]
    return PlanFacts(
        classes=first.classes.share.size, configurations=first.configurations.machines.size,
        bins=len(first.assignment.bins), rate_pooled=first.allocation.rate, rate=first.assignment.rate,
        rate_rounded=first.assignment.rate_rounded, plans=len(plans),
        seconds=sum(sum(plan.seconds.values()) for plan in plans), notes=first.notes,
    )


def _options(
    scheduler: Scheduler, interval: float, scenario: Scenario, search_moves: int | None
) -> dict[str, object]:
    options: dict[str, object] = {"order": scheduler.order, "interval_s": interval, "waits_at": scheduler.waits_at}
    if scenario.until != FOREVER:
        options["until_s"] = scenario.until
    if scenario.slow_start != 1.0:
        options["slow_start"] = scenario.slow_start
    if search_moves is not None:
        options["search_moves"] = search_moves
    return options


def peak_memory_bytes() -> float:
    """Return the largest resident size that this process has had."""
    return process.getrusage(process.RUSAGE_SELF).ru_maxrss * 1024.0


def _write_scenario(partial: Path, scenario: Scenario, name: str, seed: int, search_moves: int | None) -> None:
    """Write the scenario of this one run: enough to repeat it, with copies of the files that it names.

    A search that was limited in time is repeated in as many moves.
    """
    one = msgspec.structs.replace(
        scenario, schedulers=[name], seeds=[seed], federation=settings_of(scenario, name),
        preemptions=scenario.preemptions if is_fair(name) else 0.0,
        lotes=scenario.lotes if is_planned(name) else LotesSettings(),
        search_seconds=Scenario().search_seconds, search_moves=search_moves)
    file = policy_file(name)
    if file is not None:
        shutil.copyfile(file, partial / "policy.py")
        one.schedulers = ["policy.py" + name[len(str(file)):]]
    if one.faults:
        shutil.copyfile(one.faults, partial / "faults.toml")
        one.faults = "faults.toml"
    if one.queues:
        shutil.copyfile(one.queues, partial / "queues.toml")
        one.queues = "queues.toml"
    if one.workload not in sample_names():
        one.workload = str(Path(one.workload).resolve())
    if one.fleet:
        one.fleet = str(Path(one.fleet).resolve())
    values = {**msgspec.structs.asdict(one), "federation": changed_settings(one.federation),
              "lotes": changed_settings(one.lotes)}
    usual = msgspec.structs.asdict(Scenario())
    values = {key: value for key, value in values.items()
              if value != usual[key] or key in {"workload", "schedulers", "seeds"}}
    values = {key: value for key, value in values.items() if value not in ({}, None)}
    write_toml(values, partial / "scenario.toml")
