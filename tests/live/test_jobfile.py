"""Job files: what they mean, that a job survives being written and read, and that nothing else can come of any text."""
import json
import random
import re
import subprocess
import sys
import time

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from job_files import AMOUNTS, EXAMPLES, FIELDS, PAGE, PIECES, SECONDS, VALUES, jobs
from subak.errors import InputError
from subak.live.agent.attempts.attempt import AttemptToRun
from subak.live.jobfile import form, leaves, order, quantities, rules, spec, tree
from subak.live.jobfile.command import from_command
from subak.live.jobfile.read import read_job, read_job_file, read_with_lines
from subak.live.jobfile.spec import Constraint, JobSpec, Metadata, Stage
from subak.live.jobfile.write import as_file, write_job

ONE = "metadata: {name: x}\ncommand: [run]\n"

# -- what a file means -------------------------------------------------------------------------------------------------


def test_one_command():
    assert read_job(EXAMPLES[0]) == JobSpec(Metadata("hello"), "org/research/ana", (
        Stage("main", ("echo", "hello"), resources={"cpu": 500, "memory": 64}),))


def test_an_array_with_retries():
    metadata = Metadata("render", {"film": "sunrise", "version": "5.10"})
    assert read_job(EXAMPLES[1]) == JobSpec(metadata, "org/film/ben", (
        Stage("main", ("/opt/render/frame", "--samples", "64"), tasks=240, priority=10,
              env={"SCENE": "/data/sunrise.blend"}, workdir="/data/out", resources={"cpu": 4000, "memory": 6144},
              constraints=(Constraint("rack", "!=", "r7"), Constraint("rack", "!=", "r9"),
                           Constraint("kernel", ">=", "6")),
              retries=3, backoff_s=30.0, losses_max=10, time_limit_s=7200.0, grace_s=20.0, wait_limit_s=86_400.0),))


def test_a_pipeline_with_a_gang():
    job = read_job(EXAMPLES[2])
    shared = {"env": {"DATA": "/data/corpus"}, "retries": 2}
    assert job == JobSpec(Metadata("train"), "org/research/ana", (
        Stage("fetch", ("fetch", "--all"), tasks=16, resources={"cpu": 2000, "memory": 4096}, **shared),
        Stage("fit", ("fit", "--workers", "4"), tasks=4, gang=True, depends_on=("fetch",), cpu_limited=True,
              resources={"cpu": 8000, "memory": 4096, "gpu": 1}, **{**shared, "retries": 0}),
        Stage("report", ("report",), depends_on=("fit",), resources={"cpu": 2000, "memory": 4096}, user="reports",
              umask=0o027, **shared)))
    assert job.earlier_stages() == ((), (0,), (1,))
    assert job.task_count == 21


def test_what_nobody_says_is_as_by_default():
    assert read_job(ONE) == JobSpec(Metadata("x"), "default", (Stage("main", ("run",), resources={"cpu": 1000}),))
    assert read_job(ONE + "resources: {memory: 1Mi}").stages[0].resources == {"cpu": 1000, "memory": 1}
    assert read_job(ONE + "resources: {cpu: 0, gpu: 1}").stages[0].resources == {"cpu": 0, "gpu": 1}


def test_a_stage_has_the_last_word():
    said = {"priority": (1, 2), "workdir": ("/a", "/b"), "retries": (1, 0), "backoff": (1, 2), "losses_max": (1, 2),
            "wait_limit": (5, "unlimited"), "time_limit": (5, 6), "grace_period": (5, 0), "user": ("a", "b"),
            "umask": ("01", "02"), "cpu_limited": (True, False), "env": ({"A": "1", "B": "1"}, {"B": "2", "C": "2"}),
            "resources": ({"cpu": 1, "memory": "1Gi"}, {"cpu": 2, "gpu": 3}),
            "constraints": ([{"attribute": "a", "operator": "=", "value": "1"}],
                            [{"attribute": "a", "operator": "=", "value": "2"}])}
    assert set(said) == set(form.SettingsForm.__struct_fields__)
    job = read_job(json.dumps({
        "metadata": {"name": "x"}, **{name: pair[0] for name, pair in said.items()},
        "stages": [{"name": "a", "command": ["x"]},
                   {"name": "b", "command": ["x"], **{name: pair[1] for name, pair in said.items()}}]}))
    assert job.stages == (
        Stage("a", ("x",), 1, False, (), 1, {"A": "1", "B": "1"}, "/a", {"cpu": 1000, "memory": 1024},
              (Constraint("a", "=", "1"),), 1, 1.0, 1, 5.0, 5.0, 5.0, "a", 1, True),
        Stage("b", ("x",), 1, False, (), 2, {"A": "1", "B": "2", "C": "2"}, "/b",
              {"cpu": 2000, "memory": 1024, "gpu": 3}, (Constraint("a", "=", "1"), Constraint("a", "=", "2")),
              0, 2.0, 2, None, 6.0, 0.0, "b", 2, False))


