"""Normalises a job: each stage inherits the job's settings, and missing ones get defaults."""
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from subak.live.jobfile import rules
from subak.live.jobfile.form import ConstraintForm, JobForm, SettingsForm, StageForm
from subak.live.jobfile.mistakes import Field, Mistakes
from subak.live.jobfile.order import in_order
from subak.live.jobfile.spec import QUEUE, RESOURCES, STAGE, Constraint, JobSpec, Metadata, Stage

JOB_BYTES_MAX = 4 << 20  # of a job as JSON, with what each stage has from it
IN_SECONDS = {"backoff": "backoff_s", "wait_limit": "wait_limit_s", "time_limit": "time_limit_s",
              "grace_period": "grace_s"}  # what a job calls the durations of a file
ADDED = ("env", "resources", "constraints")  # a stage's to the job's, where other settings are in their place


def normalised(job: JobForm, mistakes: Mistakes) -> JobSpec:
    """Return the job. Raises InputError with all mistakes, those among *mistakes* too."""
    own = _own_stages(job, mistakes)
    stages = [_with_the_jobs(job, stage) for _, stage in own]
    _check(job, own, stages, mistakes)
    place_of = {stage.name: place for place, stage in enumerate(stages)}
    earlier = [[place_of[name] for name in _said(stage.depends_on, [])] for stage in stages]
    spec = JobSpec(_metadata(job), _said(job.queue, QUEUE), tuple(_stage(stages[place]) for place in in_order(earlier)))
    _check_size(spec, mistakes)
    return spec


def _own_stages(job: JobForm, mistakes: Mistakes) -> list[tuple[Field, StageForm]]:
    """Return the stages that can be read as the file has them, with their fields; () is that of a job's only one."""
    if not isinstance(job.stages, UnsetType):
        return [(("stages", place), stage) for place, stage in enumerate(job.stages)
                if not isinstance(stage, UnsetType)]
    if ("stages",) in mistakes.wrong:
        return []
    return [((), StageForm(name=STAGE, **{name: getattr(job, name) for name in rules.OF_ONE_STAGE}))]


def _check(job: JobForm, own: list[tuple[Field, StageForm]], stages: list[StageForm], mistakes: Mistakes) -> None:
    """Check all rules that join fields, of the stages as they stand in the file and with what the job says."""
    rules.check_head(job, mistakes)
    for (field, stage), whole in zip(own, stages, strict=True):
        rules.check_constraints(stage.constraints, field, mistakes)
        rules.check_stage(whole, field, mistakes)
    if isinstance(job.stages, UnsetType) or len(job.stages) == len(own):  # else a name may be one that cannot be read
        rules.check_together(stages, [field for field, _ in own], mistakes)
    mistakes.raise_any()


def _check_size(spec: JobSpec, mistakes: Mistakes) -> None:
    size = 0
    for stage in spec.stages:
        size += len(msgspec.json.encode(stage))
        if size > JOB_BYTES_MAX:
            mistakes.add(("stages",), f"must be at most {JOB_BYTES_MAX:,} bytes, each with what the job says for all")
            mistakes.raise_any()


def _with_the_jobs(job: JobForm, stage: StageForm) -> StageForm:
    """Return a stage with what the job says for all."""
    settings: dict[str, Any] = {}
    for name in SettingsForm.__struct_fields__:
        shared, own = getattr(job, name), getattr(stage, name)
        if name in ADDED and shared is not UNSET and own is not UNSET:
            settings[name] = [*shared, *own] if isinstance(own, list) else {**shared, **own}
        else:
            settings[name] = shared if own is UNSET else own
    settings["resources"] = RESOURCES | _said(settings["resources"], {})
    return msgspec.structs.replace(stage, **settings)


def _stage(form: StageForm) -> Stage:
    said = {name: value for name in SettingsForm.__struct_fields__ if (value := getattr(form, name)) is not UNSET}
    said = {IN_SECONDS.get(name, name): value for name, value in said.items()}
    said["constraints"] = tuple(each for constraint in said.get("constraints", ()) for each in _constraints(constraint))
    return Stage(form.name, (*_said(form.command, []), *_said(form.args, [])), tasks=_said(form.tasks, 1),
                 gang=_said(form.gang, False), depends_on=tuple(_said(form.depends_on, [])), **said)


def _constraints(form: ConstraintForm) -> list[Constraint]:
    values = [_said(form.value, "")] if isinstance(form.values, UnsetType) else form.values
    return [Constraint(form.attribute, form.operator, value) for value in values]


def _metadata(job: JobForm) -> Metadata:
    form = job.metadata
    return Metadata(form.name, _said(form.labels, {}), _said(form.annotations, {}))


def _said(value: Any, otherwise: Any) -> Any:
    return otherwise if value is UNSET else value
