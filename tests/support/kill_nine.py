"""Kill commands that write with signal 9, at any step of theirs in the file system and at random moments.

After each kill, what is in the place must be whole, of the run before or of the killed one; and the next run must
leave nothing behind. `python tests/support/kill_nine.py` does 200 kills, `--every-step` all steps of all commands,
`--aside` does without the exchange of two names, as on file systems that have none.

Commands run in forks of a process that has imported everything and done nothing: Polars has no threads yet.
"""
import argparse
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import typer.main

from subak.output import writing
from subak.output.workplaces import PARTIAL, recover

STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.truncate")
WRITES = ("write", "close", "__exit__")
ENDS = {".html": b"</html>", ".svg": b"</svg>", ".png": b"IEND\xaeB`\x82"}  # of a whole file


# Forks


def fork(work: Callable[[], object], patch: Callable[[], None] = lambda: None) -> int:
    """Call *work* in a child, after *patch*, silently; return its process id. What *work* raises ends it with 1."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        silence = os.open(os.environ.get("KILL_NINE_LOG", os.devnull), os.O_WRONLY | os.O_APPEND)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        patch()
        work()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a child; return its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stepping(folder: Path, at_step: Callable[[], None], closely: bool) -> Callable[[], None]:
    """Return a patch that calls *at_step* before each step of this process in *folder*, and around exchanges.

    Watched *closely*, writes to files are steps too; there are too many of them where much else is done.
    """

    def seen(event: str, arguments: tuple[object, ...]) -> None:
        if event == "fcntl.flock" or (event in STEPS and str(folder) in f"{arguments[:2]}"):
            at_step()

    def patch() -> None:
        fsync, exchanged = os.fsync, writing._exchanged

        def stepped_fsync(number: int) -> None:
            at_step()
            fsync(number)

        def stepped_exchange(one: Path, other: Path) -> bool:
            at_step()
            done = exchanged(one, other)
            at_step()
            return done

        os.fsync, writing._exchanged = stepped_fsync, stepped_exchange
        sys.addaudithook(seen)
        if closely:
            sys.setprofile(lambda _, event, call: at_step() if event == "c_call" and call.__name__ in WRITES else None)

    return patch


def steps_of(work: Callable[[], object], folder: Path, patch: Callable[[], None] = lambda: None,
             closely: bool = False) -> int:
    """Return how many steps *work* takes in *folder* when nobody kills it."""
    tally = folder.parent / f"{folder.name}.steps"
    number = os.open(tally, os.O_CREAT | os.O_TRUNC | os.O_RDWR)

    count = itertools.count()

    def patches() -> None:
        patch()
        stepping(folder, lambda: os.pwrite(number, b".", next(count)), closely)()

    assert ended(fork(work, patches)) == 0
    os.close(number)
    size = tally.stat().st_size
    tally.unlink()
    return size


def kill_at(work: Callable[[], object], folder: Path, step: int, patch: Callable[[], None] = lambda: None,
            closely: bool = False) -> None:
    """Kill *work* before its step number *step* in *folder*, counted from 0."""
    left = [step]

    def at_step() -> None:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def patches() -> None:
        patch()
        stepping(folder, at_step, closely)()

    assert ended(fork(work, patches)) == -signal.SIGKILL


def kill_after(work: Callable[[], object], seconds: float, patch: Callable[[], None] = lambda: None) -> None:
    """Kill *work* after so many seconds, if it is not done by then."""
    child = fork(work, patch)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
    ended(child)


def set_aside() -> None:
    """Let this process's file systems know no exchange of two names."""
    writing._exchanged = lambda one, other: False


# What is in the place


def content(place: Path) -> dict[str, str]:
    """Return {name: what it holds} of a file or a folder; a file that is not whole raises AssertionError."""
    if place.is_file():
        return {place.name: _held(place)}
    return {str(path.relative_to(place)): _held(path) for path in sorted(place.rglob("*"))
            if path.is_file() and not PARTIAL.fullmatch(path.name)}


def _held(path: Path) -> str:
    held = path.read_bytes()
    if path.suffix in ENDS:  # drawings hold how long things took
        assert held.rstrip().endswith(ENDS[path.suffix]), f"{path} is not whole"
        return "whole"
    if path.name == "summary.json":
        held = json.dumps({**json.loads(held), "speed": None}).encode()
    if path.suffix == ".parquet":
        assert held[-4:] == b"PAR1", f"{path} is not whole"
    return hashlib.sha256(held).hexdigest()