def test_text_is_taken_as_it_is_written():
    job = read_job("metadata: {name: 2024, labels: {a: 5.10, b: no, c: 010, d: true, e: ''}}\nuser: 1000\n"
                   "command: [1e3, 0x10, +1, 1_000, 12:30:00, 2024-01-01, -0, 'null', ~x]\numask: 022\n")
    assert job.metadata == Metadata("2024", {"a": "5.10", "b": "no", "c": "010", "d": "true", "e": ""})
    assert job.stages[0].command == ("1e3", "0x10", "+1", "1_000", "12:30:00", "2024-01-01", "-0", "null", "~x")
    assert (job.stages[0].user, job.stages[0].umask) == ("1000", 0o022)


@pytest.fixture(params=["machine code", "Python"])
def _parser(request, monkeypatch):
    """Let YAML be parsed by PyYAML's one parser, then by the other."""
    if request.param == "Python":
        monkeypatch.setattr(tree, "LOADER", yaml.SafeLoader)


@pytest.mark.usefixtures("_parser")
def test_json_is_read_as_json():
    fields = {"metadata": {"name": "x", "annotations": {"a": "\u2028\x85\x7f\ufeff😀\\ud83d\\ude00\t\n"}},
              "command": ["a/b", "\\", "é"], "resources": {"cpu": 1e-05}}
    for text in (json.dumps(fields), json.dumps(fields, ensure_ascii=False), json.dumps(fields, indent="\t"),
                 json.dumps(fields, separators=(",", ":")), json.dumps(fields, indent=1).replace("\n", "\r\n"),
                 json.dumps(fields).replace("a/b", "a\\/b")):
        job = read_with_lines(text).spec
        assert job.metadata.annotations == fields["metadata"]["annotations"]
        assert (job.stages[0].command, job.stages[0].resources) == (("a/b", "\\", "é"), {"cpu": 1})
        assert read_job(text) == job


def read_in_two_ways(text: str) -> None:
    """Check that JSON without lines is the job that it is with lines, or the same words."""
    found: list[JobSpec | str] = []
    for read in (read_job, lambda text, file: read_with_lines(text, file).spec):
        try:
            found.append(read(text, "f"))
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(EXAMPLES), st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), max_size=2), st.booleans())
def test_json_is_read_without_lines_as_with_lines(text, changes, in_ascii):
    said = yaml.safe_load(text) | dict(changes)
    read_in_two_ways(json.dumps(said, ensure_ascii=in_ascii))


@pytest.mark.parametrize("fields", [
    '"command": ["run"], "command": ["go"]', '"command": ["run"], "env": {"A": "1", "A": "2"}',
    '"command": [5.10, -0, 1E400, 007]', '"command": [5.10, -0, 1E400, true, 1.0]', '"command": [null]',
    '"command": ["run"], "tasks": 1.0', '"command": ["run"], "tasks": "2"', '"command": ["run"], "priority": -0',
    '"command": [NaN, Infinity, -Infinity]', r'"command": ["\ud800"]', r'"command": ["\ud83d\ude00"]',
    r'"command": ["run"], "env": {"\udc00": "1"}', '"command": ["\ud800"]', '"command": ' + "[" * 30 + "]" * 30,
    '"command": ' + "[" * 100_000 + "]" * 100_000, '"command": [' + "1," * 200_000 + "1]",
    '"command": ["run"' + " " * 2**20 + "]",
    '"command": ["run"], "gang": "true"', '"command": ["run"], "time_limit": null', '"command": ["run"], "umask": 22',
    '"command": ["run"], "cmd": 1', '"command": ["run"], "<<": {}', '"command": ["run"]}, {"a": 1',
    '"stages": [' + ",".join([f'{{"name": "a{at}", "command": [{"1," * 4000}1]}}' for at in range(51)]) + "]",
])
def test_json_by_hand_without_lines_is_as_with_lines(fields):
    read_in_two_ways(f'{{"metadata": {{"name": "x"}}, {fields}}}')


