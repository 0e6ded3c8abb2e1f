"""What is printed of files in which every string is hostile: no control characters, no forged lines, short errors."""
import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest
import rich.text
from rich.panel import Panel
from rich.table import Table

from hostile import EVIL, FILE, FORGED, NAME, write_hostile_run, write_policy, write_site, write_tree
from subak.output.plain import LINE_CHARACTERS_MAX, plain, shortened
from subak.report import console
from subak.report.console import Console, Text, TextColumn, echo

COLUMNS = 200  # of the terminal
TURNS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def assert_tame(text, what=""):
    """Nothing but printable characters and ends of lines, and no line that a file's string began."""
    steering = {character for character in text if character != "\n"
                and (unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNS)}
    assert not steering, (what, steering)
    assert not re.search(rf"^[\s│]*{FORGED}", text, re.M), what


def assert_refused(code, out, error):
    """Exit 2, and one short line on standard error."""
    assert (code, out) == (2, "")
    assert re.fullmatch(r"subak: .+\n", error)
    assert len(error) <= LINE_CHARACTERS_MAX + 1
    assert_tame(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def site(folder):
    return write_site(folder / f"W<b>\x1bc\u202e\n{FORGED}")


@pytest.fixture(scope="module")
def runs(folder):
    write_hostile_run(folder / "C" / "runs" / "written")
    return folder / "C"


# What is printed


def test_what_a_file_says_is_one_plain_line():
    assert plain(EVIL) == plain(plain(EVIL))
    assert_tame(plain(EVIL))
    assert plain("a\x1b[31m\n\u202eb\u2028") == "a\\x1b[31m\\n\\u202eb\\u2028"
    assert plain("名前 Zürich 😀 e\u0301") == "名前 Zürich 😀 e\u0301"


def test_every_way_to_print_is_plain(capsys):
    console = Console(width=40)
    table = Table(EVIL, EVIL, title=EVIL, caption=EVIL, show_footer=True)
    table.add_column(Text(EVIL), no_wrap=True, footer=Text(EVIL))
    table.add_row(EVIL, Text(EVIL), "[red]x[/red] :smile:")
    for renderable in (table, EVIL, Text(EVIL), Panel(EVIL, title=Text(EVIL))):
        console.print(renderable)
    echo(EVIL)
    console.print("[red]x[/red] :smile:", soft_wrap=True)
    printed = capsys.readouterr().out
    assert_tame(printed)
    assert printed.splitlines()[-2:] == [plain(EVIL), "[red]x[/red] :smile:"]


def test_a_bar_says_what_its_task_is_called(capsys):
    from rich.progress import Progress
    console = Console(force_terminal=True, width=200, stderr=True)
    with Progress(TextColumn("{task.description}|{task.fields[state]}"), console=console) as bars:
        bars.add_task(f"[red]{FILE}", state="[/red]:smile:")
    assert f"[red]{plain(FILE)}|[/red]:smile:" in re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)


def test_nothing_prints_past_the_console():
    """Rich's own console, text and column, and Typer's echo, would let through what ours does not."""
    from importlib.resources import files
    past = re.compile(r"from rich\.(console import.*\bConsole|text import|progress import.*\bTextColumn)|typer\.echo|"
                      r"click\.echo|from_markup|\.out\(|sys\.std(out|err)\.write")
    for path in sorted(files("subak").rglob("*.py")):
        allowed = {"typer.echo"} if path.name == "app.py" else set()  # the version and the help, which are our own
        if path.parts[-2:] in (("agent", "loop.py"), ("agent", "__main__.py"), ("process", "__main__.py")):
            allowed = {"sys.stderr.write"}  # agents and workers have no rich; what they say goes through `plain`
        if path.parts[-2:] in (("prototype", "burner.py"), ("prototype", "hosts.py")):
            allowed = {"sys.stdout.write", "sys.stderr.write"}  # processes of Fig. 12: a number, and what is our own
        assert {found[0] for found in past.finditer(path.read_text(encoding="utf-8"))} <= allowed, path


