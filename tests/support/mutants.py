"""Mutants: small changes of the code that decides, one at a time, each of which some test should notice.

    python tests/support/mutants.py                       a sample of each module of the table below
    python tests/support/mutants.py --only lanes --sample 0 --again
    python tests/support/mutants.py --list lanes          the changes there are, without running anything
    python tests/support/mutants.py --all megha           every change of a room of ROOMS; --only, --again as above
    python tests/support/mutants.py --all live --draw 300 --seed 36       so many of a room, drawn by a seed

Nothing is changed on disk. Without the compiler, a kernel is a plain function, of which a process that is forked for a
mutant has another body, and runs the tests that call it; what is about compiling is tried with the compiler. Processes
that tests start have the changed module in place of the package's (tests/carried). What was found is added to
out/mutants.jsonl line by line, and what is there already is not tried again (survivors are with --again), so it can be
ended at any time. A change meets the tests that run its line, the quickest first.
"""
import argparse
import ast
import copy
import functools
import hashlib
import importlib
import inspect
import json
import math
import operator
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checkout import ROOT, file_of
from equivalent_mutants import EQUIVALENT

# The modules with decisions in them, and what pytest is given to try each: the files that answer for it, the quickest
# first, without the tests that take longest.
HAND, FAIR = ("test_engine_by_hand.py", "test_kernels.py"), "test_fair_orders.py"
ENGINE = ("hand or overuse or slow_start or swing or does_what_it_may_not or endings or always_fails or interference "
          "or forgotten or fetched")
CENTRAL = ("test_engine_by_hand.py", "test_overuse.py", "test_slow_start.py", "test_usage_swing.py", "test_policy.py",
           "-k", ENGINE)
PREEMPTION = (FAIR, "-k", "place or guarantee or preemption or cap_is_kept or who_is_above")
MEGHA = ("test_golden.py", "test_local_master_by_hand.py", "test_megha_known_answers.py", "test_torture.py",
         "-k", "not (covered or clean or every or smallest or always_room or without_delay)")