def test_json_may_have_any_key_that_a_rule_allows():
    name = "V" * 1024  # with its quotation marks more than a key of YAML may have
    assert read_job(json.dumps({"metadata": {"name": "x"}, "command": ["run"], "env": {name: "1"}})).stages[0].env == {
        name: "1"}


def test_aliases_stand_for_what_they_name():
    job = read_job("metadata: {name: x}\nstages:\n- {name: a, command: &c [run, &v x], env: {A: *v}}\n"
                   "- {name: b, command: *c}\n")
    assert [stage.command for stage in job.stages] == [("run", "x")] * 2
    assert job.stages[0].env == {"A": "x"}


def test_lines_of_fields():
    read = read_with_lines("metadata:\n  name: x\nqueue: a\nstages:\n  - name: a\n    command:\n      - run\n"
                           "      - it\n    resources:\n      cpu: 1\n\n      gpu: 1\n")
    assert read.lines == {
        "metadata": 2, "metadata.name": 2, "queue": 3, "stages": 5, "stages[0]": 5, "stages[0].name": 5,
        "stages[0].command": 7, "stages[0].command[0]": 7, "stages[0].command[1]": 8, "stages[0].resources": 10,
        "stages[0].resources.cpu": 10, "stages[0].resources.gpu": 12}


def test_a_command_becomes_a_job():
    assert from_command(["/bin/sleep", "10"], queue="a", tasks=3, env={"A": "1"}, time_limit=90, gang=True,
                        priority=None, resources={"cpu": "500m", "gpu": "1"}) == JobSpec(Metadata("sleep"), "a", (
        Stage("main", ("/bin/sleep", "10"), 3, True, env={"A": "1"}, resources={"cpu": 500, "gpu": 1},
              time_limit_s=90.0),))
    for word, name in (("/a/b.py", "b"), ("--x_", "x"), ("ä", "job"), ("a b", "a-b"), ("x" * 70, "x" * 63),
                       ("x" * 62 + "--y", "x" * 62), ("/", "job")):
        assert from_command([word]).metadata.name == name
    assert from_command(["a"], name="b", labels={"c": "d"}).metadata == Metadata("b", {"c": "d"})
    assert from_command(["null", "true", ""]).stages[0].command == ("null", "true", "")


# -- order -------------------------------------------------------------------------------------------------------------


def test_stages_keep_their_order_where_they_can():
    text = "metadata: {name: x}\nstages:\n" + "".join(
        f"- {{name: {name}, command: [x], depends_on: [{before}]}}\n"
        for name, before in (("d", "a, b"), ("a", ""), ("c", "d"), ("b", ""), ("e", "")))
    job = read_job(text)
    assert [stage.name for stage in job.stages] == ["a", "b", "d", "c", "e"]
    assert job.earlier_stages() == ((), (), (0, 1), (2,), ())


@given(st.integers(0, 12).flatmap(lambda size: st.lists(
    st.sets(st.integers(0, max(size - 1, 0)), max_size=3).map(sorted), min_size=size, max_size=size)))
def test_orders_and_cycles(earlier):
    found, way = order.in_order(earlier), order.cycle(earlier)
    assert all(found.index(other) < place for place, stage in enumerate(found) for other in earlier[stage])
    assert (len(found) == len(earlier)) == (way == [])
    assert all(before in earlier[after] for before, after in zip(way, way[1:] + way[:1], strict=True))
    assert len(set(way)) == len(way)