def test_no_command_prints_what_would_steer_a_terminal(run, folder, site, runs):
    tree, out = write_tree(folder / "tree.toml"), folder / "R"
    policy = write_policy(folder)
    commands = [
        ("inspect", site), ("inspect", site, "--json"), ("inspect", site / "fleet"), ("queues", site),
        ("queues", tree), ("queues", site, "--queues", tree), ("fair", tree), ("fit", site, "--out", folder / "f.toml"),
        ("simulate", site, "--scheduler", f"{policy}:mine", "--out", out), ("explain", out, "0"),
        ("explain", out, "239"), ("explain", "lotes", site), ("report", runs, "--out", folder / f"{FILE}.html"),
        ("generate", "--parameters", folder / "f.toml", "--tasks", "100", "--out", folder / "G", "--fleet",
         site / "fleet"),
    ]
    for command in commands:
        code, printed, error = run(*command)
        assert code == 0, (command, error)
        assert_tame(printed, command)
        assert_tame(error, command)


def test_tables_of_runs_are_tame(runs, capsys):
    from subak.measures.run_folders import load_runs
    from subak.report.terminal import comparison_table, run_panel
    found = load_runs(runs)
    for renderable in (run_panel(found[0]), comparison_table(found)):
        Console(width=100).print(renderable)
    assert_tame(capsys.readouterr().out)


def test_json_is_the_same_value_with_escapes(run, site):
    code, printed, _ = run("inspect", site, "--json")
    assert json.loads(printed)["workload"]["name"] == EVIL
    assert code == 0


def test_conversions_say_what_files_hold(run, tmp_path):
    swf = tmp_path / f"{FILE}.swf"
    swf.write_text(f"; Computer: {NAME}\x1b[31m\n; Installation: \x1b]0;x\x07\n; MaxProcs: 4\n"
                   "1 0 3 4 1 -1 -1 1 4 -1 1 3 -1 -1 1 -1 -1 -1\n", encoding="utf-8")
    rumen = tmp_path / "r.json"
    attempt = {"attemptID": EVIL, "result": "SUCCESS", "hostName": EVIL, "startTime": 1, "finishTime": 2}
    task = {"taskID": EVIL, "attempts": [attempt]}
    rumen.write_text(json.dumps({"jobID": EVIL, "user": NAME.replace("/", ""), "queue": NAME, "submitTime": 0,
                                 "mapTasks": [task], "reduceTasks": []}), encoding="utf-8")
    for trace_format, source in (("swf", swf), ("rumen", rumen)):
        code, printed, error = run("convert", trace_format, source, "--out", tmp_path / trace_format)
        assert code == 0, error
        assert_tame(printed + error, trace_format)
        assert_tame(run("inspect", tmp_path / trace_format)[1])


# Errors


def test_errors_are_one_short_line_whatever_files_hold(run, tmp_path, site):
    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    quoted, long = json.dumps(EVIL).replace("\x7f", "\\u007f"), "x" * 1_000_000
    whole = "1 0 3 4 1 -1 -1 1 4 -1 1 3 -1 -1 1 -1 -1 -1"
    mistakes = [
        ("inspect", tmp_path / EVIL.replace("/", "")), ("inspect", f"no{FILE}"), ("queues", EVIL),
        ("simulate", site, "--scheduler", EVIL), ("simulate", site, "--scheduler", long),
        ("simulate", "no\udcff"), ("simulate", site, "--scheduler", "\udcff.py:mine"),
        ("simulate", site, "--scheduler", f"{FILE}.py:{EVIL}"), ("convert", EVIL, "x", "--out", tmp_path / "W"),
        ("simulate", site, f"--{EVIL}"), ("simulate", site, "--machines", EVIL), (EVIL,),
        ("simulate", site, "--machines", "1", "--capacity", f"{EVIL}=1"),
        ("queues", write("a.toml", f"{quoted} = 1")),
        ("queues", write("b.toml", f"[[queue]]\nname = {quoted}")),
        ("queues", write("c.toml", f"[[queue]]\nname = 'a'\nparent = {quoted}")),
        ("queues", write("d.toml", f"[[queue]]\nname = '{long}'\nweight = 0")),
        ("queues", write("e.toml", f"[[queue]]\nname = \x1b{EVIL}")),
        ("simulate", site, "--scenario", write("f.toml", f"workload = {quoted}")),
        ("simulate", site, "--federation", write("g.toml", f"{quoted} = 1"), "--scheduler", "megha"),
        ("simulate", site, "--scheduler", "megha", "--faults", write("h.toml", f"{quoted} = 1")),
        ("simulate", site, "--scheduler", "megha", "--failures", write("i.toml", f"{quoted} = 1")),
        ("simulate", site, "--scheduler", "megha", "--failures", write("j.toml", f"[[task]]\nqueue = {quoted}")),
        ("convert", "swf", write("a.swf", f"{NAME} {whole}"), "--out", tmp_path / "W"),
        ("convert", "swf", write("b.swf", f"{long} {whole}"), "--out", tmp_path / "W"),
        ("convert", "swf", write("c.swf", f"\x1b[31m\x9b {whole}"), "--out", tmp_path / "W"),
        ("convert", "tr", write("a.tr", f"{long}"), "--out", tmp_path / "W"),
        ("convert", "tr", write("b.tr", f"1 1 1 {EVIL}"), "--out", tmp_path / "W"),
        ("convert", "swim", write("a.tsv", f"job {long} 1 1 1 1"), "--out", tmp_path / "W"),
        ("convert", "rumen", write("a.json", json.dumps({"jobID": EVIL, EVIL: 1})), "--out", tmp_path / "W"),
        ("convert", "rumen", write("b.json", EVIL), "--out", tmp_path / "W"),
        ("generate", "--parameters", write("p.toml", f"name = {quoted}\n{quoted} = 1"), "--out", tmp_path / "W"),
    ]
    for command in mistakes:
        assert_refused(*run(*command))
    assert not (tmp_path / "W").exists()


