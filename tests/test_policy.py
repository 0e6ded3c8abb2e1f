"""Policies of users: the examples in the documentation work, and every mistake is one clear line."""
import functools
import signal
import sys

import pytest
from hypothesis import HealthCheck, given, settings

from documented import example_file
from naive import twin_of, twin_run
from small import TWO, cases, fleet_of, plain, staged
from subak.errors import InputError, PolicyError
from subak.policy import find_scheduler, hooks
from subak.policy_files import named_scheduler
from subak.simulator.simulate import simulate
from test_engine_against_twin import engine_rows, twin_rows

TASKS = [(0, 5, 1, 1), (0, 5, 2, 1), (0, 5, 4, 4), (1, 5, 1, 0)]
MACHINES = [(2, 2), (2, 2), (4, 4)]


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Finds a documented example, imported and compiled once: importing a file again compiles it again."""
    file = example_file(tmp_path_factory.mktemp("documented"))
    return functools.cache(lambda name: find_scheduler(f"{file}:{name}"))


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)
@given(case=cases())
def test_the_documented_placement_runs_with_every_option(examples, case):
    for options in ("", "+backfill", "+shortest-first", "+backfill+priority"):
        outcome = simulate(*case, examples(f"last_fit{options}"))
        assert engine_rows(outcome) == twin_rows(twin_run(*case, f"last-fit{options}"))


class Impatient:
    """Who arrives takes the first machine that fits, else joins one queue; a departure serves that queue in order."""

    def __init__(self):
        self.queue = []

    def arrived(self, world, tasks):
        for task in tasks:
            if world.fitting(task):
                world.begin(task, world.fitting(task)[0])
            else:
                self.queue.append(task)
                self.queue.sort()

    def departed(self, world, freed):
        while self.queue and world.fitting(self.queue[0]):
            task = self.queue.pop(0)
            world.begin(task, world.fitting(task)[0])


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=80)
@given(case=cases())
def test_the_documented_pair_of_hooks_runs(examples, case):
    outcome = simulate(*case, examples("impatient"))
    assert engine_rows(outcome) == twin_rows(twin_of(*case).run(Impatient()))


def written(folder, text):
    file = folder / "mine.py"
    file.write_text(text)
    return file


def test_a_users_first_fit_is_the_built_in_one(tmp_path):
    file = written(tmp_path, "from subak.policy import next_fitting, policy\n\n"
                   "@policy\ndef same(fleet, tasks, task):\n    return next_fitting(fleet, tasks, task, 0)\n")
    workload, fleet = plain(*TASKS, resources=TWO), fleet_of(*MACHINES, resources=TWO)
    for options in ("", "+backfill"):
        mine = simulate(workload, fleet, find_scheduler(f"{file}:same{options}"))
        built_in = simulate(workload, fleet, find_scheduler(f"first-fit{options}"))
        assert engine_rows(mine) == engine_rows(built_in)
        assert mine.scheduler.name == f"mine.py:same{options}"


def test_a_policy_may_refuse_everybody(tmp_path):
    file = written(tmp_path, "from subak.policy import policy\n\n"
                   "@policy\ndef never(fleet, tasks, task):\n    return -1\n")
    outcome = simulate(plain((0, 1, 1), (2, 1, 1)), fleet_of((9,)), find_scheduler(f"{file}:never+backfill"))
    assert [row[0] for row in engine_rows(outcome)] == ["WAITING", "WAITING"]


# -- answers the engine cannot accept ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "rule", "value"), [
    ("-7", "a machine that does not exist", "machine -7 for task 0; machines are 0 to 2, or -1 for none"),
    ("10**9", "a machine that does not exist", "machine 1000000000 for task 0; machines are 0 to 2"),
    ("2**62", "a machine that does not exist", f"machine {2**62} for task 0"),
    ("3", "a machine that does not exist", "machine 3 for task 0; machines are 0 to 2"),
    ("0", "a machine that cannot hold the task",
     "machine 0 for task 2; cpu asked 4 cores, free 1, memory asked 4 GB, free 1"),
])
def test_a_machine_that_cannot_be_is_refused(tmp_path, answer, rule, value):
    if answer == "0":  # holds task 0 only
        answer = "0 if task != 1 else 1"
    file = written(tmp_path, f"from subak.policy import policy\n\n"
                   f"@policy\ndef wrong(fleet, tasks, task):\n    return {answer}\n")
    workload, fleet = plain(*TASKS, resources=TWO), fleet_of(*MACHINES, resources=TWO)
    with pytest.raises(PolicyError) as error:
        simulate(workload, fleet, find_scheduler(f"{file}:wrong+backfill"))
    assert one_line(error) == f"scheduler mine.py:wrong+backfill answered {rule}: {value}" or value in one_line(error)
    assert f"answered {rule}" in one_line(error)


def test_a_machine_that_left_is_refused(tmp_path):
    file = written(tmp_path, "from subak.policy import policy\n\n"
                   "@policy\ndef zero(fleet, tasks, task):\n    return 0\n")
    fleet = fleet_of((4,), (4,), changes=[(1, 0, False, 0)])
    with pytest.raises(PolicyError, match="machine 0 for task 0; cpu asked 1 core, free 0"):
        simulate(plain((2, 1, 1)), fleet, find_scheduler(f"{file}:zero"))


def test_a_machine_that_does_not_meet_the_constraints_is_refused(tmp_path):
    file = written(tmp_path, "from subak.policy import policy\n\n"
                   "@policy\ndef zero(fleet, tasks, task):\n    return 0\n")
    workload = staged([{"request": (1,), "constraints": [("rack", "=", "a")]}], [(0, 0, 1)])
    with pytest.raises(PolicyError, match=r"machine 0 for task 0 \(it has constraints\); cpu asked 1 core, free 4"):
        simulate(workload, fleet_of((4,), (4,), attributes=[(1, "rack", "a")]), find_scheduler(f"{file}:zero"))


HOOKS = """
from subak.policy import claim, hooks, next_fitting

