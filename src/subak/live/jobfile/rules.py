"""Checks the rules that join several fields of a job file."""
import math
from collections.abc import Callable, Sequence

from msgspec import UNSET, UnsetType

from subak.live.jobfile.form import (
    ARGUMENTS_MAX,
    CONSTRAINTS_MAX,
    RESOURCES_MAX,
    VARIABLES_MAX,
    ConstraintForm,
    JobForm,
    StageForm,
)
from subak.live.jobfile.leaves import ARGUMENT_BYTES_MAX
from subak.live.jobfile.mistakes import Field, Mistakes
from subak.live.jobfile.order import cycle
from subak.live.jobfile.spec import ALL_TASKS_MAX, CPU, TASKS
from subak.live.jobfile.tree import NUMBER
from subak.output.plain import shortened

STAGE_BYTES_MAX = 1 << 19  # of command and environment: half of what an agent is sent in one frame
ANNOTATIONS_BYTES_MAX = 1 << 18
OF_ONE_STAGE = ("command", "args", "tasks", "gang")
EMPTY = "an empty one asks that the attribute is absent (=) or present (!=)"


def check_head(job: JobForm, mistakes: Mistakes) -> None:
    """Check the job apart from its stages, and that it has some in one way."""
    if job.stages is not UNSET:
        for name in OF_ONE_STAGE:
            if getattr(job, name) is not UNSET:
                mistakes.add((name,), "must stand in a stage, since the job has stages")
    check_constraints(job.constraints, (), mistakes)
    annotations = getattr(job.metadata, "annotations", UNSET)
    if annotations is not UNSET and ("metadata", "annotations") not in mistakes.wrong:
        size = sum(len(word.encode()) for pair in annotations.items() for word in pair)
        if size > ANNOTATIONS_BYTES_MAX:
            mistakes.add(("metadata", "annotations"), f"must be at most {ANNOTATIONS_BYTES_MAX:,} bytes together, "
                                                      f"not {size:,}")


def check_stage(stage: StageForm, field: Field, mistakes: Mistakes) -> None:
    """Check a stage that has what the job says for all; *field* is where its own is."""
    def _holds(holds: bool, name: str, rule: str) -> None:
        if not holds:
            mistakes.add((*field, name), rule)

    if stage.command is UNSET:
        _holds(False, "command", "must be given" if field else "must be given, or stages")
    if stage.gang is True and stage.retries is not UNSET:
        _holds(stage.retries == 0, "retries", f"must be 0 where gang is true, since a gang is not tried again, "
                                              f"not {stage.retries}")
    resources = {} if isinstance(stage.resources, UnsetType) else stage.resources
    _holds(any(amount != 0 for amount in resources.values()), "resources", "must ask for more than 0 of something")
    _holds(TASKS not in resources, "resources", f"must not name {TASKS}: each task counts as one")
    _holds(stage.cpu_limited is not True or resources.get(CPU) != 0, "cpu_limited", "must not be true without any cpu")
    _holds(len(resources) <= RESOURCES_MAX, "resources", _most(RESOURCES_MAX, len(resources)))
    constraints = 0 if isinstance(stage.constraints, UnsetType) else len(stage.constraints)
    _holds(constraints <= CONSTRAINTS_MAX, "constraints", _most(CONSTRAINTS_MAX, constraints))
    _check_size(stage, _holds)