MODULES: dict[str, tuple[str, ...]] = {
    "subak.fleet.amounts": HAND,
    "subak.fleet.index": HAND,
    "subak.fleet.feasible": HAND,
    "subak.placement.claims": HAND,
    "subak.placement.ordered": (*HAND, "test_engine_against_twin.py",
                                "-k", "by_hand or kernels or block_holds or at_their_places"),
    "subak.placement.tetris": HAND,
    "subak.placement.reclaim": PREEMPTION,
    "subak.queues.lanes": HAND,
    "subak.queues.hierarchy": (FAIR,),
    "subak.queues.line": ("test_line.py",),
    "subak.queues.tournament": ("test_kernels.py",),
    "subak.federation.megha.attempts": ("test_federation_parts.py", "test_golden.py"),
    "subak.federation.megha.ledger": ("test_federation_parts.py", "test_golden.py"),
    "subak.federation.megha.replay_window": ("test_federation_parts.py", "test_golden.py"),
    "subak.federation.megha.global_master.preemption": (
        "test_golden.py", "test_global_master_by_hand.py", "test_megha_known_answers.py",
        "-k", "preempt or by_hand or golden or papers_rule"),
    "subak.federation.megha.local_master.handlers": MEGHA,
    "subak.simulator.central.fair": (FAIR, "-k", "not definition and not slow_one"),
    "subak.simulator.central.loop": CENTRAL,
    "subak.simulator.central.rigid": ("test_backfill.py",),
    "subak.simulator.central.by_address": ("test_kernel_state.py",),
    "subak.simulator.engine.attempts": (
        "test_interference.py", "test_failures.py", "test_endings.py", FAIR, *CENTRAL),
    "subak.simulator.engine.changes": CENTRAL,
    "subak.simulator.engine.heap": HAND,
    "subak.simulator.engine.interference": ("test_interference.py",),
    "subak.simulator.engine.overuse": ("test_overuse.py", "test_usage_swing.py"),
    "subak.simulator.engine.recorder": ("test_measures.py", "test_engine_by_hand.py", "test_chunks.py"),
    "subak.placement.rigid.backfill": ("test_backfill.py",),
    "subak.placement.rigid.profile": ("test_line.py", "test_backfill.py"),
    "subak.placement.rigid.reservations": ("test_line.py", "test_backfill.py"),
    "subak.placement.rigid.start": ("test_backfill.py",),
    "subak.placement.rigid.gangs": ("test_backfill.py",),
    "subak.measures.of_run": ("test_measures.py", "test_window.py", "test_endings.py"),
    "subak.measures.window": ("test_window.py",),
    "subak.measures.tasks.jobs": ("test_jobs_and_objectives.py", "test_group_waits.py"),
    "subak.measures.tasks.job_sums": ("test_jobs_and_objectives.py", "test_group_waits.py"),
    "subak.simulator.chunks.rows": ("test_chunks.py",),
    "subak.simulator.chunks.blocks": ("test_chunks.py",),
    "subak.simulator.chunks.federated": ("test_chunks_federated.py",),
    "subak.simulator.chunks.arrays": ("test_chunks_federated.py",),
    "subak.measures.tasks.tally": ("test_chunks.py",),
    "subak.measures.objective": ("test_jobs_and_objectives.py",),
    "subak.measures.objectives": ("test_jobs_and_objectives.py", "test_energy.py"),
    "subak.measures.intervals": ("test_intervals.py",),
    "subak.measures.side_by_side": ("test_side_by_side.py",),
    "subak.measures.energy.sweep": ("test_energy.py",),
    "subak.measures.energy.measure": ("test_energy.py",),
    "subak.kernels.state": ("test_kernel_state.py", "test_kernel_calls.py"),
    "subak.kernels.numba_internals.addresses": ("test_kernel_state.py", "test_kernel_calls.py"),
    "subak.kernels.numba_internals.calls": ("test_kernel_calls.py",),
    "subak.kernels.arrays": ("test_kernel_arrays.py",),
    "subak.report.comparison": ("test_comparison.py", "test_batch_report.py", "test_report.py", "test_intervals.py",
                                "-k", "first_in or verdict or best or refusal or judges or messages_that or know "
                                "or intervals or objective or difference"),
}
# Modules that are tried as a whole, not by a sample, and the tests that answer for all of them.
ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "megha": (("subak/federation/megha/worker.py", "subak/federation/megha/local_master",
               "subak/federation/megha/global_master", "subak/federation/megha", "subak/federation/messages.py",
               "subak/federation/settings.py"), (
        "test_golden.py", "test_global_master_by_hand.py", "test_local_master_by_hand.py", "test_growing.py",
        "test_admission.py", "test_queue_order.py", "test_outcomes.py", "test_protocol_defects.py",
        "test_federation_parts.py", "test_federation_settings.py", "test_open_tasks.py", "test_message_fields.py",
        "test_roles_apart.py", "test_megha_known_answers.py", "test_torture.py",
        "-k", "not (every_row or every_guard or small_as or always_room or without_delay or year or drawn or command "
              "or same_seed or planted or table_does_not or megha-10 or same_bytes or compiled)")),
    "live": (("subak/live/role", "subak/live/service", "subak/live/agent/attempts", "subak/live/agent",
              "subak/workload/readers", "subak/federation/sampling", "subak/federation/pigeon.py"), (
        "test_live_parts.py", "test_layouts.py", "test_own_shapes.py", "test_live_guards.py", "test_live_roles.py",
        "test_live_restart.py", "test_live_history.py", "test_live_words.py", "test_losses.py", "test_walks.py",
        "test_agent_ledger.py", "test_agent_parts.py", "test_large_jobs.py", "test_service_contract.py",
        "test_sampling_parts.py", "test_sampled.py", "test_readers_table.py", "test_readers_google2011.py",
        "test_readers_rumen.py", "test_readers_sacct.py", "test_readers_pods.py", "test_readers_tr_swf.py",
        "test_readers_of_2019.py", "test_readers_edges.py", "test_readers_alibaba_swim_openb.py",
        "test_readers_in_bounds.py", "test_readers_wfformat.py", "test_readers_frontier.py", "test_kept_of_the_work.py",
        "test_store_claims.py", "test_agent.py", "test_agent_vigil.py", "test_live_torture.py")),
}
# Modules that are about compiling: their tests run with the compiler, which keeps nothing on disk then.
COMPILED = {"subak.kernels.state", "subak.kernels.numba_internals.addresses", "subak.kernels.numba_internals.calls",
            "subak.simulator.central.by_address"}
LOG = ROOT / "out" / "mutants.jsonl"
REACHED = "reached"  # a file of statements that other processes have reached
PYTEST = ["-q", "-s", "--tb", "native", "--assert", "plain",
          "-p", "no:cacheprovider", "-W", "ignore", "--hypothesis-profile", "mutants"]
SURVIVES = -1  # no test
MEMORY_MAX = 16 << 30  # bytes of addresses that a process may have

COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
               ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
SUMS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
        ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
        ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
NOT_CODE = {"annotation", "returns", "args", "decorator_list", "type_params"}  # fields of a function or an assignment


class Place(NamedTuple):
    """Where a mutant is found again."""

    module: str
    number: int  # among the mutants of the module


class Mutant(NamedTuple):
    """A change of one place of a module, and what makes it in the tree that it was found in."""

    function: str  # as its `__qualname__`; what is defined in a function belongs to that
    step: int  # line of the statement
    line: int
    change: str
    make: Callable[[], None]


# -- finding them ------------------------------------------------------------------------------------------------------


def mutants(tree: ast.AST, prefix: str = "", function: str = "", step: int = 0) -> Iterator[Mutant]:
    """Every change of what functions do, from top to bottom; words of errors are left alone."""
    for field, place, node, put in children(tree):
        below, name, line = prefix, function, node.lineno if isinstance(node, ast.stmt) else step
        if not function and isinstance(node, ast.ClassDef):
            below = f"{prefix}{node.name}."
        if not function and isinstance(node, ast.FunctionDef):
            name = prefix + node.name
        if function and not is_docstring(tree, place, node):
            negated = [ast.UnaryOp(ast.Not(), node)] if field == "test" and not is_not(node) else []
            for other in [*others(node), *negated]:
                change = f"{said(node)}  ->  {said(other)}"
                yield Mutant(function, line, node.lineno, change, functools.partial(put, other))
        if not isinstance(node, ast.Raise):
            yield from mutants(node, below, name, line)


def children(tree: ast.AST) -> Iterator[tuple[str, int, ast.AST, Callable[[ast.AST], None]]]:
    """The nodes below one, in their order: the field, the place in it, the node, and how to put another there."""
    for field, value in ast.iter_fields(tree):
        if isinstance(tree, ast.keyword) and tree.arg == "strict":  # of zip: what nothing goes wrong with says nothing
            continue
        if field in NOT_CODE and isinstance(tree, (ast.FunctionDef, ast.AnnAssign)):
            continue
        if isinstance(value, ast.AST):
            yield field, 0, value, functools.partial(setattr, tree, field)
        elif isinstance(value, list):
            for place, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield field, place, item, functools.partial(operator.setitem, value, place)


