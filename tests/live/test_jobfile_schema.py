"""The JSON schema of job files: what it takes and refuses, the reader does, as far as rules are of single fields."""
import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from job_files import EXAMPLES, FIELDS, VALUES, jobs
from subak.errors import InputError
from subak.live.jobfile.read import read_job
from subak.live.jobfile.schema import job_schema, schema_text
from subak.live.jobfile.write import as_file

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(job_schema())


def test_the_schema_is_one_and_current():
    VALIDATOR.check_schema(job_schema())
    assert (ROOT / "docs" / "job.schema.json").read_text() == schema_text(), "run make docs"


def with_change(change: dict, place: str = "") -> dict:
    said = {"metadata": {"name": "x"}, "command": ["run"]}
    if place == "stage":
        return {"metadata": {"name": "x"}, "stages": [{"name": "a", "command": ["run"], **change}]}
    return {**said, **change}


GOOD = [
    {}, {"apiVersion": "subak/v1", "kind": "Job"}, {"queue": "a/b/c d"}, {"tasks": 1_000_000}, {"gang": True},
    {"priority": -5}, {"command": ["a", 1, 1.5, True, ""]}, {"env": {"A": 1, "B": False, "C": "c", "D": -1.5}},
    *({"resources": {"cpu": value}} for value in (2, 0.5, "500m", "2", "0.25", 1e-5)),
    *({"resources": {"memory": value}} for value in ("4Gi", "512M", 1 << 20, "1.5Gi", 0, 3e9)),
    *({"resources": {"gpu": value}} for value in (0, 1, "2")),
    *({"time_limit": value} for value in (5, 0.5, "5", "1h30m", "500ms", "unlimited")),
    *({"backoff": value} for value in (0, "0s", "1d")), {"umask": "022"}, {"umask": "0o77"}, {"user": 1000},
    {"user": "ana"}, {"workdir": "/a b"}, {"constraints": []}, {"retries": 32_767}, {"cpu_limited": True},
    {"constraints": [{"attribute": "a", "operator": "=", "value": ""},
                     {"attribute": "a", "operator": "<", "value": 5.5},
                     {"attribute": "a", "operator": "!=", "values": ["a", 1, True]}]},
    {"metadata": {"name": 2024, "labels": {"a.b/c": True, "d": ""}, "annotations": {"e": "f\n"}}},
]
BAD = [
    {"apiVersion": "v1"}, {"kind": "CronJob"}, {"queue": "a//b"}, {"queue": ""}, {"queue": None}, {"queue": "a\n"},
    {"tasks": 0}, {"tasks": 1_000_001}, {"tasks": "3"}, {"tasks": 1.5}, {"gang": "true"}, {"gang": 1},
    {"command": []}, {"command": "run"}, {"command": [None]}, {"command": [["a"]]}, {"command": ["a\0"]},
    {"command": ["a"] * 4097}, {"env": {"A=": "b"}}, {"env": {"": "b"}}, {"env": {"A": None}}, {"env": ["A"]},
    {"env": {"SUBAK_TASK": "1"}},
    *({"resources": {"cpu": value}} for value in ("1 core", -1, True, None, "", "1.", ".5", "1e3", 1e10, "500M")),
    *({"resources": {"memory": value}} for value in ("4gigs", 512, -1, "4K", "4GB", "m", 1e40, False)),
    *({"resources": {"gpu": value}} for value in (1.5, -1, "1.0", 2**31, None, "500m")), {"resources": {"a-b": 1}},
    *({"time_limit": value} for value in (0, -1, "1 h", "1m1h", "", "forever", 1e10, None)),
    *({"backoff": value} for value in (-1, "unlimited", "soon", True)),
    {"umask": "22"}, {"umask": "0888"}, {"umask": 18}, {"user": "a b"}, {"user": ""}, {"workdir": "a"}, {"workdir": ""},
    {"retries": 32_768}, {"retries": -1}, {"priority": 2**31}, {"priority": "high"}, {"cpu_limited": "no"},
    {"constraints": [{"attribute": "a", "operator": "in", "value": "b"}]}, {"constraints": [{"operator": "="}]},
    {"constraints": [{"attribute": "", "operator": "=", "value": "b"}]},
    {"constraints": [{"attribute": "a", "operator": "!=", "values": []}]}, {"constraints": {}},
    {"constraints": [{"attribute": "a", "operator": "=", "value": "b", "more": 1}]}, {"nothing": 1}, {"name": "x"},
    {"metadata": {}}, {"metadata": {"name": "a b"}}, {"metadata": {"name": "a\n"}}, {"metadata": {"name": "x", "z": 1}},
    {"metadata": {"name": "x", "labels": {"a": "b c"}}}, {"metadata": {"name": "x", "labels": {"/": "b"}}},
    {"metadata": "x"}, {"stages": []}, {"stages": [{"name": "a", "command": ["b"]}]}, {"depends_on": []},
]


def both(changes: list[dict], only_at: str, *names: str) -> list[tuple[dict, str]]:
    """Return each change at the top and in a stage, those of fields of some names only at one of them."""
    return [(change, place) for change in changes for place in ("", "stage")
            if place == only_at or not change.keys() & set(names)]


@pytest.mark.parametrize(("change", "place"), both(GOOD, "", "apiVersion", "kind", "queue", "metadata"), ids=str)
def test_schema_and_reader_take_it(change, place):
    said = with_change(change, place)
    assert list(VALIDATOR.iter_errors(said)) == []
    read_job(json.dumps(said))


@pytest.mark.parametrize(("change", "place"), both(BAD, "", "name", "depends_on"), ids=lambda part: str(part)[:60])
def test_schema_and_reader_refuse_it(change, place):
    said = with_change(change, place)
    assert not VALIDATOR.is_valid(said)
    with pytest.raises(InputError):
        read_job(json.dumps(said))


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(EXAMPLES), st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), min_size=1, max_size=2))
def test_what_the_reader_takes_the_schema_takes(text, changes):
    said = json.loads(json.dumps(yaml.safe_load(text))) | dict(changes)
    try:
        read_job(json.dumps(said))
    except InputError:
        return
    VALIDATOR.validate(said)


@pytest.mark.parametrize("number", [-1, -1.5, 10**16, 1e17, 1e300])
def test_a_number_may_be_a_name(number):
    for fields in ({"queue": number}, {"constraints": [{"attribute": number, "operator": "=", "value": ""}]}):
        read_job(json.dumps(with_change(fields)))
        VALIDATOR.validate(with_change(fields))


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_the_schema_takes_the_examples(place):
    VALIDATOR.validate(yaml.safe_load(EXAMPLES[place]))


@settings(deadline=None)
@given(jobs())
def test_the_schema_takes_what_is_written(job):
    VALIDATOR.validate(as_file(job))