def debris(folder: Path) -> list[str]:
    """Return what writers have left in *folder*."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if PARTIAL.fullmatch(path.name)]


# The commands


class Command(NamedTuple):
    """A command, what it writes, and what makes the result before from the new one."""

    name: str
    before: tuple[object, ...]
    after: tuple[object, ...]
    written: tuple[str, ...]
    late: tuple[str, ...] = ()  # of a written folder: files that are written into it once it is there


def commands(inputs: Path, out: Path, processes: bool) -> list[Command]:
    """Return every command that writes, on what `prepare` made."""
    work, run, tree = inputs / "W", inputs / "R", inputs / "tree.toml"
    machines = ("--machines", 3, "--capacity", "slot=1")

    def pair(name: str, *arguments: object, change: tuple[object, ...], written: tuple[str, ...] = ("O",),
             late: tuple[str, ...] = ()) -> Command:
        return Command(name, (name, *arguments), (name, *arguments, *change), written, late)

    target, seed = ("--out", out / "O", "--overwrite"), ("--seed", 2)
    small = ("--tasks", 50, "--machines", 3, "--capacity", "cpu=1", "--capacity", "memory=1")
    parameters = ("--out", out / "O.toml", "--overwrite", "--chart", out / "O.svg")
    listed = [
        pair("convert", "tr", inputs / "a.tr", *target, change=("--from", 5)),
        pair("generate", *small, *target, change=seed),
        pair("generate-mapreduce", "--jobs", 2, *target, change=seed),
        pair("simulate", work, *machines, "--scheduler", "random-fit", *target, change=seed),
        pair("compare", work, *machines, "--schedulers", "first-fit,random-fit", *target, change=("--seeds", 2),
             late=("report.html",)),
        Command("fit", ("fit", work, *parameters), ("fit", inputs / "V", *parameters), ("O.toml", "O.svg")),
        pair("inspect", work, "--chart", out / "O.html", change=(), written=("O.html",)),
        pair("report", run, "--out", out / "O.html", "--images", out / "I", "--format", "svg", change=(),
             written=("O.html", "I")),
        Command("fair", ("fair", tree, *target), ("fair", inputs / "other.toml", *target), ("O",)),
        pair("reproduce", "hmhs", "--quick", "--only", "1", *target, change=seed),
    ]
    return [each for each in listed if processes or each.name != "reproduce"]


def call(arguments: tuple[object, ...]) -> Callable[[], None]:
    """Return a call of the command line."""
    from subak.cli.main import main

    def called() -> None:
        sys.argv = ["subak", *map(str, arguments)]
        main()

    return called


def prepare(inputs: Path) -> None:
    """Make what the commands read."""
    lines = "".join(f"{second} 3 2.5 2 {second % 7 + 1} 3\n" for second in range(20))
    (inputs / "a.tr").write_text(lines)
    queue = '[[queue]]\nname = "{}"\ndemand = {{ cpu = 1 }}\n'
    (inputs / "tree.toml").write_text("capacity = { cpu = 20 }\n" + queue.format("a"))
    (inputs / "other.toml").write_text("capacity = { cpu = 20 }\n" + queue.format("a") + queue.format("b"))
    for arguments in (("convert", "tr", inputs / "a.tr", "--out", inputs / "W"),
                      ("convert", "tr", inputs / "a.tr", "--from", 5, "--out", inputs / "V"),
                      ("simulate", inputs / "W", "--machines", 3, "--capacity", "slot=1", "--out", inputs / "R")):
        assert ended(fork(call(arguments))) == 0, f"{arguments[0]} failed"


def load() -> None:
    """Import what commands import when they need it: no fork has to again."""
    group = typer.main.get_command(importlib.import_module("subak.cli.app").app)
    names = [name.replace("-", "_") for name in group.commands]  # which are loaded by that ..
    bodies = [f"{room}.{name}" for room in ("subak.cli.commands", "subak.cli.commands.workloads") for name in names
              if importlib.util.find_spec(f"{room}.{name}")]
    for name in ("altair", "scipy.optimize", "scipy.stats", "vl_convert", *bodies,  # .. and so is what they do
                 "subak.cli.reproduce.google_like", "subak.cli.reproduce.papers", "subak.cli.reproduce.reproduction",
                 "subak.report.charts.fair_shares", "subak.report.charts.fit", "subak.report.page",
                 "subak.reproduce.page"):
        importlib.import_module(name)
    group.make_context("subak", ["schedulers"])  # Typer loads more when it first reads a line


def lightly() -> None:
    """Spare what takes seconds and writes nothing: comparisons do their runs in this process, pictures are empty."""
    import altair
    import vl_convert

    from subak.cli.commands import compare
    from subak.experiment.parallel import jobs_of
    from subak.experiment.run import simulate_into
    from subak.report import document

    def run_all(scenario, inputs, folder, at_once, on_news=None):
        for job in jobs_of(scenario):
            simulate_into(folder / job.label, scenario, job.scheduler, job.seed, inputs)
        return {}

    compare.run_all = run_all
    altair.utils.schemapi.disable_debug_mode()  # which looks at every part of a chart that is drawn
    vl_convert.vegalite_to_svg = lambda *_, **__: "<svg></svg>"
    vl_convert.svg_to_png = lambda *_, **__: ENDS[".png"]
    vl_convert.vegalite_to_html = lambda *_, **__: "<html></html>"
    document._kept_bundle = lambda *_: ""


# The kills


class Trial:
    """One command, with the results of both its forms, killed again and again."""

    def __init__(self, command: Command, out: Path, kept: Path, patch: Callable[[], None]) -> None:
        self.command, self.out, self.kept, self.patch = command, out, kept, patch
        self._run(command.before)
        before = self._found()
        shutil.copytree(out, kept)
        began = time.monotonic()
        self.steps = steps_of(call(command.after), out, patch)
        self.seconds = time.monotonic() - began
        self.results = (before, self._found())
        differ = self.results[0] != self.results[1]
        assert differ or set(before.values()) == {"whole"}, f"{command.name}: both results are alike"

    def kill(self, step: int | None = None, seconds: float = 0.0) -> None:
        """Kill at a step or after some seconds, and check what is there then, and after the next run."""
        self._reset()
        when = f"step {step}" if step is not None else f"{seconds:.3f} s"
        if step is not None:
            kill_at(call(self.command.after), self.out, step, self.patch)
        else:
            kill_after(call(self.command.after), seconds, self.patch)
        for name in self.command.written:
            recover(self.out / name)
            found = self._found(name)
            wanted = [{key: value for key, value in each.items() if key.split("/")[0] == name}
                      for each in self.results]
            assert found in wanted, f"{self.command.name}, {when}: {name} is neither the old one nor the new"
        self._run(self.command.after)
        assert self._found() == self.results[1], f"{self.command.name}, {when}: the next run made something else"
        assert debris(self.out) == [], f"{self.command.name}, {when}: left {debris(self.out)}"

    def _run(self, arguments: tuple[object, ...]) -> None:
        assert ended(fork(call(arguments), self.patch)) == 0, f"{self.command.name} failed"

    def _reset(self) -> None:
        shutil.rmtree(self.out)
        shutil.copytree(self.kept, self.out)

    def _found(self, *names: str) -> dict[str, str]:
        found = {f"{name}/{key}": value for name in names or self.command.written
                 for key, value in content(self.out / name).items()}
        return {key: value for key, value in found.items() if key.split("/", 1)[1] not in self.command.late}


def kills(count: int, seed: int, trials: list[Trial], say: Callable[[str], None]) -> int:
    """Do *count* kills, over all commands in turn: at steps and at moments, half of them near the end; return them."""
    chosen = random.Random(seed)
    for number in range(count):
        trial = trials[number % len(trials)]
        near_the_end = chosen.random() < 0.5
        if chosen.random() < 0.5:
            step = chosen.randrange(max(0, trial.steps - 30) if near_the_end else 0, trial.steps)
            say(f"{number + 1}: {trial.command.name}, step {step} of {trial.steps}")
            trial.kill(step)
        else:
            seconds = chosen.uniform(0.6 if near_the_end else 0.0, 1.05) * trial.seconds
            say(f"{number + 1}: {trial.command.name}, {seconds:.3f} of {trial.seconds:.3f} s")
            trial.kill(seconds=seconds)
    return count


def every_step(trials: list[Trial], say: Callable[[str], None]) -> int:
    """Kill every command at every step; return how many kills that were."""
    count = 0
    for trial in trials:
        say(f"{trial.command.name}: {trial.steps} steps")
        for step in range(trial.steps):
            trial.kill(step)
        count += trial.steps
    return count


def trials_of(home: Path, processes: bool, aside: bool, only: str) -> list[Trial]:
    """Return every command, or *only* those named, ready to be killed."""

    def patch() -> None:
        if aside:
            set_aside()
        if not processes:
            lightly()

    load()
    inputs = home / "inputs"
    inputs.mkdir()
    prepare(inputs)
    trials = []
    names = only.split(",") if only else [each.name for each in commands(inputs, Path("OUT"), processes)]
    for name in names:
        out = home / name / "out"
        out.mkdir(parents=True)
        own = next(each for each in commands(inputs, out, processes) if each.name == name)
        trials.append(Trial(own, out, home / name / "kept", patch))
    return trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every-step", action="store_true", help="instead of --kills: at all steps of all commands")
    parser.add_argument("--aside", action="store_true", help="without the exchange of two names")
    parser.add_argument("--processes", action="store_true",
                        help="with compare's processes, all drawings, and reproduce: slow")
    parser.add_argument("--only", metavar="COMMAND,...", default="", help="instead of every command")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        trials = trials_of(Path(home), given.processes, given.aside, given.only)
        count = every_step(trials, print) if given.every_step else kills(given.kills, given.seed, trials, print)
    sys.stdout.write(f"{count} kills in {time.monotonic() - began:.0f} s: what was there was always whole, and nothing "
                     "was left\n")


if __name__ == "__main__":
    main()
