"""Conditions: how often each guard of Megha's handlers decided which way while torture and golden scripts ran.

    python tests/support/conditions.py                      over the seeds of test_torture.py and the golden scripts
    python tests/support/conditions.py --seeds 300          and over so many seeds more; says which decide something new
    python tests/support/conditions.py --all                every condition with its counts

A condition is the test of an `if`, a `while`, a conditional expression or a comprehension, and each operand of an
`and` or `or`. Nothing is changed on disk: the handlers run as plain Python, and are given bodies that count.
"""
import argparse
import ast
import collections
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from mutants import ROOT, codes, modules_of, source_of

# What only ever decides one way, by function, condition and the way that is never seen, and why it stands there.
NEWEST = "an attempt that its agent ends is the newest of its task there; a late exit is in test_protocol_defects"
RING = "the simulator's ledger has more places than anybody is behind; test_federation_parts fills small ones"
LIVE = "only a process of its own has a copy of a ledger; test_roles_apart has"
LAST = "the last kind that its role handles"
VICTIMS = "what waits for victims is newer than they are, stands before them in the list, and is given up first"
MARKED = "only what starts or runs is marked as a victim, and nothing happens between the marks and the kills"
ON_DISK = "a local master without a standby that is told of a later epoch had lost its disk"
WATCHES = "who watches is a standby: there is one WATCH, which goes on until it takes over"
NO_GAP = "a local master leaves out only what its global master has said that it has seen"
ROOM_FOR_ALL = "there is room for as many attempts as there can be"
GANG_DOWN = "when a gang is given up all that fly, are held or run leave, and none comes back before it is queued anew"
PARENTS = "a stage that is given up has a parent that did not finish, for which it waits for ever"
PLACES = "in a simulation every task has a place of its own; test_growing has places that are used again"
TWO_LOSSES = "an answer of a new local master, of which the state that it told before was lost; by hand in test_losses"
AT_ONCE = "the simulator hands over one message at a time; test_walks as many as there are"
ONE_WAY: dict[tuple[str, str, bool], str] = {
    **{(f"serve_{role}", "not may_serve(tables.out, place)", True): AT_ONCE
       for role in ("submitter", "global_master", "local_master", "worker")},
    ("on_arrive", "not is_known(jobs, message['task'])", True): PLACES,
    ("on_cancel", "not is_known(jobs, message['task'])", True): PLACES,
    ("on_start", "has_room(workers.rows)", False): ROOM_FOR_ALL,
    ("on_exited", "number != NOBODY", False): NEWEST,
    ("on_exited", "workers.rows.row[number]['task'] != task", True): NEWEST,
    ("on_exited", "workers.rows.row[number]['state'] != WORKER_RUNNING", True): NEWEST,
    ("on_exited", "workers.rows.row[number]['task'] != task or "
                  "workers.rows.row[number]['state'] != WORKER_RUNNING", True): NEWEST,
    ("on_exited", "number != NOBODY and (workers.rows.row[number]['task'] != task or "
                  "workers.rows.row[number]['state'] != WORKER_RUNNING)", True): NEWEST,
    ("on_exited", "number != NOBODY #2", False): NEWEST,
    ("on_forget", "workers.rows.row[number]['state'] == WORKER_ENDED", False):
        "only ends that were reported are forgotten, and numbers of attempts are not used twice",
    ("on_tick", "message['incarnation'] != workers.machine[machine]['incarnation']", True):
        "the simulator drops timers of a former incarnation of a role; by hand in test_protocol_defects",
    ("lose_attempts", "not has_heir(local, number)", False): VICTIMS,
    ("lose_attempts", "row['heir'] == NOBODY", False): VICTIMS,
    ("has_heir", "heir != NOBODY", True): VICTIMS,
    ("has_heir", "local.rows.row[heir]['state'] == ATTEMPT_PENDING", False): VICTIMS,
    ("has_heir", "local.rows.row[heir]['state'] == ATTEMPT_PENDING", True): VICTIMS,
    ("end_preemption", "local.machine[machine]['state'] == LISTED", False): VICTIMS,
    ("begin_preemption", "row['state'] in (ATTEMPT_STARTING, ATTEMPT_RUNNING)", False): MARKED,
    ("spare_victims", "row['state'] in (ATTEMPT_STARTING, ATTEMPT_RUNNING)", False): MARKED,
    ("step_down", "rules.standby", False): ON_DISK,
    ("on_watch", "local.standing.active", True): WATCHES,
    ("on_watch", "not rules.standby", True): WATCHES,
    ("forget_stale", "master.task[task]['phase'] == PHASE_ENDED", False):
        "a task is queued when it is known what became of its last request, so nothing of it runs",
    ("wake_lanes", "lanes.place[lane] == NO_PLACE", False): "lanes are woken only when none is in the round",
    ("member_held", "master.gang[gang]['failed']", True): GANG_DOWN,
    ("give_up_if_in_part", "not master.gang[gang]['failed']", False): GANG_DOWN,
    ("end", "me['flying']", True): RING,  # an attempt that was never seen to begin is told as over in a whole state
    ("find_victims", "other != tasks.queue[task]", False): "a queue above its share may not preempt",
    ("is_known", "master.cluster[cluster]['seen'] == NEVER_SEEN", True): "asked only after an update was applied",
    ("begin_update", "last == first", True): NO_GAP,
    ("take_in_view", "has_room(master.held)", False): ROOM_FOR_ALL,
    ("give_in_view", "row != NOBODY", False): ROOM_FOR_ALL,
    ("is_mine", "task['machine'] == entry['machine']", False):
        "each cluster numbers its requests: another's of the same number is told only in a whole state",
    ("is_sent", "task['sent_to'] == cluster", False): "the same; by hand in test_global_master_by_hand",
    ("may_be_lost", "may_have_begun(master, tasks, task)", False): TWO_LOSSES,
    ("widen", "ring < ledger.entry.size", False): RING,
    ("may_write_over_more", "counts.ring < ledger.entry.size", False): RING,
    ("write_over_what_was_seen", "ledger.counts.version - whole <= ledger.entry.size", False): RING,
    ("reaches_back_to", "ledger.counts.version - version <= min(ledger.entry.size // 2, ledger.counts.ring)", False):
        RING,
    ("still_holds", "version >= 0", False): RING,
    ("still_holds", "ledger.counts.version - version <= ledger.counts.ring", False): RING,
    ("carried", "not still_holds(ledger, epoch, first)", False): LIVE,
    ("carried", "not still_holds(ledger, epoch, first)", True): LIVE,
    ("bring", "epoch < copy.counts.epoch", False): LIVE,
    ("bring", "epoch < copy.counts.epoch", True): LIVE,
    ("bring", "epoch > copy.counts.epoch", False): LIVE,
    ("bring", "epoch > copy.counts.epoch", True): LIVE,
    ("bring", "start < last", False): LIVE,
    ("bring", "start < last", True): LIVE,
    ("is_new", "ahead < WINDOW", False): "64 requests in a row are lost; by hand in test_federation_parts",
    ("to_submitter", "kind == REBUILD", False): LAST,
    ("to_global_master", "kind == RESTART", False): LAST,
    ("to_local_master", "kind == RESTART", False): LAST,
    ("to_worker", "kind == RECONFIGURE", False): LAST,
    ("on_try_again", "jobs.state[message['task'] & jobs.mask] == SUBMISSION_BACKOFF", False):
        "armed when the end is settled; what is cancelled then gives its row back",
    ("release_children", "not jobs.given_up[child]", False): PARENTS,
    ("release", "jobs.stages.waits[jobs.stages.of_task[place]] > 0", True): PLACES,
}


