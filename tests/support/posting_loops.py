"""Finds every loop of the federations from which a message may be posted, and whether it asks for room.

A loop asks where its condition has `not is_filling(out)`, or a statement of its body leaves it when `is_filling(out)`,
or when not `may_serve(out, place)`. Any other must be of what is known beforehand; BOUNDED says of what.
"""
import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutants import ROOT

HOME = ROOT / "src" / "subak" / "federation"
POSTS = ("post", "go_on")  # of messages.py: all others call them
GANG = "a gang"
MACHINE = "attempts on a machine"
KEPT = "attempts that a worker keeps"
CLUSTER = "machines of a cluster"
MASTERS = "masters"
TASKS = "the outboxes of federations that sample hold all tasks, reservations and schedulers (simulator/federated)"
STOPS = "leaves where what it calls has stopped, which goes on for it"
BOUNDED: dict[tuple[str, str], str] = {  # by function, without the federation's package, and head of the loop
    **{(function, head): TASKS for function, head in (
        ("batches.submitter.submit_batch", "for place in range(batches.first[batch], batches.first[batch + 1])"),
        ("batches.submitter.on_batch_done",
         "for edge in range(stages.child_first[stage], stages.child_first[stage + 1])"),
        ("batches.submitter.release_batches",
         "for place in range(stages.task_first[stage], stages.task_first[stage + 1])"),
        ("batches.worker.serve_in_order", "while queues.head[worker] != NOBODY"),
        ("batches.worker.resize_worker",
         "while workers.running[worker] != NOBODY and (not holds_running(workers, tasks, worker, change))"),
        ("batches.worker.send_queued_back", "while number != NOBODY"),
        ("pigeon.deal", "for number in range(end - place)"),
        ("pigeon.deal_stranded", "for place in range(count)"),
        ("pigeon.serve_group", "while True"),
        ("pigeon.send_waiting_back", "while task != NOBODY"),
        ("pigeon.on_group_change", "for place in range(out.counts.posted)"),
        ("sampling.central_scheduler.place_long", "for _ in range(left)"),
        ("sampling.central_scheduler.place_owed", "for place in range(schedulers.stranded_count[0])"),
        ("sampling.dodoor.on_add_load", "for scheduler in range(loads.known.size)"),
        ("sampling.dodoor.place_all", "for _ in range(tasks_left(schedulers, batches, batch))"),
        ("sampling.dodoor.place_owed", "for place in range(schedulers.stranded_count[0])"),
        ("sampling.eagle.serve_shortest", "while has_room(workers.own, sharing, worker)"),
        ("sampling.hawk.on_stolen", "for _ in range(message['count'])"),
        ("sampling.sparrow.on_submit", "while wanted > 0"),
        ("sampling.sparrow.on_submit", "for place in range(found)"),
        ("sampling.sparrow.probe_owed", "for place in range(schedulers.stranded_count[0])"),
        ("sampling.sparrow.probe_owed", "for _ in range(schedulers.owed[batch])"),
    )},
    ("megha.global_master.gangs.place_gang", "while task != NOBODY #2"): GANG,
    ("megha.global_master.gangs.member_held", "while missing == 0 and member != NOBODY"): GANG,
    ("megha.global_master.gangs.give_gang_up", "while member != NOBODY"): GANG,
    ("megha.global_master.rebuild.on_wake", "for cluster in range(topology.local_masters)"): MASTERS,
    ("megha.global_master.rebuild.on_wake", "for instance in range(2 if rules.standby else 1)"): MASTERS,
    ("megha.local_master.leases.repeat_orders", "while number != NOBODY"): MACHINE,
    ("megha.local_master.leases.lose_attempts", "while number != NOBODY"): MACHINE,
    ("megha.local_master.leases.lose_unreported", "while number != NOBODY"): MACHINE,
    ("megha.local_master.takeover.take_over",
     "for machine in range(first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1))"):
        CLUSTER,
    ("megha.local_master.takeover.take_over", "for master in range(topology.global_masters)"): MASTERS,
    ("megha.local_master.handlers.begin_preemption",
     "while not enough(local, shapes, message['shape'], machine, heir)"): "what is posted leaves it",
    ("megha.local_master.handlers.begin_preemption", "while number != NOBODY"): MACHINE,
    ("megha.local_master.handlers.on_beat", "for master in range(topology.global_masters)"): MASTERS,
    ("megha.submitter.tell_ended", "while row != NOBODY"): GANG,
    ("megha.submitter.withdraw_gang", "while row != NOBODY"): GANG,
    ("megha.submitter.release_children", "for edge in range(first, last)"): STOPS,
    ("megha.worker.on_report", "while number != NOBODY"): KEPT,
    ("megha.worker.on_tick", "while number != NOBODY"): KEPT,
    ("megha.worker.on_power_off", "while number != NOBODY"): KEPT,
    ("megha.worker.on_reconfigure", "for loss in range(message['first'], message['last'])"): MACHINE,
}
# Walks whose function posts nothing to go on by, and who goes on.
GOES_ON: dict[str, str] = {
    "megha.global_master.backlog.choose": "on_place takes another turn",
    "megha.global_master.backlog.choose_fairly": "on_place takes another turn",
    "megha.global_master.backlog.forget_stale": "on_place takes another turn",
    "megha.global_master.handlers.apply_entries": "on_update posts CATCH_UP",
    "megha.global_master.passed_over.ask_for_holds": "on_passed_over posts PASSED_OVER",
    "megha.global_master.rebuild.settle_doubts": "on_update and on_settle post SETTLE",
    "megha.global_master.rebuild.settle_from": "settle_later posts SETTLE",
    "megha.local_master.state.forget_noted": "the next NOTED, which comes every heartbeat",
}