# -- quantities --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parse", "text", "value"), [
    (quantities.parse_cpu, "2", 2000), (quantities.parse_cpu, "0.5", 500), (quantities.parse_cpu, "500m", 500),
    (quantities.parse_cpu, "0.0001", 1), (quantities.parse_cpu, "1.0005", 1001), (quantities.parse_cpu, "0", 0),
    (quantities.parse_cpu, "2147483.647", 2**31 - 1), (quantities.parse_cpu, "2147483.648", None),
    (quantities.parse_cpu, "-1", None), (quantities.parse_cpu, "m", None), (quantities.parse_cpu, "0.5m", None),
    (quantities.parse_cpu, "1 ", None), (quantities.parse_cpu, "1\n", None), (quantities.parse_cpu, "٣", None),
    (quantities.parse_cpu, "", None), (quantities.parse_cpu, "1e3", None), (quantities.parse_cpu, "nan", None),
    (quantities.parse_memory, "4Gi", 4096), (quantities.parse_memory, "512M", 489), (quantities.parse_memory, "0", 0),
    (quantities.parse_memory, "1048576", 1), (quantities.parse_memory, "1048577", 2),
    (quantities.parse_memory, "1048575", None), (quantities.parse_memory, "1.5Gi", 1536),
    (quantities.parse_memory, "4G", 3815), (quantities.parse_memory, "2000000k", 1908),
    (quantities.parse_memory, "1024Ki", 1), (quantities.parse_memory, "1Ti", 1 << 20),
    (quantities.parse_memory, "2047Ti", 2047 << 20), (quantities.parse_memory, "2Pi", None),
    (quantities.parse_memory, "1T", 953_675), (quantities.parse_memory, "1P", 953_674_317),
    (quantities.parse_memory, "1E", None), (quantities.parse_memory, "4gb", None),
    (quantities.parse_memory, "4K", None), (quantities.parse_memory, "4ki", None),
    (quantities.parse_memory, "1Pi", 1 << 30), (quantities.parse_memory, "0.0001Ei", 109_951_163),
    (quantities.parse_count, "3", 3), (quantities.parse_count, "2147483648", None),
    (quantities.parse_count, "1.0", None),
    (quantities.parse_duration, "90", 90), (quantities.parse_duration, "0.5", 0.5),
    (quantities.parse_duration, "10s", 10), (quantities.parse_duration, "5m", 300),
    (quantities.parse_duration, "1h30m", 5400), (quantities.parse_duration, "1.5h", 5400),
    (quantities.parse_duration, "500ms", 0.5), (quantities.parse_duration, "1m500ms", 60.5),
    (quantities.parse_duration, "1d1h1m1s1ms", 90_061.001), (quantities.parse_duration, "0", 0),
    (quantities.parse_duration, "", None), (quantities.parse_duration, "h", None),
    (quantities.parse_duration, "30m1h", None), (quantities.parse_duration, "1h1h", None),
    (quantities.parse_duration, "5 m", None), (quantities.parse_duration, "1000000001", None),
    (quantities.parse_duration, "1w", None), (quantities.parse_duration, "0.0000004", 0),
])
def test_quantities_by_hand(parse, text, value):
    if value is None:
        with pytest.raises(ValueError, match=r"^$"):
            parse(text)
    else:
        assert parse(text) == value


def test_quantities_as_they_are_printed():
    assert [quantities.print_cpu(amount) for amount in (0, 1, 500, 2000, 1500)] == ["0", "1m", "500m", "2", "1500m"]
    assert [quantities.print_memory(amount) for amount in (0, 1, 1024, 1536, 1 << 20, 1 << 30)] == [
        "0Mi", "1Mi", "1Gi", "1536Mi", "1Ti", "1Pi"]
    assert [quantities.print_duration(seconds) for seconds in (0, 0.5, 90, 300, 5400, 7200, 86_400, 1e-6, 1e9)] == [
        "0s", "0.5s", "90s", "5m", "90m", "2h", "1d", "0.000001s", "1000000000s"]


@given(AMOUNTS, SECONDS)
def test_quantities_survive_being_printed(amount, seconds):
    for name in ("cpu", "memory", "gpu"):
        assert quantities.parse_amount(name, str(quantities.print_amount(name, amount))) == amount
    assert quantities.parse_duration(quantities.print_duration(float(seconds))) == seconds


@given(st.integers(0, 2**50))
def test_memory_is_rounded_up(size):
    try:
        amount = quantities.parse_memory(str(size))
    except ValueError:
        assert 0 < size < 1 << 20
    else:
        assert (amount - 1) << 20 < size <= amount << 20


