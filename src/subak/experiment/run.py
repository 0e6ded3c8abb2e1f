"""Runs one scenario: loads its inputs, simulates, measures and writes the run folder."""
import hashlib
import io
import logging
import platform
import resource as process
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import numba
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.experiment.fleets import edited
from subak.experiment.knowledge import knowledge
from subak.experiment.measuring import Asked, Measured, measure
from subak.experiment.scenario import APART, IN_MEMORY, Scenario, settings_of
from subak.fleet.edits import completed, overcommitted
from subak.fleet.table import Fleet, read_fleet, uniform_fleet
from subak.json_type import Json
from subak.measures import of_run as measures
from subak.measures.batch import has_bound, lower_bound, stints
from subak.measures.energy.measure import refuse_energy
from subak.measures.energy.settings import Energy, energy_file, energy_names, read_energy, tables_of
from subak.measures.objective import Objective, read_objective
from subak.measures.objectives import refuse_unconcerned
from subak.measures.plans import missed_words, plan_facts
from subak.measures.runs import (
    FleetFacts,
    RedrawnFacts,
    Speed,
    Summary,
    WorkloadFacts,
)
from subak.measures.tasks.job_sums import sums_of
from subak.measures.window import Window, cut, window_of
from subak.output.writing import new_folder, write_file
from subak.placement.schedulers import Scheduler
from subak.policy import find_scheduler
from subak.policy_files import Given, named_scheduler, policy_file, policy_name
from subak.queues.tree import TreeFile, read_tree, tree_of_paths
from subak.settings import changed_settings, used_by
from subak.simulator.beforehand import refuse_gangs, refuse_inputs
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.engine.run_loop import Progress
from subak.simulator.failures.plan import FailurePlan, PlanError, read_failure_plan
from subak.simulator.federated.fault_plan import FaultPlan, RoleError, read_fault_plan
from subak.simulator.outcome import HeldRun, Outcome
from subak.simulator.results import attempts_lost
from subak.simulator.settings import FOREVER, RunSettings
from subak.simulator.simulate import simulate
from subak.tables import PACKED, write_table
from subak.toml_files import write_toml
from subak.version import VERSION
from subak.workload.extent import at_load, of_queues
from subak.workload.redraws import AUTO, NONE, REDRAWN
from subak.workload.resample import resample_for, resampled, why_as_it_is
from subak.workload.samples import is_path, workload_folder
from subak.workload.stored import HeldWorkload
from subak.workload.table import TIME_0, Workload, read_workload

COPIED = ("faults", "failures", "queues")  # files that a run folder has copies of; energy's is written out
DIGEST_BYTES = 1 << 20  # of a file read at once


class Done(NamedTuple):
    """What a run leaves: the summary, and its tables by the names of their files."""

    summary: Summary
    tables: dict[str, pl.DataFrame]
    scenario: Scenario  # as it was done
    search_moves: int | None = None  # of a search that improved its plan


def load_inputs(scenario: Scenario) -> tuple[Workload, Fleet]:
    """Read workload and fleet, edited, note their digests, and check the files of faults, queues and failures.

    Raises InputError when one differs from a digest that the scenario holds already, or a file breaks a rule.
    """
    workload = load_checked(scenario)
    return workload, load_fleet(scenario, workload)


def load_checked(scenario: Scenario) -> Workload:
    """Read the workload as `load_workload` does, and check the files of faults, queues, failures and energy."""
    named_files(scenario)
    energy_of(scenario)
    return load_workload(scenario)


def load_workload(scenario: Scenario) -> Workload:
    """Read the workload, and note its digest. Raises InputError when it differs from one that the scenario holds."""
    folder = workload_folder(scenario.workload)
    workload = read_workload(folder)
    scenario.workload_digest = digested("workload", folder, scenario.workload_digest)
    return of_queues(workload, scenario.only_queues)


def load_fleet(scenario: Scenario, workload: Workload) -> Fleet:
    """Read the fleet, or make alike machines for the workload, and edit it; the rest is as with `load_workload`."""
    return edited(_fleet_of(scenario, workload), scenario.scale, scenario.remove, scenario.add_machines)