def test_a_long_error_keeps_its_beginning_and_its_end(run, tmp_path):
    long = "x" * 1_000_000
    (tmp_path / "tree.toml").write_text(f"[[queue]]\nname = '{long}'\nweight = 0", encoding="utf-8")
    error = run("queues", tmp_path / "tree.toml")[2]
    assert error.startswith(f"subak: {tmp_path}")
    assert error.endswith("weight must be a number more than 0, not 0\n")
    assert len(error) == LINE_CHARACTERS_MAX + 1
    assert "x…x" in error
    assert shortened("a" * 300) == "a" * 300
    assert shortened("abcdefghij", 7) == "abcd…ij"


# A standard output that ends


def piped(*arguments, command="true", stderr=subprocess.PIPE):
    """Run the command line into another command; return its exit code and standard error."""
    read, write = os.pipe()
    reader = subprocess.Popen(command, shell=True, stdin=read, stdout=subprocess.DEVNULL)
    os.close(read)
    if command == "true":
        reader.wait()  # so that what comes next finds nobody
    done = subprocess.run([sys.executable, "-m", "subak", *map(str, arguments)], stdout=write,
                          stderr=write if stderr is None else stderr, text=True, check=False, timeout=120)
    os.close(write)
    reader.wait()
    return done.returncode, done.stderr


def test_files_are_written_though_nobody_reads_what_is_printed(site, tmp_path):
    made, chart = tmp_path / "F.toml", tmp_path / "c.svg"
    assert piped("fit", site, "--out", made, "--chart", chart) == (141, f"Wrote {made}\nWrote {chart}\n")
    assert "name" in made.read_text()
    assert chart.read_text().startswith("<svg")


def test_a_closed_pipe_ends_commands_quietly(tmp_path):
    (tmp_path / "small.tr").write_text("0 1 5 5\n")
    for command in (("--help",), ("convert", "tr", tmp_path / "small.tr", "--out", tmp_path / "W")):
        assert piped(*command) == (141, ""), command
    assert (tmp_path / "W" / "workload.toml").is_file()


def test_nobody_needs_to_read_standard_error(tmp_path):
    """What is said there, such as where files are, is said beside the work, not instead of it."""
    (tmp_path / "small.tr").write_text("0 1 5 5\n")
    assert piped("convert", "tr", tmp_path / "small.tr", "--out", tmp_path / "W", stderr=None)[0] == 141
    assert (tmp_path / "W" / "workload.toml").is_file()


def test_a_full_disk_behind_standard_output_is_one_line(site):
    with open("/dev/full", "w") as full:  # noqa: PTH123  (a device)
        done = subprocess.run([sys.executable, "-m", "subak", "inspect", site], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert_refused(done.returncode, "", done.stderr)
    assert "could not be written: No space left" in done.stderr


def test_a_long_answer_as_json_is_not_looked_at_line_by_line(monkeypatch, capsys):
    """A Text of rich for each line took 40 s for 100,000 jobs."""
    made, init = [], rich.text.Text.__init__
    monkeypatch.setattr(rich.text.Text, "__init__", lambda self, *a, **b: (made.append(1), init(self, *a, **b))[1])
    console.echo_json([{"id": "g0-\x1b[2J"}] * 1000)
    out = capsys.readouterr().out
    assert out.count("\n") == 3002 and "\x1b" not in out
    assert json.loads(out) == [{"id": "g0-\x1b[2J"}] * 1000
    assert len(made) < 10