class Loop(NamedTuple):
    """A loop from which something may be posted."""

    function: str
    head: str  # the second with the same head in a function ends with #2
    asks: bool
    line: int


class Module:
    """Functions of a module, and what its names mean."""

    def __init__(self, path: Path, home: Path) -> None:
        self.name = ".".join(path.relative_to(home).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.means = {name: f"{self.name}.{name}" for name in self.functions}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                home_of = node.module.removeprefix("subak.federation.")
                self.means.update({each.asname or each.name: f"{home_of}.{each.name}" for each in node.names})

    def called(self, tree: ast.AST) -> set[str]:
        """The functions that are called below a node, by name; what is only handed on counts as called."""
        return {self.means[node.id] for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in self.means}


def posting_loops(home: Path = HOME) -> tuple[list[Loop], set[str]]:
    """Every loop below a folder from which a message may be posted, and the functions that call `go_on`."""
    modules = [Module(path, home) for path in sorted(home.rglob("*.py"))]
    calls = {f"{module.name}.{name}": module.called(ast.Module(function.body, []))
             for module in modules for name, function in module.functions.items()}
    posting = {f"messages.{name}" for name in POSTS}
    while more := {name for name, called in calls.items() if called & posting} - posting:
        posting |= more
    loops = [loop for module in modules for name, function in module.functions.items()
             for loop in _loops(module, f"{module.name}.{name}", function, posting)]
    return loops, {name for name, called in calls.items() if "messages.go_on" in called}


def _loops(module: Module, name: str, function: ast.FunctionDef, posting: set[str]) -> Iterator[Loop]:
    heads: dict[str, int] = {}
    for node in sorted((each for each in ast.walk(function) if _is_loop(each)), key=lambda each: each.lineno):
        head = _head(node)
        heads[head] = heads.get(head, 0) + 1
        if module.called(node) & posting:
            yield Loop(name, head if heads[head] == 1 else f"{head} #{heads[head]}", _asks(node), node.lineno)


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)


def _head(node: ast.AST) -> str:
    if isinstance(node, ast.For):
        return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    return f"while {ast.unparse(node.test)}" if isinstance(node, ast.While) else ast.unparse(node)


def _asks(loop: ast.AST) -> bool:
    if isinstance(loop, ast.While) and any(ast.unparse(each) == "not is_filling(out)" for each in _operands(loop.test)):
        return True
    return isinstance(loop, ast.For | ast.While) and any(
        isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return | ast.Break)
        and ast.unparse(each.test) in ("is_filling(out)", "not may_serve(tables.out, place)") for each in loop.body)


def _operands(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