def _fleet_of(scenario: Scenario, workload: Workload) -> Fleet:
    """Return the fleet that the scenario names, as it is."""
    if scenario.machines:
        return uniform_fleet(scenario.machines, scenario.capacity, workload.resources, workload.asked)
    folder = workload_folder(scenario.workload)
    fleet_folder = Path(scenario.fleet) if scenario.fleet else folder / "fleet"
    if not fleet_folder.is_dir() and not scenario.fleet:
        names = " ".join(f"--capacity {resource.name}=1" for resource in workload.resources)
        raise InputError(f"{folder}: has no fleet; give --fleet FOLDER, or alike machines: --machines 1000 {names}")
    fleet = completed(read_fleet(fleet_folder), workload.resources, workload.asked)
    scenario.fleet_digest = digested("fleet", fleet_folder, scenario.fleet_digest)
    return fleet


def inputs_of(scenario: Scenario, *files: Path | None) -> list[Path]:
    """Return what a scenario reads, and *files*: no result may be written over it."""
    names = [scenario.fleet, scenario.faults, scenario.queues, scenario.failures,
             *map(policy_file, scenario.schedulers), *files]
    if scenario.energy and scenario.energy not in energy_names():
        names += [scenario.energy, *tables_of(Path(scenario.energy))]
    workload = [scenario.workload] if is_path(scenario.workload) else []
    return [Path(name) for name in (*workload, *names) if name]


def digested(what: str, folder: Path, expected: str) -> str:
    """Return the digest of a folder's tables. Raises InputError where another is *expected*."""
    text = hashlib.sha256()
    for path in sorted(folder.glob("*.parquet")):
        with path.open("rb") as file:
            while part := file.read(DIGEST_BYTES):
                text.update(part)
    digest = text.hexdigest()[:16]
    if expected and digest != expected:
        raise InputError(f"{what} {folder}: must be the one the scenario was run on ({expected}), it is now {digest}")
    return digest


def refuse_unfit(
    scenario: Scenario, schedulers: list[Scheduler], inputs: tuple[Workload, Fleet], measured: Sequence[Objective] = (),
) -> None:
    """Raise InputError where no run of one of the scenario's *schedulers*, in order, could begin with these inputs.

    *measured* is what is measured beside its objectives.
    """
    used_estimates(scenario.estimates, inputs[0])
    at_load(inputs[0], scenario.load)
    overcommitted(inputs[1], scenario.interference)
    _refuse_undeclared(scenario, schedulers)
    faults, queues, failures = named_files(scenario)
    window, energy = scenario_window(scenario, inputs[0]), energy_of(scenario)
    asked = [*map(read_objective, scenario.objectives), *measured]
    if energy is not None:
        refuse_uncounted(energy, scenario, inputs[1], window, asked)
    refuse_unconcerned(asked, HeldWorkload(inputs[0]), window, lambda: sums_of(inputs[0]))
    for name, scheduler in zip(scenario.schedulers, schedulers, strict=True):
        refuse_gangs(inputs[0], scheduler, scenario.gangs == APART, scenario.reclaims_per_hour)
        with named(scenario):
            refuse_inputs(*inputs, scheduler, settings_of(scenario, name), faults, queues, failures)


def _refuse_undeclared(scenario: Scenario, schedulers: list[Scheduler]) -> None:
    known = [each.name for scheduler in schedulers for each in scheduler.parameters]
    unknown = next((name for name in scenario.parameters if name not in known), None)
    if unknown is not None:
        raise InputError(f"parameters: none of the schedulers declares {unknown}; they declare "
                         f"{', '.join(known) or 'none'}")


def run_label(scheduler: str, seed: int, seeds: list[int]) -> str:
    """Return a run's name: the scheduler's, and the seed's where there are several."""
    name = Path(scheduler).name if policy_file(scheduler) else scheduler
    label = name.replace("/", "_").replace(":", "-")
    return f"{label}-s{seed}" if len(seeds) > 1 else label


def do_run(
    scenario: Scenario, name: str, seed: int, inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None,
) -> Done:
    """Simulate one scheduler of the scenario with one seed, which may draw the workload anew, and measure the run."""
    scenario, drawn, window = of_seed(scenario, seed, inputs)
    return with_bound(do_drawn(scenario, name, seed, drawn, window, on_progress), drawn)


