"""Declares the fields of a job file; the reader, the JSON schema and the writer are made from it.

What a stage leaves out it has from the job, which says it beside `stages`; what neither says is as in `spec.Stage`.
"""
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from subak.live.jobfile import leaves
from subak.live.jobfile.leaves import Leaf
from subak.live.jobfile.spec import CPU, MEMORY, STAGES_MAX

ARGUMENTS_MAX = 4096  # of a command, as of AttemptToRun
VARIABLES_MAX = 4096  # likewise
LABELS_MAX = 256
CONSTRAINTS_MAX = 256
RESOURCES_MAX = 64
LEAF, KEY, LEAF_OF = "leaf", "key", "leaf of"  # in a type: its Leaf, that of a map's keys, that of the value of a key


def _is(leaf: Leaf, words: str | None = None) -> Meta:
    return Meta(extra={LEAF: leaf}, extra_json_schema={LEAF: leaf.schema}, description=words)


def _keys(leaf: Leaf, most: int, words: str, of: Callable[[str], Leaf] | None = None, *properties: str) -> Meta:
    """Say which keys a map may have, and how many; *of* gives the leaf of a key's value."""
    schema: dict[str, Any] = {"propertyNames": {LEAF: {**leaf.schema, "type": "string"}}}
    if of is not None:
        schema["properties"] = {name: {LEAF: of(name).schema} for name in properties}
    return Meta(extra={KEY: leaf, LEAF_OF: of}, max_length=most, description=words, extra_json_schema=schema)


def _list(words: str, least: int, most: int) -> Meta:
    return Meta(description=words, min_length=least, max_length=most)


Argument = Annotated[str, _is(leaves.ARGUMENT)]
Name = Annotated[str, _is(leaves.NAME)]
Value = Annotated[str, _is(leaves.CONSTRAINT_VALUE)]
Amount = Annotated[int, _is(leaves.COUNT)]
Labels = Annotated[dict[str, Annotated[str, _is(leaves.LABEL)]],
                   _keys(leaves.LABEL_KEY, LABELS_MAX, "what jobs are selected by")]
Annotations = Annotated[dict[str, Annotated[str, _is(leaves.ANNOTATION)]],
                        _keys(leaves.LABEL_KEY, LABELS_MAX, "what else is noted of the job")]
Variables = Annotated[dict[str, Annotated[str, _is(leaves.VALUE)]],
                      _keys(leaves.VARIABLE, VARIABLES_MAX, "environment variables; a stage adds to the job's")]
Amounts = Annotated[dict[str, Amount],
                    _keys(leaves.RESOURCE, RESOURCES_MAX, "what each task needs: cpu in cores, memory in bytes, else "
                          "pieces; a stage adds to the job's", leaves.of_resource, CPU, MEMORY)]


class ConstraintForm(Struct, kw_only=True, forbid_unknown_fields=True):
    """What must hold of an attribute of the machine."""

    attribute: Annotated[str, _is(leaves.ATTRIBUTE)]
    operator: Annotated[str, _is(leaves.OPERATOR)]
    value: Annotated[str, _is(leaves.CONSTRAINT_VALUE, "with = and !=, empty: the attribute is absent, is present"),
                     ] | UnsetType = UNSET
    values: Annotated[list[Value], _list("with !=: none of these", 1, CONSTRAINTS_MAX)] | UnsetType = UNSET


class MetadataForm(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a job is called."""

    name: Name
    labels: Labels | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET


class SettingsForm(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a job says for all of its stages, and a stage for itself."""

    priority: Annotated[int, _is(leaves.PRIORITY, "larger is more important")] | UnsetType = UNSET
    env: Variables | UnsetType = UNSET
    workdir: Annotated[str, _is(leaves.WORKDIR, "where the command runs")] | UnsetType = UNSET
    resources: Amounts | UnsetType = UNSET
    constraints: Annotated[list[ConstraintForm],
                           _list("what must hold of the machine; a stage adds to the job's", 0, CONSTRAINTS_MAX),
                           ] | UnsetType = UNSET
    retries: Annotated[int, _is(leaves.SMALL, "how often a task is tried again after an attempt that failed or ran too "
                                "long")] | UnsetType = UNSET
    backoff: Annotated[float, _is(leaves.DURATION, "before a task is tried again, twice as long each time"),
                       ] | UnsetType = UNSET
    losses_max: Annotated[int, _is(leaves.SMALL, "attempts that may be lost with their machines before the task is"),
                          ] | UnsetType = UNSET
    wait_limit: Annotated[float | None, _is(leaves.LIMIT, "how long a task may wait")] | UnsetType = UNSET
    time_limit: Annotated[float | None, _is(leaves.LIMIT, "how long an attempt may run")] | UnsetType = UNSET
    grace_period: Annotated[float, _is(leaves.DURATION, "between SIGTERM and SIGKILL")] | UnsetType = UNSET
    user: Annotated[str, _is(leaves.USER, "as whom it runs")] | UnsetType = UNSET
    umask: Annotated[int, _is(leaves.UMASK, "of the files that it makes")] | UnsetType = UNSET
    cpu_limited: Annotated[bool, _is(leaves.BOOLEAN, "whether it may not use more cpu than it asks for"),
                           ] | UnsetType = UNSET


class TasksForm(SettingsForm, kw_only=True, forbid_unknown_fields=True):
    """Tasks that are alike."""

    command: Annotated[list[Argument], _list("what to run, and its arguments; never through a shell", 1, ARGUMENTS_MAX),
                       ] | UnsetType = UNSET
    args: Annotated[list[Argument], _list("further arguments", 0, ARGUMENTS_MAX)] | UnsetType = UNSET
    tasks: Annotated[int, _is(leaves.TASKS, "how many tasks there are")] | UnsetType = UNSET
    gang: Annotated[bool, _is(leaves.BOOLEAN, "whether they start together")] | UnsetType = UNSET


class StageForm(TasksForm, kw_only=True, forbid_unknown_fields=True):
    """A stage of a job of several."""

    name: Name
    depends_on: Annotated[list[Name], _list("stages that finish first", 0, STAGES_MAX)] | UnsetType = UNSET


class JobForm(TasksForm, kw_only=True, forbid_unknown_fields=True, rename={"api_version": "apiVersion"}):
    """A job: of one stage, whose command stands at the top, or of several under `stages`."""

    api_version: Annotated[str, _is(leaves.API)] | UnsetType = UNSET
    kind: Annotated[str, _is(leaves.JOB)] | UnsetType = UNSET
    metadata: MetadataForm
    queue: Annotated[str, _is(leaves.QUEUE, "a path such as org/department/user")] | UnsetType = UNSET
    stages: Annotated[list[StageForm], _list("what stands beside them holds for all", 1, STAGES_MAX),
                      ] | UnsetType = UNSET
