"""An experiment: inputs are loaded, a run of a scenario is simulated, measured, and written as a folder."""
import hashlib
import io
import logging
import platform
import resource as process
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numba
import numpy as np
import polars as pl

import subak
from subak.errors import InputError
from subak.experiment.knowledge import knowledge
from subak.experiment.scenario import FOREVER, Scenario, changed_settings, is_fair, is_planned, settings_of
from subak.fleet.table import Fleet, read_fleet, uniform_fleet
from subak.measures import of_run as measures
from subak.measures.batch import has_bound, lower_bound, stints
from subak.measures.energy.measure import energy_use, refuse_energy
from subak.measures.energy.settings import Energy, energy_file, energy_names, read_energy, tables_of
from subak.measures.fairness import fairness
from subak.measures.federation import federation_facts
from subak.measures.jobs import described, group_table, job_facts, job_table, wait_by_length
from subak.measures.objective import read_objective
from subak.measures.objectives import judged
from subak.measures.runs import (
    EnergyFacts,
    FairnessFacts,
    FleetFacts,
    PlanFacts,
    Speed,
    Summary,
    WindowFacts,
    WorkloadFacts,
)
from subak.measures.window import Window, cut, measured, window_facts, window_of
from subak.output.writing import new_folder, write_file
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import Scheduler
from subak.policy import find_scheduler
from subak.policy_files import policy_file, policy_name
from subak.queues.tree import TreeFile, read_tree, tree_of_paths
from subak.simulator.beforehand import refuse_inputs
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.engine.run_loop import Progress
from subak.simulator.engine.setup import Terms
from subak.simulator.federated.fault_plan import FaultPlan, RoleError, read_fault_plan
from subak.simulator.federated_results import waiting_tables
from subak.simulator.mishaps.failure_plan import FailurePlan, PlanError, read_failure_plan
from subak.simulator.outcome import Outcome
from subak.simulator.results import attempt_table, attempts_lost, task_table, timeline_table
from subak.simulator.simulate import simulate
from subak.tables import write_table
from subak.toml_files import write_toml
from subak.workload.redraws import NONE
from subak.workload.resample import resample_for, resampled
from subak.workload.samples import sample_names, workload_folder
from subak.workload.table import Workload, read_workload

if TYPE_CHECKING:  # scipy and HiGHS, which plans are made with, take a while to load
    from subak.placement.lotes.plan import Plan


class Measured(NamedTuple):
    """What a run is measured by: its tables, the window, and how fair it was."""

    tasks: pl.DataFrame
    counted: pl.DataFrame  # those of the window, with what tells them apart
    jobs: pl.DataFrame
    timeline: pl.DataFrame
    window: WindowFacts
    fairness: FairnessFacts | None
    energy: EnergyFacts | None


def load_inputs(scenario: Scenario) -> tuple[Workload, Fleet]:
    """Read workload and fleet, note their digests, and check the files of faults, queues and failures.

    Raises InputError when one differs from a digest that the scenario holds already, or a file breaks a rule.
    """
    _files_of(scenario)
    energy_of(scenario)
    folder = workload_folder(scenario.workload)
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


def inputs_of(scenario: Scenario, *files: Path | None) -> list[Path]:
    """Return what a scenario reads, and *files*: no result may be written over it."""
    names = [scenario.fleet, scenario.faults, scenario.queues, scenario.failures,
             *map(policy_file, scenario.schedulers), *files]
    if scenario.energy and scenario.energy not in energy_names():
        names += [scenario.energy, *tables_of(Path(scenario.energy))]
    workload = [] if scenario.workload in sample_names() else [scenario.workload]
    return [Path(name) for name in (*workload, *names) if name]


def _same_digest(what: str, folder: Path, expected: str) -> str:
    text = hashlib.sha256()
    for path in sorted(folder.glob("*.parquet")):
        text.update(path.read_bytes())
    digest = text.hexdigest()[:16]
    if expected and digest != expected:
        raise InputError(f"{what} {folder}: must be the one the scenario was run on ({expected}), it is now {digest}")
    return digest