def of_seed(
    scenario: Scenario, seed: int, inputs: tuple[Workload, Fleet]
) -> tuple[Scenario, tuple[Workload, Fleet], Window]:
    """Return what a seed runs on, and the window, which is the same for all seeds; the scenario says how it was drawn.

    Days are drawn before the load is changed, so that they are still of 24 h. Raises InputError where no task arrives
    in the window, or the workload cannot be redrawn as the scenario says.
    """
    workload, fleet = inputs
    settled, window = settle_resample(scenario, workload), scenario_window(scenario, workload)
    drawn = resampled(workload, settled.resample, seed, window.begin, window.end)
    times = window._replace(begin=window.begin / scenario.load, end=window.end / scenario.load)
    return settled, (at_load(drawn, scenario.load), fleet), times


def settle_resample(scenario: Scenario, workload: Workload) -> Scenario:
    """Return the scenario with the way in which seeds change its workload. Raises InputError where that cannot be.

    Where several seeds were to draw a trace anew and leave it as it is, it says why.
    """
    window = scenario_window(scenario, workload)
    resample = resample_for(workload, scenario.resample, len(scenario.seeds), window.begin, window.end)
    if scenario.resample == AUTO and resample == NONE and len(scenario.seeds) > 1:
        why = why_as_it_is(workload, window.begin, window.end)
        logging.getLogger("subak").warning(f"seeds do not draw {workload.provenance.name} anew: {why}; what is found "
                                           "holds of this trace, and no interval says how others would be")
    return msgspec.structs.replace(scenario, resample=resample)


def without_memory(done: Done) -> Done:
    """Leave out the memory of this process, where other runs have a part in it."""
    speed = msgspec.structs.replace(done.summary.speed, peak_memory_bytes=None)
    return done._replace(summary=msgspec.structs.replace(done.summary, speed=speed))


def simulate_into(
    folder: Path, scenario: Scenario, name: str, seed: int, inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None, overwrite: bool = False,
) -> Summary:
    """Do a run as `do_run`, and write its folder whole or not at all; it is whole before its bound is looked for."""
    scenario, drawn, window = of_seed(scenario, seed, inputs)
    with new_folder(folder, "summary.json", overwrite) as partial:
        done = do_drawn(scenario, name, seed, drawn, window, on_progress)
        write_run(partial, done, name, seed)
    bounded = with_bound(done, drawn)
    for added in bounded.tables.keys() - done.tables.keys():
        table = io.BytesIO()
        bounded.tables[added].write_parquet(table, **PACKED)
        write_file(folder / f"{added}.parquet", table.getvalue())
    if bounded is not done:
        write_file(folder / "summary.json", _json(bounded.summary))
    return bounded.summary


def do_drawn(
    scenario: Scenario, name: str, seed: int, drawn: tuple[Workload, Fleet], window: Window,
    on_progress: Callable[[Progress], None] | None = None,
) -> Done:
    """Simulate one scheduler of the scenario on what `of_seed` gave, and measure the run, but for its bound."""
    workload, fleet = drawn
    outcome = simulated(scenario, name, seed, drawn, on_progress)
    promised = overcommitted(fleet, scenario.interference)  # shares are of what is promised
    run = HeldRun(outcome, HeldWorkload(workload), promised)
    measured, tables = measure(run, asked_of(scenario, window))
    summary = summarise(outcome, scenario, drawn, run_label(name, seed, scenario.seeds), measured)
    if outcome.scheduler.recorded:
        _say_overcommitted(measured.timeline, [resource.name for resource in workload.resources])
    if summary.plan is not None and summary.plan.missed:
        logging.getLogger("subak").warning(missed_words(summary.label, summary.plan))
    return Done(summary, tables, scenario, outcome.search_moves)


def asked_of(scenario: Scenario, window: Window) -> Asked:
    """Return what the runs of a scenario are measured by."""
    return Asked(window, [read_objective(text) for text in scenario.objectives],
                 read_tree(Path(scenario.queues)) if scenario.queues else None, energy_of(scenario))


