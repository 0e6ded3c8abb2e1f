"""Generates the JSON schema of job files, for editors.

Where a rule joins fields, or looks at a quantity's size, only the reader knows it.
"""
import json
from typing import Any

import msgspec

from subak.json_type import Json
from subak.live.jobfile.form import LEAF, JobForm
from subak.live.jobfile.rules import OF_ONE_STAGE

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def job_schema() -> dict[str, Json]:
    """Return the schema of a job file."""
    (whole,), parts = msgspec.json.schema_components([JobForm], ref_template="#/$defs/{name}")
    parts = _settled(parts)
    parts[JobForm.__name__]["oneOf"] = [
        {"required": ["command"], "properties": {"stages": False}},
        {"required": ["stages"], "properties": dict.fromkeys(OF_ONE_STAGE, False)},
    ]
    parts["StageForm"]["required"].append("command")
    return {"$schema": DIALECT, "title": "Subak job", **_settled(whole), "$defs": parts}


def schema_text() -> str:
    """Return the schema as docs/job.schema.json has it."""
    return json.dumps(job_schema(), indent=2, ensure_ascii=True) + "\n"


def _settled(node: Any) -> Any:
    """Return a schema with every value's own in place of what msgspec makes of its type."""
    if isinstance(node, list):
        return [_settled(part) for part in node]
    if not isinstance(node, dict):
        return node
    if LEAF in node:
        words = {"description": node["description"]} if "description" in node else {}
        return {**words, **node[LEAF]}
    return {name: _settled(part) for name, part in node.items()}
