"""Every rule of job files has its words, its line and its value; what is asked for twice is said once."""
import json

import pytest

from subak.errors import InputError
from subak.live.jobfile import mistakes, normal, rules, tree
from subak.live.jobfile.command import from_command
from subak.live.jobfile.form import CONSTRAINTS_MAX, LABELS_MAX
from subak.live.jobfile.read import read_job, read_job_file

HEAD = "metadata: {name: x}\n"
ONE = HEAD + "command: [run]\n"
STAGES = HEAD + "stages:\n- {name: a, command: [run]}\n"
NAME = "1 to 63 letters, digits, '-', '_' or '.', with a letter or digit first and last"
CPU = "must be a quantity such as 2, 0.5 or 500m"
MEMORY = "must be a quantity such as 512Mi or 4Gi, at least 1Mi (a number alone is of bytes)"
DURATION = "must be seconds or a duration such as 10s, 5m or 1h30m"
BOUND = "at most 1000000000s"
PIECES = "must be a whole number from 0 to 2,147,483,647"
SMALL = "must be a whole number from 0 to 32,767"
VALUE_MISSING = "must be given; an empty one asks that the attribute is absent (=) or present (!=)"


def said(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_job(text, "f")
    return str(caught.value).split("\n")


@pytest.mark.parametrize(("text", "words"), [
    # the text itself
    ("", "f:1: must hold a job, and is empty"),
    ("# nothing\n", "f:1: must hold a job, and is empty"),
    ("a: 1\n---\nb: 1\n", "f:2: must hold one job, and another document begins here"),
    ("a: 1\nb: 2\na: 3\n", "f:3: a key must not occur twice, and 'a' is in line 1 already"),
    ('{"a": 1,\n "a": 2}', "f:2: a key must not occur twice, and 'a' is in line 1 already"),
    ("a: 1\n? [b]\n: c\n", "f:2: a key must be text, not a list"),
    ("a: 1\n? {b: c}\n: c\n", "f:2: a key must be text, not a map"),
    ("a: &a {}\nb:\n  <<: *a\n", "f:3: must not have merge keys (<<): what stages share is written once, beside them"),
    ("a: 1\nb: !!python/object:os.system x\n",
     "f:2: must not have tags, and has 'tag:yaml.org,2002:python/object:os.system'"),
    ("a: 1\nb: *x\n", "f:2: an alias must name an anchor of a value that ends before it, not 'x'"),
    ("a: &x 1\nb: &x [*x]\n", "f:2: an alias must name an anchor of a value that ends before it, not 'x'"),
    ("a: 1\nb: &x [*x]\n", "f:2: an alias must name an anchor of a value that ends before it, not 'x'"),
    ("a:\n  [" + "[" * 19, "f:2: must not be nested more than 20 deep"),
    ("a:\n  [" + "[" * 100_000, "f:2: must not be nested more than 20 deep"),
    ("a: 1\nb: \0\n", "f:2: must be text that can be printed, and has '\\x00'"),
    ("a: 1\nb: \ud800\n", "f:2: must be text that can be printed, and has '\\ud800'"),
    ("x" * (tree.TEXT_BYTES_MAX + 1), "f: a job file must be at most 1,048,576 bytes, not 1,048,577"),
    ("- a\n", "f:1: must be a map of fields, not a list"),
    # the head
    ("command: [run]\n", "f:1: metadata: must be given"),
    ("command: [run]\nmetadata:\n  labels: {}\n", "f:3: metadata.name: must be given"),
    ("command: [run]\nmetadata: x\n", "f:2: metadata: must be a map of fields, not 'x'"),
    ("command: [run]\nmetadata:\n  name: a b\n", f"f:3: metadata.name: must be {NAME}, not 'a b'"),
    ("command: [run]\nmetadata:\n  name:\n", f"f:3: metadata.name: must be {NAME}, not nothing"),
    ("command: [run]\nmetadata:\n  name: -x\n", f"f:3: metadata.name: must be {NAME}, not '-x'"),
    ("command: [run]\nmetadata:\n  name: " + "x" * 64 + "\n",
     f"f:3: metadata.name: must be {NAME}, not '{'x' * 39}…{'x' * 18}'"),
    ("command: [run]\nmetadata:\n  name: x\n  labels:\n    team: a b\n",
     f"f:5: metadata.labels.team: must be empty, or {NAME}, not 'a b'"),
    ("command: [run]\nmetadata:\n  name: x\n  labels:\n    a/b/c: d\n",
     "f:5: metadata.labels.a/b/c: the key must be a name of at most 63 letters, digits, '-', '_' or '.', perhaps after "
     "a prefix and '/', as in example.com/team, not 'a/b/c'"),
    ("command: [run]\nmetadata:\n  name: x\n  annotations:\n    a: [b]\n", "f:5: metadata.annotations.a: must be text "
     "of at most 65,536 bytes, without NUL characters, not a list"),
    ("command: [run]\nmetadata:\n  name: x\n  annotations:\n    a: " + "x" * 65_537, "f:5: metadata.annotations.a: "
     f"must be text of at most 65,536 bytes, without NUL characters, not '{'x' * 39}…{'x' * 18}'"),
    (ONE + "apiVersion: batch/v1\n", "f:3: apiVersion: must be subak/v1, not 'batch/v1'"),
    (ONE + "kind: CronJob\n", "f:3: kind: must be Job, not 'CronJob'"),
    (ONE + "queue: /a\n", "f:3: queue: must be a path of at most 64 names and 1,024 characters, such as "
     "org/department/user, not '/a'"),
    (ONE + f"queue: {'/'.join('a' * 65)}\n", "f:3: queue: must be a path of at most 64 names and 1,024 characters, "
     f"such as org/department/user, not '{'a/' * 19}a…{'/a' * 9}'"),
    (ONE + "replicas: 3\n", "f:3: replicas: there is no such field; is tasks meant?"),
    (ONE + "prority: 3\n", "f:3: prority: there is no such field; is priority meant?"),
    (HEAD + "command: [run]\nmetadata2: x\n", "f:3: metadata2: there is no such field; is metadata meant?"),
    ("metadata: {name: x, zzz: 1}\ncommand: [run]\n",
     "f:1: metadata.zzz: there is no such field among name, labels, annotations"),
    # stages
    (HEAD, "f:1: command: must be given, or stages"),
    (HEAD + "stages: []\n", "f:2: stages: must have 1 to 1,000 entries, not 0"),
    (HEAD + "stages: {}\n", "f:2: stages: must be a list, not a map"),
    (STAGES + "command: [run]\n", "f:4: command: must stand in a stage, since the job has stages"),
    (STAGES + "gang: true\n", "f:4: gang: must stand in a stage, since the job has stages"),
    (STAGES + "tasks: 3\n", "f:4: tasks: must stand in a stage, since the job has stages"),
    (STAGES + "args: [a]\n", "f:4: args: must stand in a stage, since the job has stages"),
    (STAGES + "- name: b\n", "f:4: stages[1].command: must be given"),
    (STAGES + "- command: [run]\n", "f:4: stages[1].name: must be given"),
    (STAGES + "- text\n", "f:4: stages[1]: must be a map of fields, not 'text'"),
    (HEAD + "stages:\n- text\n- {name: b, command: [run], depends_on: [a]}\n",
     "f:3: stages[0]: must be a map of fields, not 'text'"),
    (STAGES + "- {name: a, command: [run]}\n",
     "f:4: stages[1].name: must differ from those of other stages, and 'a' is stages[0] already"),
    (STAGES + "- name: b\n  command: [run]\n  depends_on: [c]\n",
     "f:6: stages[1].depends_on[0]: must be the name of a stage, and there is no 'c'"),
    (STAGES + "- name: b\n  command: [run]\n  depends_on: [b]\n",
     "f:6: stages[1].depends_on[0]: must not be the stage's own name, 'b'"),
    (STAGES + "- name: b\n  command: [run]\n  depends_on:\n  - a\n  - a\n",
     "f:8: stages[1].depends_on[1]: must not name a stage twice: 'a'"),
    (STAGES + "- name: b\n  command: [run]\n  depends_on: [d, a]\n- name: c\n  command: [run]\n  depends_on: [b]\n"
     "- name: d\n  command: [run]\n  depends_on: [c]\n- name: e\n  command: [run]\n  depends_on: [d]\n",
     "f:9: stages[2].depends_on: must not form a cycle: c → d → b → c"),
    (STAGES + "- name: b\n  command: [run]\n  depends_on: [a b]\n", f"f:6: stages[1].depends_on[0]: must be {NAME}, "
     "not 'a b'"),
    # one stage
    (HEAD + "command: []\n", "f:2: command: must have 1 to 4,096 entries, not 0"),
    (HEAD + "command: run\n", "f:2: command: must be a list, not 'run'"),
    (HEAD + "command:\n- run\n-\n", "f:4: command[1]: must be text of at most 131,071 bytes, without NUL characters, "
     "not nothing"),
    (HEAD + 'command:\n- run\n- "a\\0b"\n', "f:4: command[1]: must be text of at most 131,071 bytes, without NUL "
     "characters, not 'a\\x00b'"),
    (HEAD + "command: [run, '" + "é" * 65_536 + "']\n", "f:2: command[1]: must be text of at most 131,071 bytes, "
     f"without NUL characters, not '{'é' * 39}…{'é' * 18}'"),
    (ONE + "args: {}\n", "f:3: args: must be a list, not a map"),
    (ONE + "tasks: 0\n", "f:3: tasks: must be a whole number from 1 to 1,000,000, not 0"),
    (ONE + "tasks: 1000001\n", "f:3: tasks: must be a whole number from 1 to 1,000,000, not 1000001"),
    (ONE + "tasks: 1.5\n", "f:3: tasks: must be a whole number from 1 to 1,000,000, not 1.5"),
    (ONE + "tasks: '3'\n", "f:3: tasks: must be a whole number from 1 to 1,000,000, not '3'"),
    (ONE + "gang: yes\n", "f:3: gang: must be true or false, not 'yes'"),
    (ONE + "gang: true\nretries: 2\n", "f:4: retries: must be 0 where gang is true, since a gang is not tried again, "
     "not 2"),
    (HEAD + "retries: 2\nstages:\n- {name: a, command: [run], retries: 0, gang: true}\n- name: b\n  command: [run]\n"
     "  gang: true\n", "f:5: stages[1].retries: must be 0 where gang is true, since a gang is not tried again, not 2"),
    (ONE + "priority: 2147483648\n",
     "f:3: priority: must be a whole number from -2,147,483,648 to 2,147,483,647, not 2147483648"),
    (ONE + "retries: 32768\n", f"f:3: retries: {SMALL}, not 32768"),
    (ONE + "losses_max: -1\n", f"f:3: losses_max: {SMALL}, not -1"),
    (ONE + "backoff: soon\n", f"f:3: backoff: {DURATION}, {BOUND}, not 'soon'"),
    (ONE + "backoff: -1\n", f"f:3: backoff: {DURATION}, {BOUND}, not -1"),
    (ONE + "grace_period: 1000000001\n", f"f:3: grace_period: {DURATION}, {BOUND}, not 1000000001"),
    (ONE + "wait_limit: 0\n", f"f:3: wait_limit: {DURATION}, more than 0 and {BOUND}, or unlimited, not 0"),
    (ONE + "time_limit: 1:30\n", f"f:3: time_limit: {DURATION}, more than 0 and {BOUND}, or unlimited, "
     "not '1:30'"),
    (ONE + "user: a b\n", "f:3: user: must be the name or number of a user, not 'a b'"),
    (ONE + "umask: 22\n", "f:3: umask: must be octal digits after a zero, such as \"022\", not 22"),
    (ONE + "umask: 0888\n", "f:3: umask: must be octal digits after a zero, such as \"022\", not 0888"),
    (ONE + "workdir: data\n",
     "f:3: workdir: must be an absolute path of at most 4,095 bytes, without NUL characters, not 'data'"),
    (ONE + "env:\n  A=B: c\n", "f:4: env.A=B: the key must be 1 to 1,024 characters without '=' and NUL, and not begin "
     "with SUBAK_, not 'A=B'"),
    (ONE + "env:\n  SUBAK_TASK: 3\n", "f:4: env.SUBAK_TASK: the key must be 1 to 1,024 characters without '=' and NUL, "
     "and not begin with SUBAK_, not 'SUBAK_TASK'"),
    (ONE + "env: [A]\n", "f:3: env: must be a map, not a list"),
    (ONE + "env:\n  A:\n", "f:4: env.A: must be text of at most 131,071 bytes, without NUL characters, not nothing"),
    (ONE + "env:\n  A: '" + "x" * 131_070 + "'\n",
     "f:4: env: must have names and values of at most 131,071 bytes together, and 'A' has 131,072"),
    (ONE + "cpu_limited: 1\n", "f:3: cpu_limited: must be true or false, not 1"),
    (ONE + "resources: {cpu: 0, gpu: 1}\ncpu_limited: true\n", "f:4: cpu_limited: must not be true without any cpu"),
    # resources
    (ONE + "resources: {cpu: 0}\n", "f:3: resources: must ask for more than 0 of something"),
    (ONE + "resources: {cpu: 1, tasks: 2}\n", "f:3: resources: must not name tasks: each task counts as one"),
    (ONE + "resources:\n  cpu: -1\n", f"f:4: resources.cpu: {CPU}, not -1"),
    (ONE + "resources:\n  cpu: true\n", f"f:4: resources.cpu: {CPU}, not true"),
    (ONE + "resources:\n  memory: 4gigs\n", f"f:4: resources.memory: {MEMORY}, not '4gigs'"),
    (ONE + "resources:\n  memory: 512\n", f"f:4: resources.memory: {MEMORY}, not 512"),
    (ONE + "resources:\n  memory: [4Gi]\n", f"f:4: resources.memory: {MEMORY}, not a list"),
    (ONE + "resources:\n  gpu: 1.5\n", f"f:4: resources.gpu: {PIECES}, not 1.5"),
    (ONE + "resources:\n  gpu: 2147483648\n", f"f:4: resources.gpu: {PIECES}, not 2147483648"),
    (ONE + "resources:\n  a-b: 1\n", "f:4: resources.a-b: the key must be the name of a resource, 1 to 63 letters, "
     "digits or '_', not 'a-b'"),
    # constraints
    (ONE + "constraints:\n- {attribute: a, operator: in, value: b}\n",
     "f:4: constraints[0].operator: must be one of = != < > <= >=, not 'in'"),
    (ONE + "constraints:\n- {attribute: a}\n", "f:4: constraints[0].operator: must be given"),
    (ONE + "constraints:\n- {operator: '='}\n", "f:4: constraints[0].attribute: must be given"),
    (ONE + "constraints:\n- {attribute: '', operator: '=', value: b}\n",
     "f:4: constraints[0].attribute: must be the name of an attribute, 1 to 1,024 characters, not ''"),
    (ONE + "constraints:\n- {attribute: a, operator: '='}\n", f"f:4: constraints[0].value: {VALUE_MISSING}"),
    (ONE + "constraints:\n- {attribute: a, operator: <}\n", "f:4: constraints[0].value: must be given"),
    (ONE + "constraints:\n- attribute: a\n  operator: '>='\n  value: new\n",
     "f:6: constraints[0].value: must be a number where the operator is >=, not 'new'"),
    (ONE + "constraints:\n- {attribute: a, operator: '>=', value: 1e999}\n",
     "f:4: constraints[0].value: must be a number where the operator is >=, not '1e999'"),
    (ONE + "constraints:\n- {attribute: a, operator: '=', values: [b, c]}\n",
     "f:4: constraints[0].values: must stand with != alone; = takes one value"),
    (ONE + "constraints:\n- {attribute: a, operator: '!=', value: a, values: [b]}\n",
     "f:4: constraints[0].values: must not stand beside value"),
    (ONE + "constraints:\n- {attribute: a, operator: '!=', values: []}\n",
     "f:4: constraints[0].values: must have 1 to 256 entries, not 0"),
    (ONE + "constraints:\n- {attribute: a, operator: '=', value: \"a\\nb\"}\n",
     "f:4: constraints[0].value: must be at most 1,024 characters, none of them a control character, not 'a\\nb'"),
    (STAGES + "- name: b\n  command: [run]\n  constraints:\n  - {attribute: a, operator: '='}\n",
     f"f:7: stages[1].constraints[0].value: {VALUE_MISSING}"),
])
def test_a_mistake_is_one_line_with_place_rule_and_value(text, words):
    assert said(text) == [words]


def many(count: int, form: str) -> str:
    return "{" + ", ".join(form.format(number) for number in range(count)) + "}"


@pytest.mark.parametrize(("text", "words"), [
    (f"metadata: {{name: x, labels: {many(LABELS_MAX + 1, 'l{}: x')}}}\ncommand: [run]\n",
     "f:1: metadata.labels: must have 0 to 256 entries, not 257"),
    (HEAD + f"command: [{'a, ' * 4097}]\n", "f:2: command: must have 1 to 4,096 entries, not 4,097"),
    (HEAD + f"command: [{'a, ' * 4096}]\nargs: [b]\n",
     "f:3: args: must have at most 4,096 entries with those of the command, not 4,097"),
    (ONE + f"env: {many(4097, 'V{}: x')}\n", "f:3: env: must have 0 to 4,096 entries, not 4,097"),
    (HEAD + f"env: {many(4096, 'V{}: x')}\nstages:\n- name: a\n  command: [run]\n  env: {{W: x}}\n",
     "f:6: stages[0].env: must have at most 4,096 entries with those of the job, not 4,097"),
    (ONE + f"resources: {many(65, 'r{}: 1')}\n", "f:3: resources: must have 0 to 64 entries, not 65"),
    (HEAD + f"resources: {many(63, 'r{}: 1')}\nstages:\n- name: a\n  command: [run]\n  resources: {{s: 1}}\n",
     "f:6: stages[0].resources: must have at most 64 entries with those of the job, not 65"),
    (ONE + f"constraints: [{'{attribute: a, operator: =, value: b}, ' * (CONSTRAINTS_MAX + 1)}]\n",
     "f:3: constraints: must have 0 to 256 entries, not 257"),
    (HEAD + f"constraints: [{'{attribute: a, operator: =, value: b}, ' * CONSTRAINTS_MAX}]\nstages:\n- name: a\n"
     "  command: [run]\n  constraints: [{attribute: a, operator: =, value: b}]\n",
     "f:6: stages[0].constraints: must have at most 256 entries with those of the job, not 257"),
    (HEAD + "stages:\n" + "".join(f"- {{name: s{n}, command: [run]}}\n" for n in range(1001)),
     "f:3: stages: must have 1 to 1,000 entries, not 1,001"),
    (STAGES + "- {name: b, command: [run], tasks: 1000000}\n",
     "f:3: stages: must have at most 1,000,000 tasks together, not 1,000,001"),
    (HEAD + f"command: [&a {'x' * 100_000}, *a, *a, *a, *a, *a]\n",
     "f:2: command: must be, with args and env, at most 524,288 bytes, not 600,006"),
    (f"metadata:\n  name: x\n  annotations: {{a: &a {'x' * 60_000}, b: *a, c: *a, d: *a, e: *a}}\ncommand: [run]\n",
     "f:3: metadata.annotations: must be at most 262,144 bytes together, not 300,005"),
    (HEAD + f"env: {{A: {'x' * 100_000}}}\nstages:\n"
     + "".join(f"- {{name: s{n}, command: [run]}}\n" for n in range(50)),
     "f:4: stages: must be at most 4,194,304 bytes, each with what the job says for all"),
    ("a: &a [" + "x," * 1000 + "]\nb: &b [" + "*a," * 100 + "]\nc:\n  [" + "*b," * 10 + "]\n",
     "f:4: must have at most 200,000 values, what an alias stands for counted again"),
])
def test_sizes_are_bounded(text, words):
    assert said(text) == [words]


def test_sizes_at_their_bounds_are_taken():
    assert [line.split(": ")[1] for line in said("a:\n  " + "[" * 19 + "]" * 19)] == ["a", "metadata", "command"]
    read_job(HEAD + f"command: [run, '{'x' * 131_071}']\nenv: {{A: '{'x' * 131_069}'}}\n")
    read_job(HEAD + f"command: [{'a, ' * 4095}a]\nenv: {many(4096, 'V{}: x')}\n")
    read_job(ONE + f"queue: {'/'.join('a' * 64)}\nwait_limit: 1000000000\nretries: 32767\nworkdir: /{'a' * 4094}\n")
    read_job(HEAD + "stages:\n" + "".join(f"- {{name: s{n}, command: [run], tasks: 1000}}\n" for n in range(1000)))
    assert normal.JOB_BYTES_MAX > rules.STAGE_BYTES_MAX


@pytest.mark.parametrize("text", ["a: [1,\nb: 3", "a: b: c", "a: 1\n\tb: 2", "@a", "[a]]", "'a", "%X\na"])
def test_what_is_not_yaml_is_said_to_be_none(text):
    words, = said(text)
    assert ": this is not YAML: " in words
    assert words.startswith("f:")


def test_all_mistakes_are_said_in_the_order_of_their_lines():
    assert [line.split(": must")[0].split(": there")[0] for line in said(
        "stages:\n- nam: 3\n  resources:\n    memory: 4gigs\n    gpu: 1.5\n  command: []\n- command: x\n  name: a b\n"
        "  depends_on: [c]\nqueue: //\n")] == [
        "f:1: metadata", "f:2: stages[0].nam", "f:2: stages[0].name", "f:4: stages[0].resources.memory",
        "f:5: stages[0].resources.gpu", "f:6: stages[0].command", "f:7: stages[1].command", "f:8: stages[1].name",
        "f:10: queue"]


def test_at_most_twenty_mistakes_are_said():
    lines = said(ONE + "".join(f"zz{number}: 1\n" for number in range(33)))
    assert len(lines) == mistakes.LISTED_MISTAKES + 1 == 21
    assert lines[0].startswith("f:3: zz0: ")
    assert lines[-1] == "and 13 mistakes more"
    assert len(said(ONE + "".join(f"zz{number}: 1\n" for number in range(20)))) == 20


def test_json_has_the_same_lines():
    text = '{\n\t"metadata": {"name": "x"},\n\t"command": ["run"],\n\t"tasks": 0\n}'
    assert said(text) == ["f:4: tasks: must be a whole number from 1 to 1,000,000, not 0"]


def test_names_from_the_file_cannot_steer_a_terminal():
    lines = said(ONE + '"\\e[31m\\n": 1\n"' + "k" * 500 + '": 2\n')
    assert lines[0].startswith("f:3: \\x1b[31m\\n: there is no such field")
    assert all(len(line) < 450 for line in lines)
    with pytest.raises(InputError, match=r"^\\x1b:1: "):
        read_job("", "\x1b")


def test_files_that_cannot_be_read_are_named(tmp_path):
    for name, data, words in (("a", b"a: 1\nb: \xff\n", ":2: must be text in UTF-8"),
                              ("b", b" " * (tree.TEXT_BYTES_MAX + 5), ": a job file must be at most 1,048,576 bytes")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=f"^{tmp_path / name}{words}"):
            read_job_file(tmp_path / name)
    with pytest.raises(InputError, match=r"none: cannot be read: No such file or directory$"):
        read_job_file(tmp_path / "none")
    (tmp_path / "bom").write_bytes(b'\xef\xbb\xbf{"metadata": {"name": "x"}, "command": ["\\ud83d\\ude00"]}')
    assert read_job_file(tmp_path / "bom").stages[0].command == ("😀",)


def test_a_command_has_no_lines():
    with pytest.raises(InputError) as caught:
        from_command([], tasks=0, resources={"memory": "4gigs"})
    assert str(caught.value).split("\n") == [
        "command: must have 1 to 4,096 entries, not 0", "tasks: must be a whole number from 1 to 1,000,000, not 0",
        f"resources.memory: {MEMORY}, not '4gigs'"]


def test_the_cases_are_json_that_is_yaml():
    assert said(json.dumps({"metadata": {"name": "é😀 "}, "command": ["a"]})) == [
        f"f:1: metadata.name: must be {NAME}, not 'é😀 '"]