# -- there and back ----------------------------------------------------------------------------------------------------

@settings(deadline=None)
@given(jobs())
def test_a_job_survives_being_written_and_read(job):
    said = as_file(job)
    assert read_job(write_job(job)) == job
    assert read_job(json.dumps(said)) == job
    assert read_job(json.dumps(said, ensure_ascii=False, indent="\t")) == job
    assert msgspec.json.decode(msgspec.json.encode(job), type=JobSpec) == job


def test_what_is_written_is_what_people_write():
    text = "apiVersion: subak/v1\nkind: Job\n" + ("metadata:\n  name: x\nqueue: a/b\ncommand:\n- run\nretries: 2\n"
                                                    "backoff: 10s\nresources:\n  cpu: 500m\n  memory: 4Gi\n  gpu: 1\n")
    job = read_job(text)
    assert yaml.safe_load(write_job(job)) == yaml.safe_load(text)
    shared = Stage("a", ("run",), env={"A": "b"})
    assert "*" not in write_job(JobSpec(Metadata("x"), "a", (shared, shared)))
    assert "stages:\n- name: a\n  command:\n  - run\n" in write_job(
        JobSpec(Metadata("x"), "a", (Stage("a", ("run",)),)))


# -- whatever is handed in ---------------------------------------------------------------------------------------------

def read_or_refuse(text: str) -> None:
    try:
        assert isinstance(read_job(text, "f"), JobSpec)
    except InputError as error:
        assert all(re.match(r"(f:\d+: |and [\d,]+ mistakes more)", line) for line in str(error).split("\n")), error
        assert len(str(error)) < 21 * 700


@settings(deadline=None, max_examples=400)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_text_is_more_than_refused(text):
    read_or_refuse(text)


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(EXAMPLES), st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), min_size=1, max_size=3),
       st.booleans())
def test_no_value_of_a_field_is_more_than_refused(text, changes, in_stage):
    said = yaml.safe_load(text)
    place = said["stages"][-1] if in_stage and "stages" in said else said
    for name, value in changes:
        place[name] = value
    read_or_refuse(json.dumps(said))
    read_or_refuse(yaml.safe_dump(said))


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False))
def test_no_damaged_file_is_more_than_refused(text, chance: random.Random):
    for _ in range(chance.randint(1, 4)):
        place, end = (chance.randrange(len(text) + 1) for _ in range(2))
        text = text[:place] + chance.choice([*PIECES, ""]) + text[min(place + chance.randint(0, 9), max(end, place)):]
    read_or_refuse(text)


@pytest.mark.usefixtures("_parser")
def test_either_parser_reads_the_same():
    assert [read_job(text).task_count for text in EXAMPLES] == [1, 240, 21]
    for text in ("a: 1\n? [b]\n: c", "a: 1\nb:\n  - " + "[" * 50, '{"a": 1}', "a: \0", "a: \ud800", "'", "[" * 9999,
                 '{"metadata": {"name": "x"}, "env": {"\\ud83d": "x"}, "command": ["x"]}',
                 '{"metadata": {"name": "x", "annotations": {"a": "\\ud83d"}}, "command": ["x"]}'):
        with pytest.raises(InputError, match=r"^f:\d: "):
            read_job(text, "f")


@pytest.mark.parametrize("text", [
    "[" * 1_000_000, "{a: " * 250_000, "- " * 500_000, "a: [" + "x," * 500_000 + "]", "'" + "x" * 1_000_000,
    ONE + "env: {" + "".join(f"A{n}: b, " for n in range(80_000)) + "}", '["' * 300_000, "0" * 1_000_000,
    "tasks: " + "9" * 1_000_000, ONE + "tasks: 1e" + "9" * 100_000, ONE + "resources: {cpu: " + "1" * 500_000 + "}",
    "\n" * 1_000_000, ONE + "queue: " + "/a" * 400_000, ONE + "backoff: " + "1" * 900_000,
])
def test_a_large_file_takes_seconds_at_most(text):
    begun = time.process_time()
    with pytest.raises(InputError):
        read_job(text)
    assert time.process_time() - begun < 10