def on_arrival(fleet, tasks, lanes, memory, arrived, claims):
    for task in arrived:
        claim(claims, fleet, tasks, task, 0)

def on_departure(fleet, tasks, lanes, memory, freed, claims):
    claim(claims, fleet, tasks, {task}, 0)

mine = hooks(on_arrival, on_departure)
"""


@pytest.mark.parametrize(("task", "rule"), [
    ("0", "answered a task that is not waiting: machine 0 for task 0; tasks are 0 to 1"),  # finished
    ("1", "answered a task that is not waiting: machine 0 for task 1; tasks are 0 to 1"),  # has not arrived
    ("2", "answered a task that does not exist: machine 0 for task 2; tasks are 0 to 1"),
    ("-1", "answered a task that does not exist: machine 0 for task -1; tasks are 0 to 1"),
])
def test_a_task_that_cannot_be_started_is_refused(tmp_path, task, rule):
    file = written(tmp_path, HOOKS.format(task=task))
    with pytest.raises(PolicyError) as error:
        simulate(plain((0, 1, 1), (5, 1, 1)), fleet_of((1,)), find_scheduler(f"{file}:mine"))
    assert one_line(error) == f"scheduler mine.py:mine {rule}"


# -- files that cannot be used -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "kind", "said"), [
    ("@policy\ndef mine(fleet, tasks, task):\n    return fleet.beauty\n", PolicyError,
     r"policy mine does not compile: FleetState has no attribute 'beauty'; there are free, .*, machines \(line 4\)"),
    ("@policy\ndef mine(fleet, tasks, task):\n    return tasks.requests[0, 0]\n", PolicyError,
     r"Tasks has no attribute 'requests'; there are arrival, .*, constraint_set; did you mean 'request'\? \(line 4\)"),
    ("@policy\ndef mine(fleet, tasks, task):\n    return polic(fleet)\n", PolicyError,
     r"policy mine does not compile: name 'polic' is not defined; did you mean 'policy'\?"),
    ("@policy\ndef mine(fleet, tasks):\n    return 0\n", PolicyError,
     "policy mine does not compile: it takes fleet, tasks, and must take fleet, tasks, task"),
    ("@policy\ndef mine(fleet, tasks, task):\n    return 'zero'\n", PolicyError,
     "policy mine must return a whole number on every path, a machine's or -1 for none; it returns unicode_type"),
    ("@policy\ndef mine(fleet, tasks, task):\n    return 0.5\n", PolicyError, "whole number .* it returns float64"),
    ("@policy\ndef mine(fleet, tasks, task):\n    return task > 1\n", PolicyError, "whole number .* returns bool"),
    ("@policy\ndef mine(fleet, tasks, task):\n    if task:\n        return 0\n", PolicyError,
     "whole number on every path, .* it returns OptionalType|it returns .*none"),
    ("@policy\ndef mine(fleet, tasks, task):\n    raise SystemExit\n", PolicyError,
     r"policy mine does not compile: .* used for exception \(line 4\)"),
    ("def mine(fleet, tasks, task):\n    return 0\n", PolicyError,
     "must define mine with @policy or hooks\\(\\); it defines none"),
    ("@policy\ndef other(fleet, tasks, task):\n    return 0\n", PolicyError, "must define mine .* it defines other"),
    ("def mine(:\n", PolicyError, "cannot be imported: SyntaxError"),
    ("import nothing_of_this_name\n", PolicyError, "cannot be imported: ModuleNotFoundError: .*nothing_of_this_name"),
    ("raise ValueError('no\\nmore')\n", PolicyError, "cannot be imported: ValueError: no"),
])
def test_a_file_that_cannot_be_used(tmp_path, text, kind, said):
    file = written(tmp_path, "from subak.policy import policy\n" + text)
    with pytest.raises(kind, match=said) as error:
        find_scheduler(f"{file}:mine")
    assert one_line(error).startswith(f"{file}: ")


@pytest.mark.parametrize(("name", "said"), [
    ("nowhere.py:mine", "nowhere.py: no such policy file"),
    ("fastest-fit", "scheduler must be a name that `subak schedulers` lists, or FILE.py:NAME; not 'fastest-fit'"),
    ("first-fit+magic", "scheduler first-fit: option must be one of backfill, .* not 'magic'"),
    ("greedy+backfill", "scheduler greedy: takes no options, not 'backfill'"),
    ("tetris+shortest-first", "scheduler tetris: option must be one of normalised, not 'shortest-first'"),
    ("first-fit+", "scheduler first-fit: option must be one of .* not ''"),
])
def test_a_name_that_means_nothing(name, said):
    with pytest.raises(InputError, match=said) as error:
        find_scheduler(name)
    one_line(error)


@pytest.mark.parametrize(("options", "said"), [
    ({"lanes": "two"}, "hooks: lanes must be one, shape or machine, not 'two'"),
    ({"order": "random"},
     "hooks: order must be one of fifo, shortest-first, priority, johnson, johnson-reversed, not 'random'"),
])
def test_hooks_refuse_words_they_do_not_know(options, said):
    with pytest.raises(InputError, match=said):
        hooks(lambda *_: None, lambda *_: None, **options)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 600
    return text


def test_memory_is_zero_at_the_start_and_kept_between_calls(tmp_path):
    # every second task that arrives is refused for good: memory.whole[0, 0] counts them, memory.number holds the two
    file = written(tmp_path, """