def simulated(
    scenario: Scenario, name: str, seed: int, inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Return the run of a scheduler of the scenario with a seed, on the inputs `of_seed`; nothing is written."""
    workload, fleet = inputs
    scheduler = find_scheduler(name, scenario.check_policy, scenario.parameters)
    faults, queues, failures = named_files(scenario)
    if queues is not None:
        refuse_tree(workload, queues, scenario.queues)
    with named(scenario):
        return simulate(workload, fleet, scheduler, seed, on_progress=on_progress,
                        federation=settings_of(scenario, name), faults=faults, failures=failures,
                        queues=queues, **terms_of(scenario, name))


def scenario_window(scenario: Scenario, workload: Workload) -> Window:
    """Return what the runs of a scenario are measured in. Raises InputError where no task arrives in it."""
    return window_of(workload, scenario.measure_from, scenario.measure_until)


def terms_of(scenario: Scenario, name: str) -> dict[str, Json]:
    """Return what a run of a scheduler is told of a scenario: the settings of runs that the scheduler uses."""
    used = used_by(scenario, named_scheduler(name, scenario.parameters))
    return {each: value for each, value in used.items() if each in RunSettings.__struct_fields__}


def named_files(scenario: Scenario) -> tuple[FaultPlan | None, TreeFile | None, FailurePlan | None]:
    """Read the files of faults, of queues and of failures, where the scenario names them.

    Raises InputError for one that cannot be read, or breaks a rule.
    """
    return (read_fault_plan(Path(scenario.faults)) if scenario.faults else None,
            read_tree(Path(scenario.queues)) if scenario.queues else None,
            read_failure_plan(Path(scenario.failures)) if scenario.failures else None)


def refuse_uncounted(
    energy: Energy, scenario: Scenario, fleet: Fleet, window: Window, objectives: list[Objective]
) -> None:
    """Raise InputError, naming the file, for one that does not go with the fleet, the window or the objectives."""
    try:
        refuse_energy(energy, fleet, window.begin, objectives)
    except InputError as error:
        raise InputError(f"{scenario.energy}: {error}") from None


def energy_of(scenario: Scenario) -> Energy | None:
    """Read what machines draw and cost, where the scenario names a file."""
    return read_energy(energy_file(scenario.energy)) if scenario.energy else None


def with_bound(done: Done, drawn: tuple[Workload, Fleet]) -> Done:
    """Add to a run of MapReduce jobs, all of whose tasks ended, what no schedule's makespan is less than."""
    tasks, scenario, (workload, fleet) = done.tables["tasks"], done.scenario, drawn
    ended = bool((tasks["status"] == "FINISHED").all())  # a bound on the makespan is none on a part of it
    known = tasks["machine"].null_count() == 0  # a log does not say it
    if not (ended and known and has_bound(workload)):
        return done
    bound = lower_bound(workload, overcommitted(fleet, scenario.interference), scenario.slow_start < 1)
    summary = msgspec.structs.replace(
        done.summary, makespan_bound=bound.seconds, makespan_bound_note=bound.note,
        gap=measures.gap(done.summary, bound.seconds))
    more = {} if bound.seconds is None else {"stints": stints(tasks, workload)}
    return done._replace(summary=summary, tables={**done.tables, **more})


def _json(summary: Summary) -> bytes:
    return msgspec.json.format(msgspec.json.encode(summary), indent=1)


def refuse_tree(workload: Workload, queues: TreeFile, path: str) -> None:
    """Raise InputError, naming the file, for queues that make no tree with the workload's: not only after the run."""
    try:
        tree_of_paths(workload.jobs["queue"].unique(maintain_order=True), queues)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@contextmanager
def named(scenario: Scenario) -> Iterator[None]:
    """Name the file of faults, or of failures, in what is wrong with it and only federation and workload show.

    Raises InputError for a RoleError or a PlanError.
    """
    try:
        yield
    except RoleError as error:
        raise InputError(f"{scenario.faults}: {error}") from None
    except PlanError as error:
        raise InputError(f"{scenario.failures}: {error}") from None


def write_run(folder: Path, done: Done, name: str, seed: int) -> None:
    """Write a run into a folder that is there and empty."""
    for each, table in done.tables.items():
        write_table(table, folder / f"{each}.parquet")
    (folder / "summary.json").write_bytes(_json(done.summary))
    if done.scenario.workload != IN_MEMORY and not isinstance(name, Given):  # else no file could say it
        write_scenario(folder, done.scenario, name, [seed], done.search_moves)


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
    """Return the run in a page of numbers; of the workload's tasks it matters only whether any has an estimate."""
    facts, within = of.facts._asdict(), cut(of.timeline, of.window)
    tasks = facts.pop("tasks")
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
        gangs_apart=0 if outcome.scheduler.keeps_gangs else int(np.count_nonzero(workload.gang_sizes())),
        workload=WorkloadFacts(source.name, source.origin, source.licence, tasks, len(workload.jobs),
                               str(source.notes.get("remarks", {}).get(TIME_0, ""))),
        redrawn=RedrawnFacts(**source.notes[REDRAWN]) if REDRAWN in source.notes else None,
        fleet=FleetFacts(fleet.provenance.name, len(fleet.machines)),
        resources=workload.resources,
        window=of.window,
        **facts,
        utilisation=measures.utilisation(within, names),
        waiting=measures.waiting(within),
        stranded=measures.stranded(within, names),
        idle_while_waiting=measures.idle_while_waiting(within, names),
        attempts_lost=lost,
        run_time_lost=run_time_lost,
        federation=of.federation,
        fairness=of.fairness,
        plan=plan_facts(outcome.plans, outcome.plans_missed),
        energy=of.energy,
        speed=Speed(tasks / max(loop.seconds, 1e-9), loop.events, loop.seconds, peak_memory_bytes(),
                    msgspec.UNSET if outcome.decisions is None else outcome.decisions / max(loop.seconds, 1e-9)),
        versions={"subak": VERSION, "python": platform.python_version(), "numba": numba.__version__,
                  "numpy": np.__version__, "polars": pl.__version__},
    )