# -- what it stands beside ---------------------------------------------------------------------------------------------


def test_it_imports_nothing_heavy():
    heavy = ("numpy", "numba", "polars", "scipy", "llvmlite", "altair")
    code = ("import sys, pkgutil, importlib, subak.live.jobfile as here\n"
            "for found in pkgutil.iter_modules(here.__path__):\n"
            "    importlib.import_module(f'{here.__name__}.{found.name}')\n"
            f"print([name for name in {heavy} if name in sys.modules], 'yaml' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"


def test_bounds_are_those_of_the_core():
    import numpy as np

    from subak.federation.megha.jobs import ASKED, TERMS
    from subak.queues.tree import NAME
    from subak.resources import AMOUNT_MAX
    from subak.tables import RESOURCES_MAX
    from subak.workload import predicates

    assert (spec.AMOUNT_MAX, form.RESOURCES_MAX) == (AMOUNT_MAX, RESOURCES_MAX)
    assert predicates.OPERATORS == spec.OPERATORS
    assert np.iinfo(TERMS["retries"]).max == np.iinfo(TERMS["losses_max"]).max == spec.LOSSES_MAX
    assert np.iinfo(ASKED["priority"]).max == spec.AMOUNT_MAX
    assert predicates.Constraint.__struct_fields__ == Constraint.__struct_fields__
    assert all(NAME.fullmatch(queue) for queue in ("a/b", "ä", "a b/c"))


def test_what_is_taken_an_agent_takes():
    text = (f"metadata: {{name: x}}\ncommand: [run, '{'x' * leaves.ARGUMENT_BYTES_MAX}']\nenv: "
            f"{{{', '.join(f'V{number}: x' for number in range(form.VARIABLES_MAX))}}}\n"
            f"queue: {'a' * leaves.WORDS_SIZE}\n"
            f"args: [{', '.join(['a'] * (form.ARGUMENTS_MAX - 2))}]\nworkdir: /{'a' * (leaves.FOLDER_BYTES_MAX - 1)}\n"
            "umask: '0777'\ntime_limit: 1000000000\ngrace_period: 1000000000\n")
    stage = read_job(text).stages[0]
    attempt = {"key": [1, 1], "fence": [1, 1, 1], "command": stage.command, "job": "x", "queue": read_job(text).queue,
               "environment": stage.env, "folder": stage.workdir, "umask": stage.umask, "limit_s": stage.time_limit_s,
               "grace_s": stage.grace_s}
    assert len(msgspec.msgpack.encode(attempt)) < 1 << 20
    msgspec.convert(attempt, AttemptToRun)
    assert rules.STAGE_BYTES_MAX * 2 == 1 << 20


def test_the_examples_are_read_from_files(tmp_path):
    for text in EXAMPLES:
        (tmp_path / "job.yaml").write_text(text)
        assert read_job_file(tmp_path / "job.yaml") == read_job(text)
    assert len(EXAMPLES) == 3


def test_the_page_says_what_is_left_out():
    said, plain, most = {}, read_job(ONE), {}
    for names, least, largest in re.findall(r"^\| (`.*`) \| `(.*)` \| (?:`(.*?)`)?", PAGE.read_text(), re.MULTILINE):
        for name in re.findall("`(.*?)`", names):
            said[name] = yaml.safe_load(least)
            most |= {name: yaml.safe_load(largest)} if largest else {}
    for fields in (said, most):
        job = {"metadata": {"name": "x"}, "command": ["run"], **fields}
        assert (read_job(json.dumps(job)) == plain) == (fields is said)
    others = {"user", "env", "resources", "constraints", "command", "args"}
    assert said.keys() | others == set(form.TasksForm.__struct_encode_fields__)
    assert len(most) == 9


def test_the_page_shows_mistakes_as_they_are_said():
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0]
    text = ("metadata:\n  name: train\nstages:\n  - name: fetch\n    command:\n      - fetch\n    resources:\n"
            "      cpu: 2\n      memory: 4gigs\n  - name: fit\n    command: [fit]\n    depends_on:\n      - fecth\n"
            "    replicas: 4\n")
    with pytest.raises(InputError) as caught:
        read_job(text, "job.yaml")
    assert str(caught.value) + "\n" == shown