from subak.policy import claim, hooks, push

def on_arrival(fleet, tasks, lanes, memory, arrived, claims):
    for task in arrived:
        if memory.whole[0, 0] % memory.number[0] == 0:
            claim(claims, fleet, tasks, task, 0)
        else:
            push(lanes, tasks.rank, 0, task)
        memory.whole[0, 0] += 1

def on_departure(fleet, tasks, lanes, memory, freed, claims):
    pass

mine = hooks(on_arrival, on_departure, memory=((1, 1), (0, 0), [2.0]))
""")
    workload = plain(*[(time, 0.5, 1) for time in (0, 0, 1, 2, 2)])
    for _ in range(2):
        rows = engine_rows(simulate(workload, fleet_of((3,)), find_scheduler(f"{file}:mine")))
        assert [row[2] for row in rows] == [0, None, 1, None, 2]


# -- policies that do what they may not --------------------------------------------------------------------------------


RAISES = """
from subak.policy import policy
@policy
def mine(fleet, tasks, task):
    if task == 1:
        raise ValueError("boo\\nand more")
    return 0
"""
TAMPERS = """
import numpy as np
from subak.policy import claim, hooks, policy
@policy
def mine(fleet, tasks, task):
    {0}
    return 0
def arrive(fleet, tasks, lanes, memory, arrived, claims):
    task = arrived[0]
    {0}
    claim(claims, fleet, tasks, task, 0)
