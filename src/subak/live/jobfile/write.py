"""Writes a job as a job file that reads back as the same job; defaults are left out."""
from typing import Any

import msgspec
import yaml

from subak.json_type import Json
from subak.live.jobfile.normal import IN_SECONDS
from subak.live.jobfile.quantities import print_amount, print_duration
from subak.live.jobfile.spec import API_VERSION, KIND, STAGE, JobSpec, Stage

IN_FILES = {ours: theirs for theirs, ours in IN_SECONDS.items()}
LINE_MAX = 1 << 20  # characters: no line is broken


def write_job(spec: JobSpec) -> str:
    """Return a job file in YAML; the command of a single stage without a name of its own stands at the top."""
    return yaml.dump(as_file(spec), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False,
                     width=LINE_MAX)


def as_file(spec: JobSpec) -> dict[str, Json]:
    """Return what a job file says, as maps, lists, texts and numbers; JSON of it is a job file too."""
    metadata = {name: value for name, value in msgspec.to_builtins(spec.metadata).items() if value}
    stages = [_stage(stage) for stage in spec.stages]
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "queue": spec.queue}
    if len(stages) == 1 and stages[0]["name"] == STAGE:
        return head | {name: value for name, value in stages[0].items() if name != "name"}
    return head | {"stages": stages}


def _stage(stage: Stage) -> dict[str, Any]:
    plain = Stage(stage.name, stage.command)
    said = {name: getattr(stage, name) for name in Stage.__struct_fields__
            if getattr(stage, name) != getattr(plain, name)}
    written = {"name": stage.name, "command": stage.command} | said
    for name in written.keys() & IN_FILES.keys():
        written[name] = print_duration(written[name])
    if "resources" in written:
        written["resources"] = {name: print_amount(name, amount)
                                for name, amount in stage.resources.items()}
    if "umask" in written:
        written["umask"] = f"0{stage.umask:o}"
    in_file = {IN_FILES.get(name, name): value for name, value in written.items()}
    return msgspec.json.decode(msgspec.json.encode(in_file))


class _Dumper(yaml.SafeDumper):
    """YAML without anchors for what occurs twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Write what has line breaks of whatever kind with escapes: between other quotes they become spaces."""
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)