def _options(
    scheduler: Scheduler, interval: float, scenario: Scenario, search_moves: int | None
) -> dict[str, object]:
    options: dict[str, object] = {"order": scheduler.order, "interval_s": interval, "waits_at": scheduler.waits_at}
    if scenario.until != FOREVER:
        options["until_s"] = scenario.until
    if scenario.resample != NONE:
        options["resample"] = scenario.resample
    if scenario.load != 1.0:
        options["load"] = scenario.load
    if scenario.slow_start != 1.0:
        options["slow_start"] = scenario.slow_start
    if search_moves is not None:
        options["search_moves"] = search_moves
    return options


def of_run(scenario: Scenario, name: str, seeds: list[int]) -> Scenario:
    """Return the scenario of one run, or of one a seed, without the settings that its scheduler does not go by."""
    used = used_by(scenario, named_scheduler(name, scenario.parameters))
    one = msgspec.structs.replace(
        Scenario(), **{**used, "schedulers": [name], "seeds": seeds, "federation": settings_of(scenario, name)})
    one.parameters = _own_parameters(scenario, name)
    return one


def peak_memory_bytes() -> float:
    """Return the largest resident size that this process has had."""
    return process.getrusage(process.RUSAGE_SELF).ru_maxrss * 1024.0


def _own_parameters(scenario: Scenario, name: str) -> dict[str, float]:
    """Return the scenario's values of what a policy from a file declares."""
    known = {each.name for each in named_scheduler(name, scenario.parameters).parameters}
    return {key: value for key, value in scenario.parameters.items() if key in known}


def write_scenario(
    partial: Path, scenario: Scenario, name: str, seeds: list[int], search_moves: int | None = None
) -> None:
    """Write the scenario of one run, or of one a seed: enough to repeat it, with copies of the files that it names.

    A search that was limited in time is repeated in as many moves.
    """
    one = of_run(scenario, name, seeds)
    one.search_seconds, one.search_moves = Scenario().search_seconds, search_moves
    file = policy_file(name)
    if file is not None:
        shutil.copyfile(file, partial / "policy.py")
        one.schedulers = [f"policy.py:{policy_name(name)}"]
    for kind in COPIED:
        if getattr(one, kind):
            shutil.copyfile(getattr(one, kind), partial / f"{kind}.toml")
            setattr(one, kind, f"{kind}.toml")
    energy = energy_of(one)
    if energy is not None:
        write_toml(energy, partial / "energy.toml")
        one.energy = "energy.toml"
    if is_path(one.workload):
        one.workload = str(Path(one.workload).resolve())
    if one.fleet:
        one.fleet = str(Path(one.fleet).resolve())
    write_toml(scenario_values(one), partial / "scenario.toml")


def scenario_values(scenario: Scenario) -> dict[str, object]:
    """Return what a scenario file says: what differs from the defaults, and what it is about."""
    about = {name: getattr(scenario, name) for name in ("workload", "schedulers", "seeds")}
    changed = {**about, **changed_settings(scenario)}
    return {name: changed_settings(value) if isinstance(value, msgspec.Struct) else value
            for name, value in changed.items()}