def leave(fleet, tasks, lanes, memory, freed, claims):
    return
pair = hooks(arrive, leave, memory=((1, 1), (1, 1), []))
"""
MISUSES = """
from subak.policy import hooks, pop, push
def arrive(fleet, tasks, lanes, memory, arrived, claims):
    {}
def leave(fleet, tasks, lanes, memory, freed, claims):
    return
mine = hooks(arrive, leave)
"""


@pytest.mark.parametrize(("text", "said"), [
    (RAISES, "scheduler mine.py:mine raised ValueError: boo"),
    (MISUSES.format("pop(lanes, tasks.rank, 0)"),
     "scheduler mine.py:mine pushed to a lane that does not exist, or popped from an empty one"),
    (MISUSES.format("push(lanes, tasks.rank, 50, arrived[0])"),
     "scheduler mine.py:mine pushed to a lane that does not exist, or popped from an empty one"),
])
def test_a_policy_that_does_what_it_may_not_ends_in_one_line(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(PolicyError) as error:
        simulate(plain((0, 1, 1), (5, 1, 1)), fleet_of((1,)), find_scheduler(f"{file}:mine"))
    assert one_line(error) == said


def test_only_the_named_policy_of_a_file_is_compiled(tmp_path):
    file = written(tmp_path, "from subak.policy import policy\n@policy\ndef broken(fleet, tasks, task):\n"
                             "    return fleet.beauty\n@policy\ndef mine(fleet, tasks, task):\n    return 0\n")
    assert find_scheduler(f"{file}:mine").name == "mine.py:mine"
    with pytest.raises(PolicyError, match="policy broken does not compile"):
        find_scheduler(f"{file}:broken")


def test_a_policy_file_that_ends_the_program_is_refused(tmp_path):
    file = written(tmp_path, "import sys\nsys.exit(0)\n")
    with pytest.raises(PolicyError, match="cannot be imported: SystemExit"):
        find_scheduler(f"{file}:mine")


def test_a_keyboard_interrupt_of_the_files_own_is_the_files_fault(tmp_path):
    file = written(tmp_path, "raise KeyboardInterrupt\n")
    with pytest.raises(PolicyError) as error:
        find_scheduler(f"{file}:mine")
    assert one_line(error) == f"{file}: cannot be imported: KeyboardInterrupt: raised by the file, not by Ctrl-C"


MADE_OF_IT = ("{}", "try:\n    {}\nexcept BaseException:\n    pass",
              "try:\n    {}\nexcept BaseException:\n    raise ValueError('mine') from None")


@pytest.mark.parametrize("made_of_it", MADE_OF_IT)
@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_is_heard_while_a_file_is_imported(tmp_path, ends_by_signal, made_of_it, number, raised):
    file = written(tmp_path, "import signal\n" + made_of_it.format(f"signal.raise_signal({int(number)})"))
    with pytest.raises(raised):
        named_scheduler(f"{file}:mine")
    assert [signal.getsignal(each) for each in ends_by_signal] == list(ends_by_signal.values())


def test_a_file_cannot_change_who_hears_a_signal(tmp_path, ends_by_signal):
    file = written(tmp_path, "import signal\nfor number in (signal.SIGINT, signal.SIGTERM):\n"
                             "    signal.signal(number, signal.SIG_IGN)\n")
    with pytest.raises(PolicyError, match="must define mine"):
        named_scheduler(f"{file}:mine")
    assert [signal.getsignal(each) for each in ends_by_signal] == list(ends_by_signal.values())


@pytest.fixture
def ends_by_signal():
    """The handlers as the command line sets them."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: lambda *_: sys.exit(143)}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield handlers
    for number, handler in before.items():
        signal.signal(number, handler)


def test_two_orders_are_refused():
    with pytest.raises(InputError, match="at most one order may be given, not fifo and priority"):
        find_scheduler("first-fit+fifo+priority")


# -- what is not a policy's own: falsified runs would be believed ------------------------------------------------------