def refuse_unfit(scenario: Scenario, schedulers: list[Scheduler], inputs: tuple[Workload, Fleet]) -> None:
    """Raise InputError where no run of one of the scenario's *schedulers*, in order, could begin with these inputs."""
    used_estimates(scenario.estimates, inputs[0])
    faults, queues, failures = _files_of(scenario)
    window, energy = scenario_window(scenario, inputs[0]), energy_of(scenario)
    if energy is not None:
        _refuse_energy(energy, scenario, inputs[1], window)
    for name, scheduler in zip(scenario.schedulers, schedulers, strict=True):
        with _named(scenario):
            refuse_inputs(*inputs, scheduler, settings_of(scenario, name), faults, queues, failures)


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
    scenario, inputs, window = of_seed(scenario, seed, inputs)
    with new_folder(folder, "summary.json", overwrite) as partial:
        summary, tasks = _simulated(partial, scenario, name, seed, inputs, window, on_progress)
    return _with_bound(folder, summary, tasks, scenario, inputs)


def simulate_in(
    folder: Path,
    scenario: Scenario,
    name: str,
    seed: int,
    inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Simulate as `simulate_into`, and write into *folder*, which is there and empty; it may be left half-written."""
    scenario, inputs, window = of_seed(scenario, seed, inputs)
    summary, tasks = _simulated(folder, scenario, name, seed, inputs, window, on_progress)
    return _with_bound(folder, summary, tasks, scenario, inputs)


def of_seed(
    scenario: Scenario, seed: int, inputs: tuple[Workload, Fleet]
) -> tuple[Scenario, tuple[Workload, Fleet], Window]:
    """Return what a seed runs on, and the window, which is the same for all seeds; the scenario says how it was drawn.

    Raises InputError where no task arrives in the window, or the workload cannot be redrawn as the scenario says.
    """
    workload, fleet = inputs
    settled, window = settle_resample(scenario, workload), scenario_window(scenario, workload)
    drawn = resampled(workload, settled.resample, seed, window.begin, window.end)
    return settled, (drawn, fleet), window


def settle_resample(scenario: Scenario, workload: Workload) -> Scenario:
    """Return the scenario with the way in which seeds change its workload. Raises InputError where that cannot be."""
    return msgspec.structs.replace(scenario, resample=resample_for(workload, scenario.resample, len(scenario.seeds)))


def _simulated(
    folder: Path, scenario: Scenario, name: str, seed: int, inputs: tuple[Workload, Fleet], window: Window,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[Summary, pl.DataFrame]:
    workload, fleet = inputs
    scheduler = find_scheduler(name, scenario.check_policy)
    faults, queues, failures = _files_of(scenario)
    if queues is not None:
        _refuse_tree(workload, queues, scenario.queues)
    with _named(scenario):
        outcome = simulate(workload, fleet, scheduler, seed, on_progress=on_progress,
                           federation=settings_of(scenario, name), faults=faults, failures=failures,
                           **{**_terms_of(scenario), "queues": queues})
    written = _write(folder, outcome, scenario, inputs, window, run_label(name, seed, scenario.seeds))
    _write_scenario(folder, scenario, name, seed, outcome.search_moves)
    return written


def scenario_window(scenario: Scenario, workload: Workload) -> Window:
    """Return what the runs of a scenario are measured in. Raises InputError where no task arrives in it."""
    return window_of(workload, scenario.measure_from, scenario.measure_until)


def _terms_of(scenario: Scenario) -> dict[str, Any]:
    """Return what a run is told of a scenario: what both have under one name."""
    return {name: getattr(scenario, name) for name in Terms._fields if hasattr(scenario, name)}


def _files_of(scenario: Scenario) -> tuple[FaultPlan | None, TreeFile | None, FailurePlan | None]:
    """Read the files of faults, of queues and of failures, where the scenario names them."""
    return (read_fault_plan(Path(scenario.faults)) if scenario.faults else None,
            read_tree(Path(scenario.queues)) if scenario.queues else None,
            read_failure_plan(Path(scenario.failures)) if scenario.failures else None)


def _refuse_energy(energy: Energy, scenario: Scenario, fleet: Fleet, window: Window) -> None:
    """Raise InputError, naming the file, for one that does not go with the fleet, the window or the objectives."""
    try:
        refuse_energy(energy, fleet, window.begin, scenario.objectives)
    except InputError as error:
        raise InputError(f"{scenario.energy}: {error}") from None


def energy_of(scenario: Scenario) -> Energy | None:
    """Read what machines draw and cost, where the scenario names a file."""
    return read_energy(energy_file(scenario.energy)) if scenario.energy else None


def _with_bound(
    folder: Path, summary: Summary, tasks: pl.DataFrame, scenario: Scenario, inputs: tuple[Workload, Fleet]
) -> Summary:
    """Add to a run of MapReduce jobs, which is whole without it, what no schedule's makespan is less than."""
    workload, fleet = inputs
    ended = bool((tasks["status"] == "FINISHED").all())  # a bound on the makespan is none on a part of it
    known = tasks["machine"].null_count() == 0  # a log does not say it
    if not ended or not known or not has_bound(workload):
        return summary
    bound = lower_bound(workload, fleet, scenario.slow_start < 1)
    if bound.seconds is not None:
        table = io.BytesIO()
        stints(tasks, workload).write_parquet(table, compression="zstd")
        write_file(folder / "stints.parquet", table.getvalue())
    summary = msgspec.structs.replace(summary, makespan_bound=bound.seconds, makespan_bound_note=bound.note,
                                      gap=measures.gap(summary, bound.seconds))
    write_file(folder / "summary.json", _json(summary))
    return summary


def _json(summary: Summary) -> bytes:
    return msgspec.json.format(msgspec.json.encode(summary), indent=1)


def _refuse_tree(workload: Workload, queues: TreeFile, path: str) -> None:
    """Raise InputError, naming the file, for queues that make no tree with the workload's: not only after the run."""
    try:
        tree_of_paths(workload.jobs["queue"].unique(maintain_order=True), queues)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@contextmanager
def _named(scenario: Scenario) -> Iterator[None]:
    """Name the file of faults, or of failures, in what is wrong with it and only federation and workload show."""
    try:
        yield
    except RoleError as error:
        raise InputError(f"{scenario.faults}: {error}") from None
    except PlanError as error:
        raise InputError(f"{scenario.failures}: {error}") from None


def _write(
    partial: Path, outcome: Outcome, scenario: Scenario, inputs: tuple[Workload, Fleet], window: Window, label: str
) -> tuple[Summary, pl.DataFrame]:
    workload, fleet = inputs
    tasks, timeline = task_table(outcome, workload, fleet), timeline_table(outcome, workload)
    write_table(tasks, partial / "tasks.parquet")
    write_table(timeline, partial / "timeline.parquet")
    attempts = attempt_table(outcome, workload, fleet)
    write_table(attempts, partial / "attempts.parquet")
    for name, table in waiting_tables(outcome, workload, fleet).items():
        write_table(table, partial / f"{name}.parquet")
    queues = read_tree(Path(scenario.queues)) if scenario.queues else None
    of_window = window_facts(tasks, timeline, window)
    jobs, counted = job_table(tasks, workload), described(tasks, workload, of_window)
    write_table(group_table(counted, jobs), partial / "groups.parquet")
    fair = fairness(tasks, attempts, cut(timeline, of_window), workload, fleet, queues)
    if fair is not None:
        write_table(fair.queues, partial / "queues.parquet")
        write_table(fair.shares, partial / "shares.parquet")
    energy, used = energy_of(scenario), None
    if energy is not None:
        used, tables = energy_use(energy, tasks, attempts, cut(timeline, of_window), workload, fleet, of_window)
        for name, table in tables.items():
            write_table(table, partial / f"{name}.parquet")
    summary = summarise(outcome, scenario, inputs, label, Measured(
        tasks, counted, jobs, timeline, of_window, fair and fair.facts, used))
    (partial / "summary.json").write_bytes(_json(summary))
    if outcome.scheduler.recorded:
        _say_overcommitted(timeline, [resource.name for resource in workload.resources])
    return summary, tasks


def _say_overcommitted(timeline: pl.DataFrame, resources: list[str]) -> None:
    """Say that the log's tasks ask for more than the fleet has: its scheduler gave less, or had other machines."""
    said = " and ".join(f"{share:.1%} of its {name}"
                        for name, share in measures.overcommitted(timeline, resources).items())
    if said:
        logging.getLogger("subak").warning(f"recorded: the log's tasks ask for more than the fleet has, up to {said}: "
                                           "their scheduler gave less than they asked for, or had other machines")


def summarise(
    outcome: Outcome, scenario: Scenario, inputs: tuple[Workload, Fleet], label: str, of: Measured
) -> Summary:
    """Return the run in a page of numbers."""
    tasks, counted, window = of.tasks, of.counted, of.window
    within, jobs = cut(of.timeline, window), measured(of.jobs, window)
    (workload, fleet), loop = inputs, outcome.loop_result
    names = [resource.name for resource in workload.resources]
    source = workload.provenance
    lost, run_time_lost = attempts_lost(outcome)
    return Summary(
        scheduler=outcome.scheduler.name,
        label=label,
        seed=outcome.seed,
        knows=knowledge(outcome.scheduler, outcome.federated.settings if outcome.federated else None,
                        scenario.estimates, workload),
        options=_options(outcome.scheduler, loop.interval, scenario, outcome.search_moves),
        workload=WorkloadFacts(source.name, source.origin, source.licence, len(tasks), len(workload.jobs)),
        fleet=FleetFacts(fleet.provenance.name, len(fleet.machines)),
        resources=workload.resources,
        window=window,
        status=measures.status_counts(tasks),
        reasons=measures.reasons(tasks),
        recorded=measures.recorded_counts(tasks, workload),
        wait_time=measures.wait_spread(counted),
        slowdown=measures.slowdown_spread(counted),
        lengths=wait_by_length(counted),
        jobs=job_facts(jobs),
        objectives=tuple(judged(read_objective(text), counted, jobs, workload, of.energy)
                         for text in scenario.objectives),
        makespan=measures.makespan(tasks),
        utilisation=measures.utilisation(within, names),
        waiting=measures.waiting(within),
        stranded=measures.stranded(within, names),
        idle_while_waiting=measures.idle_while_waiting(within, names),
        attempts_lost=lost,
        run_time_lost=run_time_lost,
        failures=measures.outcome_counts(tasks),
        federation=None if outcome.federated is None else federation_facts(outcome, workload, tasks, window),
        fairness=of.fairness,
        plan=plan_facts(outcome.plans) if outcome.plans else None,
        energy=of.energy,
        speed=Speed(len(tasks) / max(loop.seconds, 1e-9), loop.events, loop.seconds, peak_memory_bytes()),
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
    if scenario.resample != NONE:
        options["resample"] = scenario.resample
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
        reclaims_per_hour=scenario.reclaims_per_hour if is_fair(name) else 0.0,
        lotes=scenario.lotes if is_planned(name) else LotesSettings(),
        search_seconds=Scenario().search_seconds, search_moves=search_moves)
    file = policy_file(name)
    if file is not None:
        shutil.copyfile(file, partial / "policy.py")
        one.schedulers = [f"policy.py:{policy_name(name)}"]
    if one.faults:
        shutil.copyfile(one.faults, partial / "faults.toml")
        one.faults = "faults.toml"
    if one.failures:
        shutil.copyfile(one.failures, partial / "failures.toml")
        one.failures = "failures.toml"
    if one.queues:
        shutil.copyfile(one.queues, partial / "queues.toml")
        one.queues = "queues.toml"
    energy = energy_of(one)
    if energy is not None:
        write_toml(energy, partial / "energy.toml")
        one.energy = "energy.toml"
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