class Condition(NamedTuple):
    """A condition of a function, by its words; the second with the same words in a function ends with #2."""

    function: str
    words: str
    module: str
    line: int


class Conditions:
    """Counts of both ways of all conditions; what runs in a `with` of it is counted."""

    def __init__(self, modules: list[str]) -> None:
        self.found: list[Condition] = []
        self.counts: list[list[int]] = []  # for each condition: how often false, how often true
        self.bodies: list[tuple[types.FunctionType, types.CodeType, types.CodeType]] = []  # plain ones, ones that count
        for module in modules:
            self.read(module)

    def read(self, module: str) -> None:
        """Find the conditions of a module."""
        home, source = importlib.import_module(module), source_of(module)
        tree = ast.parse(source)
        for name, function in functions_of(tree):
            words: collections.Counter[str] = collections.Counter()
            for parent, field, place, test, said in [(*each, ast.unparse(each[-1])) for each in tests_of(function)]:
                words[said] += 1
                call = ast.Call(ast.Name("_saw_", ast.Load()), [ast.Constant(len(self.found)), test], [])
                put(parent, field, place, ast.copy_location(call, test))
                numbered = said if words[said] == 1 else f"{said} #{words[said]}"
                self.found.append(Condition(name.rpartition(".")[2], numbered, module, test.lineno))
                self.counts.append([0, 0])
        home.__dict__["_saw_"] = self.saw
        plain = dict(codes(compile(source, str(home.__file__), "exec")))
        for name, code in codes(compile(ast.fix_missing_locations(tree), str(home.__file__), "exec")):
            self.bodies.append((function_at(home, name), plain[name], code))

    def saw(self, number: int, value: Any) -> Any:
        """Count a condition, and hand on what it is."""
        self.counts[number][bool(value)] += 1
        return value

    def __enter__(self) -> "Conditions":
        # a function that is not as in its file, because tests/support/mutants.py has changed it, is left alone
        self.changed = [(function, plain) for function, plain, _ in self.bodies if function.__code__ == plain]
        counting = {id(function): code for function, _, code in self.bodies}
        for function, _ in self.changed:
            function.__code__ = counting[id(function)]
        return self

    def __exit__(self, *_: object) -> None:
        for function, plain in self.changed:
            function.__code__ = plain

    def unseen(self) -> dict[tuple[str, str, bool], Condition]:
        """The ways that no condition took: by function, condition and way."""
        return {(one.function, one.words, way): one for one, counts in zip(self.found, self.counts, strict=True)
                for way in (False, True) if not counts[way]}