def _check_size(stage: StageForm, holds: Callable[[bool, str, str], None]) -> None:
    """Check that command and environment are what a machine can be sent, and begin a process with."""
    command = [word for part in (stage.command, stage.args) if not isinstance(part, UnsetType) for word in part
               if isinstance(word, str)]
    env = {} if isinstance(stage.env, UnsetType) else {name: value for name, value in stage.env.items()
                                                      if isinstance(value, str)}
    holds(stage.args is UNSET or len(command) <= ARGUMENTS_MAX, "args",
          _most(ARGUMENTS_MAX, len(command), "those of the command"))
    holds(len(env) <= VARIABLES_MAX, "env", _most(VARIABLES_MAX, len(env)))
    for name, value in env.items():
        size = _bytes(name, value) - 1
        holds(size <= ARGUMENT_BYTES_MAX, "env", f"must have names and values of at most {ARGUMENT_BYTES_MAX:,} bytes "
                                                 f"together, and {shortened(name, 60)!r} has {size:,}")
    size = _bytes(*command, *env, *env.values())
    holds(size <= STAGE_BYTES_MAX, "command", f"must be, with args and env, at most {STAGE_BYTES_MAX:,} bytes, "
                                              f"not {size:,}")


def check_constraints(constraints: list[ConstraintForm] | UnsetType, field: Field, mistakes: Mistakes) -> None:
    """Check that each constraint has what its operator takes."""
    if isinstance(constraints, UnsetType):
        return
    for place, constraint in enumerate(constraints):
        here = (*field, "constraints", place)
        if isinstance(constraint, UnsetType) or here in mistakes.wrong:
            continue
        operator, value, values = constraint.operator, constraint.value, constraint.values
        if values is not UNSET and value is not UNSET:
            mistakes.add((*here, "values"), "must not stand beside value")
        elif values is not UNSET and operator != "!=":
            mistakes.add((*here, "values"), f"must stand with != alone; {operator} takes one value")
        elif values is UNSET and value is UNSET:
            mistakes.add((*here, "value"), f"must be given; {EMPTY}" if operator in ("=", "!=") else "must be given")
        elif operator not in ("=", "!=") and not _is_number(str(value)):
            mistakes.add((*here, "value"), f"must be a number where the operator is {operator}, not "
                                           f"{shortened(repr(value), 60)}")


def check_together(stages: Sequence[StageForm], fields: Sequence[Field], mistakes: Mistakes) -> None:
    """Check names, dependencies and the number of tasks of all stages."""
    tasks = sum(1 if isinstance(stage.tasks, UnsetType) else stage.tasks for stage in stages)
    if tasks > ALL_TASKS_MAX:
        mistakes.add(("stages",), f"must have at most {ALL_TASKS_MAX:,} tasks together, not {tasks:,}")
    place_of: dict[str, int] = {}
    for place, stage in enumerate(stages):
        if stage.name in place_of and isinstance(stage.name, str):
            mistakes.add((*fields[place], "name"), f"must differ from those of other stages, and {stage.name!r} is "
                                                   f"stages[{place_of[stage.name]}] already")
        place_of.setdefault(stage.name, place)
    if any((*field, "name") in mistakes.wrong for field in fields):
        return
    earlier = [_check_depends_on(stage, place_of, fields[place], mistakes) for place, stage in enumerate(stages)]
    if way := cycle(earlier):
        names = " → ".join(str(stages[place].name) for place in [*way, way[0]])
        mistakes.add((*fields[way[0]], "depends_on"), f"must not form a cycle: {shortened(names, 200)}")


def _check_depends_on(stage: StageForm, place_of: dict[str, int], field: Field, mistakes: Mistakes) -> list[int]:
    """Return the places of the stages that finish before this one."""
    found: list[int] = []
    for number, name in enumerate([] if isinstance(stage.depends_on, UnsetType) else stage.depends_on):
        place, here = place_of.get(name), (*field, "depends_on", number)
        if name == stage.name:
            mistakes.add(here, f"must not be the stage's own name, {name!r}")
        elif place is None:
            mistakes.add(here, f"must be the name of a stage, and there is no {name!r}")
        elif place in found:
            mistakes.add(here, f"must not name a stage twice: {name!r}")
        else:
            found.append(place)
    return found


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _most(most: int, count: int, others: str = "those of the job") -> str:
    return f"must have at most {most:,} entries with {others}, not {count:,}"


def _bytes(*words: str) -> int:
    """Return the size of strings that each end with a zero."""
    return sum(len(word.encode()) + 1 for word in words)
