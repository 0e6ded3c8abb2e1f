"""Plans a study: lists all runs with their digests, after checking every input."""
from pathlib import Path
from typing import NamedTuple

import msgspec

from subak.errors import InputError, first_line
from subak.experiment.folder import of_run, run_label
from subak.experiment.inputs import refuse_unfit, settle_resample
from subak.experiment.parallel import Job, in_good_order, jobs_of
from subak.experiment.scenario import Scenario, searches
from subak.experiment.study.digest import Contents, run_digest
from subak.experiment.study.document import Axis, Study, value_name
from subak.experiment.study.inputs import Kept, drawn_key
from subak.experiment.study.points import named, point_name, points_of
from subak.output.writing import write_file
from subak.placement.schedulers import Scheduler
from subak.policy import find_scheduler
from subak.workload.table import Workload

STUDY_RUNS_MAX = 1_000_000
PLAN = "study.json"  # of the folder of a study


class Planned(msgspec.Struct, frozen=True):
    """A row of the table of runs: a scheduler with a seed at a point. Rows of one digest are one run."""

    digest: str
    places: tuple[int, ...]  # on each axis
    scheduler: str
    seed: int


class Plan(msgspec.Struct, frozen=True):
    """study.json: what a study consists of, and what its runs are known by."""

    title: str
    measures: tuple[str, ...]
    fixed: dict[str, str]  # settings that all points have, in words
    axes: tuple[Axis, ...]  # likewise
    schedulers: tuple[str, ...]
    resources: tuple[str, ...]
    objectives: tuple[str, ...]
    rows: tuple[Planned, ...]

    def name_of(self, row: Planned) -> str:
        """Return what a row is called, such as "heartbeat 5, megha, seed 1"."""
        return name_of(self.axes, row)

    def digests(self) -> list[str]:
        """Return what the runs are known by, each once."""
        return list(dict.fromkeys(row.digest for row in self.rows))


class Work(NamedTuple):
    """What a process is told of a run, and what the run is made of."""

    name: str
    scenario: Scenario


class _Checker:
    """Checks points, and remembers what they have in common."""

    def __init__(self) -> None:
        self.kept = Kept()
        self.digests: dict[tuple[str, str, bool], tuple[str, str]] = {}
        self.found: dict[tuple[str, bool], Scheduler] = {}
        self.contents = Contents()

    def settled(self, scenario: Scenario) -> tuple[Scenario, Workload]:
        """Return a point's scenario with how seeds change its workload, and that. Raises InputError for no point."""
        timed = next((name for name in scenario.schedulers if searches(name)), None)
        if timed is not None and scenario.search_moves is None:
            raise InputError(f"search_moves: must be given for {timed}: a search that is limited in time finds another "
                             "plan each time")
        inputs = self.kept.inputs(scenario)
        key = scenario.workload, scenario.fleet, bool(scenario.machines)
        scenario.workload_digest, scenario.fleet_digest = self.digests.setdefault(
            key, (scenario.workload_digest, scenario.fleet_digest))  # a process refuses what changes meanwhile
        refuse_unfit(scenario, [self._scheduler(name, scenario) for name in scenario.schedulers], inputs)
        return settle_resample(scenario, inputs[0]), inputs[0]

    def _scheduler(self, name: str, scenario: Scenario) -> Scheduler:
        key = name, scenario.check_policy
        if key not in self.found:
            self.found[key] = find_scheduler(*key)
        return self.found[key]


def planned(study: Study) -> tuple[Plan, dict[str, Work]]:
    """Check every point of a study, and return its plan, and by digest what is to be done, in a good order.

    Raises InputError, naming the point, where a run could not begin.
    """
    checker, rows, work = _Checker(), list[Planned](), dict[str, Work]()
    resources, objectives = dict[str, None](), dict[str, None]()
    for point in sorted(points_of(study), key=lambda point: point.scenario.workload):  # each is read once
        with named(study.axes, point.places):
            scenario, workload = checker.settled(point.scenario)
            resources.update(dict.fromkeys(resource.name for resource in workload.resources))
            objectives.update(dict.fromkeys(scenario.objectives))
            for job in jobs_of(scenario):
                one = of_run(scenario, job.scheduler, [job.seed])
                label = run_label(job.scheduler, job.seed, [job.seed])
                rows.append(Planned(run_digest(one, checker.contents), point.places, label, job.seed))
                work.setdefault(rows[-1].digest, Work(name_of(study.axes, rows[-1]), one))
        if len(rows) > STUDY_RUNS_MAX:
            raise InputError(f"study: must have at most {STUDY_RUNS_MAX:,} runs, this one has more")
    rows.sort(key=lambda row: row.places)  # stable: schedulers and seeds stay as they were asked for
    fixed = {key: value_name(value) for key, value in study.fixed.items()}
    plan = Plan(study.title, study.measures, fixed, tuple(map(_in_words, study.axes)),
                tuple(dict.fromkeys(row.scheduler for row in rows)), tuple(resources), tuple(objectives),
                tuple(rows))
    alike = sorted(work, key=lambda digest: drawn_key(work[digest].scenario))  # what is loaded serves the next one
    jobs = [Job(work[digest].scenario.schedulers[0], 0, digest) for digest in alike]
    return plan, {job.label: work[job.label] for job in in_good_order(jobs)}


def name_of(axes: tuple[Axis, ...], row: Planned) -> str:
    """Return what a row is called, such as "heartbeat 5, megha, seed 1"."""
    return ", ".join(filter(None, [point_name(axes, row.places), row.scheduler, f"seed {row.seed}"]))


def _in_words(axis: Axis) -> Axis:
    """Return an axis as JSON can hold it, which has no infinity."""
    return msgspec.structs.replace(axis, values=tuple(tuple(map(value_name, row)) for row in axis.values))


def write_plan(folder: Path, plan: Plan) -> None:
    """Write the plan into a study's folder."""
    write_file(folder / PLAN, msgspec.json.encode(plan))


def read_plan(folder: Path) -> Plan:
    """Read the plan of a study's folder. Raises InputError for what is none."""
    path = folder / PLAN
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except FileNotFoundError:
        raise InputError(f"{folder}: is no folder of a study, it has no {PLAN}") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {first_line(error)}") from None