@pytest.mark.parametrize("name", ["mine", "pair"])
@pytest.mark.parametrize("change", [
    "fleet.free[0, 0] = 99", "fleet.capacity[0, 0] += 99", "fleet.used[:] = 0", "fleet.allowed[0, 0] = 1",
    "tasks.request[0, tasks.shape[task]] = 0", "tasks.run_time[task] = 0.0", "tasks.arrival.fill(0.0)",
    "row = tasks.request[0]; row[0] = 0", "tasks.estimate.sort()", "tasks.rank.T[0] = 1.0",
])
def test_a_policy_that_writes_to_what_it_may_only_read_does_not_compile(tmp_path, name, change):
    file = written(tmp_path, TAMPERS.format(change))
    with pytest.raises(PolicyError) as error:
        find_scheduler(f"{file}:{name}")
    said = f"policy {'mine' if name == 'mine' else 'arrive'} writes to what it may only read; only lanes and memory are"
    assert said in one_line(error)
    assert one_line(error).endswith(f"(line {6 if name == 'mine' else 10})")


@pytest.mark.parametrize("change", ["claims.violation[1] = 0", "claims.status[task] = 4", "arrived[0] = 1"])
def test_hooks_cannot_write_to_what_came_and_what_starts(tmp_path, change):
    with pytest.raises(PolicyError, match="policy arrive writes to what it may only read"):
        find_scheduler(f"{written(tmp_path, TAMPERS.replace('{0}', change, 2).replace(change, 'pass', 1))}:pair")


@pytest.mark.parametrize(("change", "table"), [
    ("tasks.request.flat[0] = 0", "tasks.request"),
    ("tasks.run_time.flat[1] = 0.5", "tasks.run_time"),  # and tasks.estimate, which here are one
    ("tasks.arrival.flat[1] = 0.5", "tasks.arrival"),
    ("fleet.allowed.flat[0] = np.uint64(1)", "fleet.allowed"),
    ("fleet.free.flat[0] = 7", "fleet.free"),
    ("fleet.capacity.flat[0] = 9", "fleet.capacity"),
    ("fleet.free.flat[0] += 7; fleet.capacity.flat[0] += 7", "fleet.capacity"),
])
def test_what_the_compiler_lets_through_is_found_after_the_step(tmp_path, change, table):
    file = written(tmp_path, TAMPERS.format(change))
    changes = [(0.0, 1, True, 3), (0.5, 1, False, 0), (2.0, 1, True, 4)]  # what the fleet does itself is no offence
    fleet = fleet_of((2,), (2,), changes=changes)
    for check in (None, lambda *_: None):
        with pytest.raises(PolicyError) as error:
            simulate(plain((0, 1, 1), (5, 1, 1), (9, 1, 1)), fleet, find_scheduler(f"{file}:mine"), check=check)
        assert one_line(error).startswith(f"scheduler mine.py:mine changed {table}; a policy may only read it")


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)
@given(case=cases())
def test_a_policy_that_keeps_the_rules_is_never_accused(examples, case):
    scheduler = examples("last_fit+backfill")
    once, singly = simulate(*case, scheduler), simulate(*case, scheduler, check=lambda *_: None)
    assert engine_rows(once) == engine_rows(singly)


@pytest.mark.parametrize("change", ["memory.whole[task + 10**6, 0] = 1", "fleet.free[0, task + 10**9] > 0",
                                    "lanes.root[task - 10**9] = 3"])
def test_a_policy_that_leaves_its_arrays_is_named_when_it_is_checked(tmp_path, change):
    file = written(tmp_path, TAMPERS.replace("{0}", f"x = {change}" if ">" in change else change, 2)
                   .replace(f"x = {change}" if ">" in change else change, "pass", 1))
    with pytest.raises(PolicyError, match=r"scheduler mine\.py:pair raised IndexError: index is out of bounds"):
        simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler(f"{file}:pair", checked=True))


def test_checked_policies_decide_alike(examples, tmp_path):
    file = example_file(tmp_path)
    workload, fleet = plain(*TASKS, resources=TWO), fleet_of(*MACHINES, resources=TWO)
    for name in ("last_fit+backfill", "impatient"):
        checked = simulate(workload, fleet, find_scheduler(f"{file}:{name}", checked=True))
        assert engine_rows(checked) == engine_rows(simulate(workload, fleet, examples(name)))