def functions_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a module, by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_of(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node


def tests_of(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int, ast.expr]]:
    """Every condition below a node, the inner ones first: the node it is in, the field, the place there, itself."""
    for field, value in ast.iter_fields(tree):
        for place, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST):
                continue
            yield from tests_of(node)
            decides = field in {"test", "ifs"} or (isinstance(tree, ast.BoolOp) and field == "values")
            if decides and isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
                yield tree, field, place if isinstance(value, list) else -1, node


def put(parent: ast.AST, field: str, place: int, node: ast.AST) -> None:
    """Put a node where another was."""
    if place < 0:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def function_at(home: types.ModuleType, name: str) -> types.FunctionType:
    """The plain function of a module with a qualified name."""
    thing: Any = home
    for part in name.split("."):
        thing = inspect.getattr_static(thing, part)
    thing = getattr(thing, "fget", None) or getattr(thing, "__func__", thing)
    found: types.FunctionType = inspect.unwrap(thing)
    return found


def handlers() -> Conditions:
    """The conditions of what decides in Megha: of its roles, and of what they are made of."""
    aside = ("federation.messages", "federation.settings", "megha.transitions",
             "megha.tables", "megha.admission", "megha.catalog")  # the last two: test_growing
    return Conditions([module for module in modules_of("megha") if not module.endswith(aside)])


# -- the command -------------------------------------------------------------------------------------------------------


def count_all(conditions: Conditions) -> None:
    """Run what torture and the golden scripts of the suite run."""
    from golden_script import trace
    from subak.simulator.torture.by_hand import SEED_BY_HAND, case_of
    from subak.simulator.torture.torture import run_case
    from test_golden import DASHES, SCRIPTS
    from test_torture import SEEDS

    with conditions:
        for path in SCRIPTS:
            trace(path.read_text(encoding="utf-8").partition(DASHES)[0])
        for case in map(case_of, (SEED_BY_HAND, *SEEDS)):
            run_case(case)


def try_more(conditions: Conditions, first: int, count: int) -> None:
    """Run more seeds, and say which decide what was not decided before."""
    from subak.simulator.torture.torture import random_case, run_case

    left = set(conditions.unseen())
    for seed in range(first, first + count):
        with conditions:
            run_case(random_case(seed))
        new = left - set(conditions.unseen())
        for function, words, way in sorted(new):
            show(f"seed {seed}: {function}: {words} is {way}")
        left -= new


def show(line: str) -> None:
    """Show a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Count, and show what was only ever one way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="seeds of torture beside those of the suite")
    parser.add_argument("--first", type=int, default=1000, metavar="SEED")
    parser.add_argument("--all", action="store_true", help="show the counts of every condition")
    options = parser.parse_args()
    conditions = handlers()
    count_all(conditions)
    try_more(conditions, options.first, options.seeds)
    if options.all:
        for one, (no, yes) in zip(conditions.found, conditions.counts, strict=True):
            show(f"{yes:9,} {no:9,}  {one.module}:{one.line} {one.function}: {one.words}")
    unseen = conditions.unseen()
    for (function, words, way), one in unseen.items():
        show(f"{'known' if (function, words, way) in ONE_WAY else 'NEVER'} {way!s:5}  {one.module}:{one.line} "
             f"{function}: {words}")
    show(f"{len(conditions.found)} conditions; {len({key[:2] for key in unseen})} decided one way only, of which "
         f"{sum(key in ONE_WAY for key in unseen)} of {len(unseen)} ways are accounted for")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.path[:0] = [str(ROOT / "tests" / room) for room in ("support", "federation")]
    main()