def others(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in a node's place by a slip."""
    yield from other_steps(node) if isinstance(node, ast.stmt) else other_values(node)


def other_steps(node: ast.stmt) -> Iterator[ast.AST]:
    """A step that does something is left out; assignments to names are not, as what reads them would fail."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Break() | ast.Continue():
            yield ast.Pass()
        case ast.Assign() if not any(isinstance(target, ast.Name) for target in node.targets):
            yield ast.Pass()


def other_values(node: ast.AST) -> Iterator[ast.AST]:
    """Another sign, the number beside, the other extreme."""
    match node:
        case ast.Compare():
            yield from other_comparisons(node)
        case ast.BinOp() if type(node.op) in SUMS:
            yield ast.BinOp(node.left, SUMS[type(node.op)](), node.right)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield ast.Call(ast.Name(CALLS[name]), node.args, node.keywords)


def other_comparisons(node: ast.Compare) -> Iterator[ast.AST]:
    """Each of the signs of a comparison as another."""
    for place, sign in enumerate(node.ops):
        if type(sign) in COMPARISONS:
            other = copy.deepcopy(node)
            other.ops[place] = COMPARISONS[type(sign)]()
            yield other


def is_docstring(tree: ast.AST, place: int, node: ast.AST) -> bool:
    """Whether a statement is the docstring of a function."""
    return isinstance(tree, ast.FunctionDef) and place == 0 and isinstance(node, ast.Expr) and isinstance(
        node.value, ast.Constant)


def is_not(node: ast.AST) -> bool:
    """Whether an expression is a negation, which is taken away elsewhere."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def said(node: ast.AST) -> str:
    """The first line of a node as it is written."""
    return ast.unparse(node).split("\n")[0]


def path_of(module: str) -> Path:
    """Where a module stands, from the project's folder."""
    return Path("src", *module.split(".")).with_suffix(".py")


def source_of(module: str) -> str:
    """The text of a module."""
    return (ROOT / path_of(module)).read_text()


def name_of(module: str, mutant: Mutant) -> str:
    """A mutant in a line."""
    return f"{path_of(module)}:{mutant.line} {mutant.function}: {mutant.change}"


def places_of(found: list[Mutant], lines: list[str]) -> list[tuple[str, str, str, int]]:
    """What EQUIVALENT knows the mutants of a module by; the number is which one it is of those that are said alike."""
    counts: dict[tuple[str, str, str], int] = {}
    places = []
    for mutant in found:
        place = mutant.function.rpartition(".")[2], lines[mutant.line - 1].strip(), mutant.change
        counts[place] = counts.get(place, 0) + 1
        places.append((*place, counts[place]))
    return places


def sample_of(module: str, count: int, seed: int) -> dict[str, Place]:
    """The mutants of a module that are tried, by what is noted of them; all with a count of 0."""
    source = source_of(module)
    found = list(mutants(ast.parse(source)))
    lines = source.splitlines()
    drawn = list(range(len(found)))
    if 0 < count < len(found):
        drawn = sorted(random.Random(f"{seed} {module}").sample(drawn, count))
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    places = places_of(found, lines)
    return {f"{digest} {number} {name_of(module, found[number])}": Place(module, number) for number in drawn
            if not {places[number], places[number][:3]} & EQUIVALENT.keys()}


def drawn_of(samples: dict[str, dict[str, Place]], count: int, seed: int) -> dict[str, dict[str, Place]]:
    """Draw so many of the mutants of all modules together: the same ones again when code around them has changed."""
    alike: Counter[tuple[str, str]] = Counter()
    lots = {}
    for module, places in samples.items():
        for key in places:
            words = key.split(":", 1)[1].split(" ", 1)[1]  # without digest, number and line
            lots[key] = hashlib.sha256(f"{seed} {module} {words} {alike[module, words]}".encode()).digest()
            alike[module, words] += 1
    drawn = set(sorted(lots, key=lots.__getitem__)[:count])
    return {module: {key: place for key, place in places.items() if key in drawn}
            for module, places in samples.items()}


# -- trying them -------------------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """A test, as the run without a change showed it."""

    number: int
    file: str
    seconds: float
    steps: set[str]  # statements of the modules, as `step_name` has them
    failed: bool


class Trial:
    """A plugin of pytest that runs the tests it has collected again and again, each time in a process of its own."""

    def __init__(self, wanted: dict[str, Place], note: Callable[[str, bool], None], seconds: float) -> None:
        self.wanted, self.note, self.seconds = wanted, note, seconds
        self.modules = sorted({place.module for place in wanted.values()})
        self.taken: set[str] = set()  # steps since it was last emptied
        self.before: set[str] = set()  # those before the test itself began: of fixtures, which others may share
        self.why = "no tests were collected"
        self.home = tempfile.TemporaryDirectory(prefix="mutants")  # modules as other processes have them
        self.folder = Path(self.home.name)
        self.folder.chmod(0o755)  # some processes are of other users

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run everything once without a change, then what matters for each mutant."""
        if os.environ["NUMBA_DISABLE_JIT"] == "0":
            importlib.import_module("subak.kernels.numba_internals.cache").KernelCache._path = lambda *_: None
        if "polars-0" in threads():
            self.why = "a test file makes tables while it is imported, and processes with threads cannot be forked"
            return True
        rows = in_process(lambda: self.watched(session), 1800)
        if rows is None or not rows or any(row[-1] for row in rows):
            failed = [session.items[row[0]].nodeid for row in rows or [] if row[-1]]
            self.why = f"without any change there fail {', '.join(failed) or 'all, by crash or time'}"
            return True
        self.why = ""
        items = [Item(*row[:3], set(row[3]), row[4]) for row in rows if row[2] <= self.seconds]
        trees = {module: ast.parse(source_of(module)) for module in self.modules}
        found = {module: list(mutants(tree)) for module, tree in trees.items()}
        killed = dict.fromkeys(range(len(session.items)), 0)  # by each test
        for key, place in self.wanted.items():
            mutant = found[place.module][place.number]
            matter = [item for item in items if step_name(place.module, mutant.step) in item.steps]
            matter.sort(key=lambda item: (item.seconds + 0.01) / (killed[item.number] + 1))
            killer = in_process(functools.partial(self.killer, session, matter, trees[place.module], place.module,
                                                  mutant), 1 << 20) if matter else SURVIVES
            if killer is not None and killer != SURVIVES:
                killed[killer] += 1
            self.note(key, killer == SURVIVES)
        return True

    def watched(self, session: pytest.Session) -> list[tuple[int, str, float, list[str], bool]]:
        """Run every test, and see which steps of the modules it takes; those of fixtures count for a whole file."""
        for module in self.modules:
            tree = instrumented(module)
            change_code(module, tree, self.taken.add)
            carry(self.folder, module, tree)
        rows, shared = [], {}
        for number, item in enumerate(session.items):
            self.taken.clear()
            self.before = set()
            began, failed = time.process_time(), session.testsfailed
            self.run(session, item)
            self.taken |= said_elsewhere(self.folder)
            shared.setdefault(item.path.name, set()).update(self.before)
            rows.append((number, item.path.name, time.process_time() - began, sorted(self.taken),
                         session.testsfailed > failed))
        return [(number, file, seconds, sorted(shared[file].union(steps)), failed)
                for number, file, seconds, steps, failed in rows]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Note what fixtures did."""
        self.taken |= said_elsewhere(self.folder)
        self.before = set(self.taken)
        return (yield)

    def killer(self, session: pytest.Session, matter: list[Item], tree: ast.AST, module: str, mutant: Mutant) -> int:
        """The test that fails with a mutant, or SURVIVES; where one takes far longer than without it ends the process.

        Called in a process of its own, in which the tree and the module are changed.
        """
        mutant.make()
        change_code(module, tree, None, mutant.function)
        carry(self.folder / "changed", module, tree)
        for item in matter:
            most = math.ceil(time.process_time() + 3.0 * item.seconds + 1.0)
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            self.run(session, session.items[item.number])
            if session.testsfailed:
                return item.number
        return SURVIVES

    def run(self, session: pytest.Session, item: pytest.Item) -> None:
        """Run a test; what it shares with others is torn down behind it."""
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def carry(folder: Path, module: str, tree: ast.AST) -> None:
    """Let processes that are started from now on have a module as a tree has it, beside others of the folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(ast.unparse(tree))
    os.environ["SUBAK_CHANGED_MODULES"], os.environ["SUBAK_REACHED_STATEMENTS"] = str(folder), str(folder / REACHED)
    carried, others = str(ROOT / "tests" / "carried"), os.environ.get("PYTHONPATH", "")
    if carried not in others.split(os.pathsep):
        os.environ["PYTHONPATH"] = carried + (os.pathsep + others if others else "")


def said_elsewhere(folder: Path) -> set[str]:
    """Return which statements other processes have reached since this was asked last."""
    file = folder / REACHED
    try:
        found = set(file.read_text().splitlines())
        file.unlink()
    except FileNotFoundError:
        return set()
    return found


def step_name(module: str, line: int) -> str:
    """What a statement is known by."""
    return f"{module}:{line}"


def instrumented(module: str) -> ast.Module:
    """A module whose functions say of each statement that it is reached."""
    tree = ast.parse(source_of(module))
    for _, function in functions(tree):
        for node in list(ast.walk(function)):
            for field in ("body", "orelse", "finalbody"):
                steps = getattr(node, field, None)
                if isinstance(steps, list):
                    setattr(node, field, [each for step in steps for each in (*told(module, step), step)])
    return tree


def told(module: str, step: ast.AST) -> list[ast.stmt]:
    """The statement that says that a statement is reached."""
    return ast.parse(f"_called_({step_name(module, step.lineno)!r})").body if isinstance(step, ast.stmt) else []


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a module, by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node


def change_code(module: str, tree: ast.AST, called: Callable[[str], None] | None, only: str = "") -> None:
    """Give the functions of an imported module, or one of them, the bodies that they have in a tree."""
    home = importlib.import_module(module)
    home.__dict__["_called_"] = called
    compiled = compile(ast.fix_missing_locations(tree), home.__file__, "exec")
    for name, code in codes(compiled):
        if not only or name == only:
            thing: Any = home
            for part in name.split("."):
                thing = inspect.getattr_static(thing, part)
            is_kept = isinstance(thing, functools.cached_property)
            thing = thing.func if is_kept else getattr(thing, "fget", None) or getattr(thing, "__func__", thing)
            inspect.unwrap(thing).__code__ = code


def codes(code: types.CodeType) -> Iterator[tuple[str, types.CodeType]]:
    """The functions and methods in compiled code, by their qualified names."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType) and not inner.co_name.startswith("<"):
            if inner.co_flags & inspect.CO_NEWLOCALS and inner.co_flags & inspect.CO_OPTIMIZED:
                yield inner.co_qualname, inner
            else:  # the body of a class
                yield from codes(inner)


def threads() -> list[str]:
    """The names of the threads of this process."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def in_process(work: Callable[[], Any], cpu_seconds: int) -> Any:
    """What *work* returns in a process of its own, None if it takes longer or crashes. It may change what it likes."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))  # whatever else the machine does
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
            os.write(theirs, json.dumps(work()).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(theirs)
    answer, deadline = b"", time.monotonic() + 30.0 * cpu_seconds
    with os.fdopen(ours, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            part = pipe.read(1 << 20)
            if not part:
                break
            answer += part
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(answer) if answer.endswith(b"\n") else None


def try_all(
    words: tuple[str, ...], wanted: dict[str, Place], note: Callable[[str, bool], None], seconds: float
) -> str:
    """Try mutants in this process's children with some tests; return why it could not be done, or nothing."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    trial = Trial(wanted, note, seconds)
    tests = [str(ROOT / file_of(word)) if word.startswith("test_") else word for word in words]
    pytest.main([*PYTEST, *tests], plugins=[trial])
    return trial.why


def modules_of(room: str) -> list[str]:
    """The modules of a room."""
    paths = [path for part in ROOMS[room][0] for path in
             ([ROOT / "src" / part] if part.endswith(".py") else sorted((ROOT / "src" / part).rglob("*.py")))]
    return list(dict.fromkeys(".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in paths))


# -- the command -------------------------------------------------------------------------------------------------------


def read_log(log: Path) -> dict[str, bool]:
    """What was found before: whether each mutant survives."""
    log.parent.mkdir(exist_ok=True)
    return dict(map(json.loads, log.read_text().splitlines())) if log.is_file() else {}


def note(key: str, survives: bool) -> None:
    """Note what became of a mutant."""
    with LOG.open("a") as file:
        file.write(json.dumps([key, survives]) + "\n")


def main() -> None:
    """Try the mutants, and show what survives and how many were killed."""
    options = options_given()
    groups = [(modules_of(options.all), ROOMS[options.all][1])] if options.all else [
        ([module], words) for module, words in MODULES.items()]
    groups = [([module for module in modules if (options.list or options.only) in module], words)
              for modules, words in groups]
    count = 0 if options.all or options.list is not None else options.sample
    samples = {module: sample_of(module, count, options.seed) for modules, _ in groups for module in modules}
    if options.draw:
        samples = drawn_of(samples, options.draw, options.seed)
    if options.list is not None:
        say("\n".join(key.split(" ", 1)[1] for keys in samples.values() for key in keys))
        return
    sys.path.insert(0, str(ROOT / "src"))
    for modules, words in groups:
        known = read_log(LOG)
        new = {key: place for module in modules for key, place in samples[module].items()
               if key not in known or (known[key] and options.again)}
        os.environ["NUMBA_DISABLE_JIT"] = str(int(COMPILED.isdisjoint(modules)))  # before a process imports Numba
        why = in_process(lambda: try_all(words, new, note, options.quick), 1 << 20) if new else ""  # noqa: B023  (called at once)
        if why != "":
            raise SystemExit(f"{', '.join(modules)}: {why}")
        if modules:
            say(f"{', '.join(modules)}: {len(new)} tried")
    report(samples, read_log(LOG))


def options_given() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sample", type=int, default=25, metavar="N", help="mutants of each module; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", choices=ROOMS, help="every mutant of the modules of a room, with the room's tests")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="with --all: so many of the room's, by --seed")
    parser.add_argument("--only", default="", metavar="PART", help="modules with this in their name")
    parser.add_argument("--again", action="store_true", help="try survivors of former runs again")
    parser.add_argument("--quick", type=float, default=math.inf, metavar="SECONDS",
                        help="only with tests that take no longer; then with the others by --again")
    parser.add_argument("--list", metavar="PART", help="show the mutants of modules, and run nothing")
    return parser.parse_args()


def report(wanted: dict[str, dict[str, Place]], known: dict[str, bool]) -> None:
    """Show the survivors, and how many were killed of each module and of all."""
    say("\nSurvivors:")
    for key in [key for keys in wanted.values() for key in keys if known[key]]:
        say(f"  {key.split(' ', 2)[2]}")
    say("\nkilled  of")
    for module, keys in wanted.items():
        say(f"{sum(not known[key] for key in keys):6} {len(keys):3}  {module}")
    total = sum(map(len, wanted.values()))
    killed = sum(not known[key] for keys in wanted.values() for key in keys)
    say(f"{killed:6} {total:3}  all, {killed / max(total, 1):.0%}")


def say(line: str) -> None:
    """Show a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
