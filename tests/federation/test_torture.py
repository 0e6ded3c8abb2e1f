"""Megha under change and faults: every invariant after every message; one role driven by itself; torture.

The roles are driven as plain Python here: compiling the whole federation takes minutes, and what is compiled is the
same source (tests/federation/test_federated_runs.py runs it).
"""
import dataclasses
import functools
import math

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from conditions import ONE_WAY, handlers
from golden_script import trace
from small import cases, fleet_of, plain
from subak.cli.app import app
from subak.errors import InputError, RunError
from subak.federation.megha import submitter, worker
from subak.federation.megha.global_master import backlog, phases
from subak.federation.megha.global_master import handlers as master_handlers
from subak.federation.megha.ledger import build_ledger
from subak.federation.megha.local_master import handlers as local_handlers
from subak.federation.megha.local_master.state import STATES as LOCAL_STATES
from subak.federation.megha.roles import SERVE
from subak.federation.messages import (
    EXECUTOR,
    EXITED,
    HANDLER,
    HAS_FAILED,
    KINDS,
    LAUNCH,
    LOCAL_MASTER,
    MESSAGE,
    NO_VICTIMS,
    NOBODY,
    PREEMPT,
    RAN_TOO_LONG,
    REFUSED,
    REPARTITION,
    START,
    STARTED,
    SUBMIT,
    WORKER,
)
from subak.federation.settings import Federation
from subak.placement.claims import TASK_BLOCKED, TASK_FINISHED, TASK_RUNNING, TASK_UNPLACEABLE, TASK_WAITING
from subak.policy import find_scheduler
from subak.records import Numbers
from subak.simulator.engine.state import LOOP_DONE, TIMELINE_LOST
from subak.simulator.federated import megha_setup
from subak.simulator.federated import simulate as federated_run
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.fault_plan import Crash, Cut, FaultPlan, random_plan, read_fault_plan
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.simulate import simulate
from subak.simulator.torture import torture
from subak.simulator.torture.by_hand import SEED_BY_HAND, case_of
from subak.simulator.torture.coverage import ALLOWED, Coverage
from subak.simulator.torture.folds import Broken
from subak.simulator.torture.invariants import Watch
from subak.simulator.torture.torture import Case, Stage, build, next_event, random_case, run_case, shrink
from test_golden import DASHES, SCRIPTS

# With that of seed 0 they take every row of the tables, and, with the golden scripts, let every guard decide both ways.
SEEDS = (22, 34, 37, 54, 56, 62, 63, 75, 82, 128, 157, 259, 405, 423, 536, 550, 577, 579, 595, 626, 705, 713, 868,
         *range(1, 13), 1011, 1029, 1042, 1045, 1051, 1053, 1075, 1092, 1133, 1134, 1205, 1213, 1231, 1232, 1316, 1374,
         1447, 1453, 1583, 1645, 1680, 1753, 2161, 2349, 3283, 4687, 5188, 32673, 43723, 51984, 62740, 70309)
IN_WORDS = {SEED_BY_HAND, *SEEDS[:12], 11}  # whose events are compared with those of another run
OF_THE_OTHERS = {"PROBE", "FETCH", "ASSIGN", "NOTHING_LEFT", "BOUNCED", "REJECTED", "ENQUEUE", "LONG_BEGUN",
                 "LONG_OVER", "STEAL", "STOLEN", "DEAL", "ADD_LOAD", "SET_LOAD",
                 "LOADS"}  # messages of Sparrow, Hawk, Eagle, Dodoor and Pigeon
AT_ONCE = Federation(global_masters=1, local_masters=1, delay=0.0, service_scale=0.0, heartbeat=math.inf)
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def run(workload, fleet, federation=AT_ONCE, faults=None, until=math.inf, on_event=lambda opened: None):
    """Run a federation event by event, with every invariant checked; return it as it ended."""
    opened = open_federated(workload, fleet, MEGHA, federation, 1, 1e6, until, faults, compiled=False)
    watch, why = Watch(opened.simulation, opened.network, opened.roles), None
    while why != LOOP_DONE:
        why, handled = next_event(opened)
        watch(handled, opened.due[0])
        if handled:
            on_event(opened)
    return opened


def statuses(opened):
    return opened.simulation.claims.status.tolist()


# -- machines that change, and the cap on preemptions ------------------------------------------------------------------


def test_machines_leave_join_and_shrink():
    workload = plain(*[(row / 2, 3, 2) for row in range(8)])
    changes = [(1.0, 0, False, 0), (2.0, 1, True, 1), (3.0, 2, True, 4), (6.0, 0, True, 2), (9.0, 1, True, 4)]
    fleet = fleet_of((4,), (4,), (2,), present=[True, True, False], changes=changes)
    for masters in (1, 2):
        federation = Federation(global_masters=masters, local_masters=masters, heartbeat=1.0)
        opened = run(workload, fleet, federation)
        assert statuses(opened) == [TASK_FINISHED] * 8
        assert opened.simulation.progress.attempts.max() > 1


def test_what_can_never_start_waits_and_the_run_ends():
    fleet = fleet_of((2,), (1,), changes=[(1.0, 0, False, 0)])
    opened = run(plain((0, 5, 2), (0, 2, 1)), fleet, Federation(global_masters=1, local_masters=1, heartbeat=1.0))
    assert statuses(opened) == [TASK_WAITING, TASK_FINISHED]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_task_is_preempted_at_most_so_often(most):
    case = Case(
        seed=1, machines=[(2, 1), (2, 1)], racks=["", ""], absent=[], changes=[],
        queues=["a", *["b"] * 5], stages=[Stage(job, (2, 0)) for job in range(6)],
        tasks=[(0, 0.0, 30.0)] * 2 + [(job, 2.0 * job, 1.0) for job in range(1, 6)], plan=None,
        settings=Federation(global_masters=2, local_masters=1, heartbeat=0.5, preemption="strict", preemptions_max=most,
                            shares={"a": 0.1, "b": 0.9}))
    opened = run(*build(case), case.settings)
    assert (states_by_task(opened.roles)["preempted"] <= most).all()
    assert bool(states_by_task(opened.roles)["preempted"].max()) == bool(most)
    assert statuses(opened) == [TASK_FINISHED] * 7


def test_a_task_is_preempted_for_the_thirty_thousandth_time_and_not_again():
    """The tasks of a have been preempted 29,999 times when they are submitted; b wants their machines five times."""
    settings = Federation(global_masters=2, local_masters=1, heartbeat=0.5, preemption="strict", preemptions_max=30_000,
                          shares={"a": 0.1, "b": 0.9})
    case = Case(
        seed=1, machines=[(2, 1), (2, 1)], racks=["", ""], absent=[], changes=[],
        queues=["a", *["b"] * 5], stages=[Stage(job, (2, 0)) for job in range(6)],
        tasks=[(0, 0.0, 30.0)] * 2 + [(job, 2.0 * job, 1.0) for job in range(1, 6)], plan=None, settings=settings)
    told = []

    def note(opened):
        message = opened.due[0]
        if message["kind"] == SUBMIT and message["task"] < 2:
            opened.roles.masters[message["to"]].task[message["row"]]["preempted"] = 29_999
        elif message["kind"] in (LAUNCH, REPARTITION) and message["task"] < 2:
            told.append(int(message["preempted"]))

    opened = run(*build(case), settings, on_event=note)
    assert sorted(set(told)) == [29_999, 30_000]
    assert states_by_task(opened.roles)["preempted"][:2].tolist() == [30_000, 30_000]
    assert statuses(opened) == [TASK_FINISHED] * 7


def test_a_refused_preemption_waits_for_the_next_heartbeat_however_many_there_were():
    """b and c want one machine at 2 s: c finds its task gone, and asks again when its master hears a heartbeat."""
    settings = Federation(global_masters=3, local_masters=1, heartbeat=0.5, preemption="strict",
                          shares={"a": 0.0, "b": 0.5, "c": 0.5})
    case = Case(
        seed=1, machines=[(2, 1), (2, 1)], racks=["", ""], absent=[], changes=[],
        queues=["a", "b", "c"], stages=[Stage(job, (2, 0)) for job in range(3)],
        tasks=[(0, 0.0, 30.0)] * 2 + [(1, 2.0, 1.0), (2, 2.0, 1.0)], plan=None, settings=settings)
    asked, heard = [], []

    def note(opened):
        message, masters = opened.due[0], opened.roles.masters
        if not heard:
            heard.append(2**40)
            for master in masters:
                master.counts.beats = heard[0]
        if message["kind"] == REFUSED and message["reason"] == NO_VICTIMS:
            assert masters[message["to"]].task[message["row"]]["tried"] > heard[0]
        if message["kind"] == PREEMPT and message["task"] == 3:
            asked.append(opened.simulation.clock.now)

    assert statuses(run(*build(case), settings, on_event=note)) == [TASK_FINISHED] * 4
    assert len(asked) == 2
    assert asked[0] < 2.1
    assert 2.5 < asked[1] < 2.6


@pytest.mark.parametrize(("retry", "said"), [(math.inf, 0), (1.0, 1)])
def test_where_messages_may_be_lost_a_worker_says_that_an_attempt_has_begun(retry, said):
    """SUBMIT comes at 0.01 s, LAUNCH at 0.02, START at 0.03, and is not repeated; the attempt ends at 5.03 s."""
    running = []

    def note(opened):
        if opened.due[0]["kind"] == STARTED:
            row = opened.roles.locals[0].rows.row[0]
            running.append((LOCAL_STATES[row["state"]], float(row["since"])))

    federation = msgspec.structs.replace(AT_ONCE, delay=0.01, heartbeat=1.0, retry=retry)
    opened = run(plain((0, 5, 1)), fleet_of((1,)), federation, on_event=note)
    assert opened.network.handled[[START, STARTED]].tolist() == [1, said]
    assert running == [("RUNNING", pytest.approx(0.04))] * said


# -- one role by itself ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [LOCAL_MASTER, WORKER])
def test_a_role_driven_message_by_message_answers_as_in_the_simulator(role):
    """What a role heard in a run with faults is told to another one, at rest, which says and becomes the same."""
    case = random_case(7)
    heard = []

    def note(opened):
        message = opened.due[0]
        if HANDLER[message["kind"]] == role and not (role == LOCAL_MASTER and message["to"] != 0):
            answers = opened.out.row[: int(np.argmax(opened.out.row["kind"] == -1))].copy()
            heard.append((float(opened.simulation.clock.now), message.copy(), answers))

    plan = FaultPlan(seed=3, loss=0.1, duplication=0.2, reordering=0.2, faults_until=4.0)
    federation = msgspec.structs.replace(case.settings, retry=0.5, lease=4.0, standby=False, local_masters=1)
    workload, fleet = build(msgspec.structs.replace(case, absent=[], changes=[]))
    first = run(workload, fleet, federation, plan, until=12.0, on_event=note)
    other = open_federated(workload, fleet, MEGHA, federation, 1, 1e6, 12.0, plan, compiled=False)
    out = other.out
    assert len(heard) > 100
    for now, message, answers in heard:
        out.counts.posted = 0
        if message["kind"] == EXITED:
            message["handle"] = worker.find_attempt(other.roles.workers.rows, message["machine"], message["task"], -1)
        with np.errstate(over="ignore"):
            other.due[0] = message
            SERVE[role](other.services.tables[role].state, now, 1)
        assert out.row[: out.counts.posted].tolist() == answers.tolist()
    for one, two in zip(state_of(first.roles, role), state_of(other.roles, role), strict=True):
        assert np.array_equal(one, two)


def state_of(roles, role):
    """The tables of a role, as arrays that can be compared."""
    state = roles.locals if role == LOCAL_MASTER else roles.workers
    return [array for array in arrays(state) if array.dtype != MESSAGE]


def arrays(state):
    if isinstance(state, tuple | list):
        return [array for each in state for array in arrays(each)]
    if isinstance(state, Numbers):
        return [state.array]
    return [state] if isinstance(state, np.ndarray) else []


# -- faults ------------------------------------------------------------------------------------------------------------


def test_a_plan_is_read_from_toml(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('seed = 7\nloss = 0.1\nlate_max = 2\nfaults_until = 60\n'
                    '[[cut]]\nbetween = ["global master 0", "workers"]\nfrom = 5\nuntil = 12\n'
                    '[[crash]]\nrole = "local master 0"\nat = 20\nrestart_after = 4\n')
    plan = read_fault_plan(path)
    assert plan == FaultPlan(
        seed=7, loss=0.1, late_max=2.0, faults_until=60.0,
        cut=[Cut(between=["global master 0", "workers"], begin=5.0, until=12.0)],
        crash=[Crash(role="local master 0", at=20.0, restart_after=4.0)])
    assert plan.over_at == 60.0


@pytest.mark.parametrize(("text", "said"), [
    ("loss = 2", "loss: must be a probability from 0 to 1, not 2"),
    ("loss = 1", "loss: must be less than 1 where it never ends"),
    ("late_max = -1", "late_max: must be 0 seconds or more, not -1"),
    ("lost = 0.1", "unknown field `lost`"),
    ('[[cut]]\nbetween = ["workers"]', "cut.between: must name two sides, not 1"),
    ('[[cut]]\nbetween = ["workers", "submitter"]\nfrom = 3\nuntil = 3', "cut.until: must be after its beginning"),
    ('[[crash]]\nrole = "worker 0"\nat = -1', "crash.at: must be 0 seconds or more"),
])
def test_a_plan_that_cannot_be_is_refused(tmp_path, text, said):
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        read_fault_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize(("role", "said"), [
    ("global master 3", "there is no global master 3; numbers are 0 to 0"),
    ("standby 0", "this federation has no standby"), ("worker 9", "numbers are 0 to 0"),
    ("king", "must be submitter, or one of"), ("submitter", "never crashes"),
])
def test_a_role_that_is_not_there_is_refused(role, said):
    with pytest.raises(InputError, match=said):
        run(plain((0, 1, 1)), fleet_of((1,)), AT_ONCE, FaultPlan(crash=[Crash(role=role, at=1.0)]))


def test_faults_befall_only_federations_that_mend():
    for name, said in (("first-fit", "is no federation"), ("sparrow", "only megha and central")):
        with pytest.raises(InputError, match=said):
            simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler(name), faults=FaultPlan())


def test_a_random_plan_comes_from_its_seed():
    same = {"global_masters": 2, "clusters": 2, "machines": 5, "standby": True, "over_at": 9.0}
    assert random_plan(5, **same) == random_plan(5, **same) != random_plan(6, **same)
    assert all(random_plan(seed, **same).over_at == 9.0 for seed in range(50))


@settings(quick, max_examples=4)
@given(case=cases(endless=False, task_most=15), seed=st.integers(0, 1000),
       fairness=st.sampled_from(["off", "strict", "paper"]), standby=st.booleans())
def test_invariants_hold_on_drawn_cases(case, seed, fairness, standby):
    workload, fleet = case
    plan = random_plan(seed, global_masters=2, clusters=1, machines=len(fleet.machines), standby=standby, over_at=3.0)
    plan = msgspec.structs.replace(plan, crash=[crash for crash in plan.crash if math.isfinite(crash.restart_after)])
    federation = Federation(global_masters=2, local_masters=1, heartbeat=1.0, retry=0.5, lease=4.0, standby=standby,
                            preemption=fairness)
    opened = run(workload, fleet, federation, plan, until=15.0)
    assert np.isin(statuses(opened), (TASK_FINISHED, TASK_WAITING, TASK_BLOCKED, TASK_RUNNING, TASK_UNPLACEABLE)).all()


def test_a_gang_whose_first_task_has_ended_goes_on_after_its_master_lost_its_memory():
    case = Case(
        seed=1, machines=[(2, 2), (2, 2)], racks=["", ""], absent=[], changes=[], queues=["a"],
        stages=[Stage(0, (1, 1), gang=True)], tasks=[(0, 0.0, 1.0), (0, 0.0, 30.0)], plan=None,
        settings=Federation(global_masters=1, local_masters=1, heartbeat=10.0))
    plan = FaultPlan(crash=[Crash(role="global master 0", at=20.0, restart_after=1.0),
                            Crash(role="worker 0", at=25.0, restart_after=1.0),
                            Crash(role="worker 1", at=25.0, restart_after=1.0)])
    opened = run(*build(case), case.settings, plan)
    assert statuses(opened) == [TASK_FINISHED] * 2
    assert opened.simulation.progress.attempts.tolist() == [1, 2]


def test_a_task_whose_end_nobody_remembers_runs_again_and_the_first_attempt_is_among_the_lost():
    plan = FaultPlan(cut=[Cut(between=["submitter", "global masters"], begin=0.5, until=10.0)],
                     crash=[Crash(role="global master 0", at=5.0, restart_after=1.0)])
    workload, fleet = plain((0, 1, 1)), fleet_of((1,))
    opened = run(workload, fleet, Federation(global_masters=1, local_masters=1, heartbeat=1.0), plan)
    sim = opened.simulation
    assert statuses(opened) == [TASK_FINISHED]
    assert sim.progress.attempts.tolist() == [2]
    assert sim.progress.start[0] > 10.0
    assert (sim.record.rows[:, TIMELINE_LOST].sum() + sim.record.current[TIMELINE_LOST]) == 1


def test_measures_end_with_the_last_thing_that_happened_to_a_task():
    plan = FaultPlan(crash=[Crash(role="global master 0", at=5.0, restart_after=1.0)])
    opened = run(plain((0, 1, 1), (6, 2, 1)), fleet_of((1,)), Federation(global_masters=1, local_masters=1), plan)
    ended = (opened.simulation.progress.start + opened.simulation.tasks.run_time).max()
    assert statuses(opened) == [TASK_FINISHED] * 2
    assert opened.simulation.clock.now == ended


def test_there_is_always_room_for_more_messages(monkeypatch):
    workload, fleet = plain(*[(0, 1, 1)] * 12), fleet_of((4,), (4,))
    federation = Federation(global_masters=6, local_masters=2, delay=3.0, heartbeat=0.2)
    before = run(workload, fleet, federation).simulation.progress.start.tolist()
    small = dataclasses.replace(MEGHA, outbox=lambda _: (64,) * len(SERVE))
    for name in ("SLOTS_PER_TASK", "SLOTS_PER_MACHINE", "SLOTS"):
        monkeypatch.setattr(federated_run, name, 1)
    opened = open_federated(workload, fleet, small, federation, 1, 1e6, math.inf, compiled=False)
    slots = opened.network.slot.size
    while next_event(opened)[0] != LOOP_DONE:
        pass
    assert opened.simulation.progress.start.tolist() == before
    assert opened.network.slot.size > slots
    monkeypatch.setattr(federated_run, "SLOTS_MAX", 8)
    opened = open_federated(workload, fleet, small, federation, 1, 1e6, math.inf, compiled=False)
    with pytest.raises(RunError, match="more than 8 messages are on their way at"):
        while next_event(opened)[0] != LOOP_DONE:
            pass


# -- torture -----------------------------------------------------------------------------------------------------------


@functools.cache
def tortured(seed):
    """How a case ended, what it covered, and its events IN_WORDS; that of SEED_BY_HAND is written by hand."""
    coverage, lines = Coverage(), []
    with conditions():
        return run_case(case_of(seed), coverage, lines.append if seed in IN_WORDS else None), coverage, lines


@functools.cache
def conditions():
    return handlers()


@pytest.mark.parametrize("seed", [SEED_BY_HAND, *SEEDS])
def test_torture_is_clean(seed):
    ending, *_ = tortured(seed)
    assert not ending.failure, f"seed {seed}: {ending.failure}"


def test_torture_takes_every_row_of_the_transition_tables():
    coverage = Coverage()
    for seed in (SEED_BY_HAND, *SEEDS):
        coverage.merge(tortured(seed)[1])
    assert coverage.missing() == []
    handled = {name for name, role in zip(KINDS, HANDLER, strict=True) if role != EXECUTOR}
    assert handled - set(coverage.kinds) == OF_THE_OTHERS


def test_every_guard_decides_both_ways_but_those_of_which_it_is_known_why_not():
    for seed in (SEED_BY_HAND, *SEEDS):
        tortured(seed)
    with conditions():
        for path in SCRIPTS:
            trace(path.read_text(encoding="utf-8").partition(DASHES)[0])
    assert len(conditions().found) > 700
    assert set(conditions().unseen()) == set(ONE_WAY)


def test_the_same_seed_is_the_same_torture():
    again = []
    run_case(random_case(11), on_event=again.append)
    assert tortured(11)[2] == again != []


@pytest.mark.parametrize("seed", [SEED_BY_HAND, *SEEDS[:12]])
def test_it_makes_no_difference_how_many_places_of_a_ledger_are_in_use_at_first(monkeypatch, seed):
    """As much is told of a ring that grows as of one that has gone over all places from the beginning."""
    grown, gone_over, rings = tortured(seed)[2], [], []
    monkeypatch.setattr(megha_setup, "build_ledger",
                        lambda places, ring: rings.append(ring) or build_ledger(places, places))
    run_case(case_of(seed), on_event=gone_over.append)
    assert grown == gone_over != []
    assert set(rings) == {4}


def an_epoch_is_not_looked_at(monkeypatch):
    """Workers obey deposed masters."""

    def obeys(workers, topology, rules, message, out):
        worker.adopt(workers, message["machine"], message["epoch"])
        return True

    monkeypatch.setattr(worker, "obeys", obeys)


def a_window_is_forgotten(monkeypatch):
    """Doubled requests and starts are carried out again."""
    for module in (local_handlers, worker):
        monkeypatch.setattr(module, "is_new", lambda window, number: True)


def a_row_is_given_back_too_early(monkeypatch):
    """A global master says that it needs a row no more while the task is in a lane."""

    def say_done(master, tasks, task, out):
        backlog_say_done(master, tasks, task, out)
        out.row[out.counts.posted - 1]["count"] = 0

    backlog_say_done = backlog.say_done
    for module in (backlog, phases, master_handlers):
        monkeypatch.setattr(module, "say_done", say_done)


def ends_of_a_dead_master_are_kept_with_those_of_others(monkeypatch):
    """A local master forgets what ended in the order in which it did, whoever is to note it."""

    def forget_noted(local, owner, out):
        if (local.asker["known"] >= local.asker["known"][owner]).all():
            forget(local, owner, out)

    forget = local_handlers.forget_noted
    monkeypatch.setattr(local_handlers, "forget_noted", forget_noted)


def there_is_no_bound_on_retries(monkeypatch):
    """What failed is tried again for ever."""
    monkeypatch.setattr(submitter, "may_try_again", lambda one, jobs, row: (
        one.submission[row]["reason"] in (HAS_FAILED, RAN_TOO_LONG) and one.tasks.gang[row] == NOBODY))


@pytest.mark.parametrize(("plant", "seeds"), [
    (an_epoch_is_not_looked_at, (159,)), (a_window_is_forgotten, (1, 2)), (a_row_is_given_back_too_early, (1, 2)),
    (ends_of_a_dead_master_are_kept_with_those_of_others, (2,)), (there_is_no_bound_on_retries, (0, 1))])
def test_a_planted_defect_is_found(plant, seeds, monkeypatch):
    """Each is found within the first 160 seeds; these are quick about it. Without it they are at rest much sooner."""
    monkeypatch.setattr(torture, "EVENTS_MAX", 4_000)
    plant(monkeypatch)
    assert any(run_case(random_case(seed)).failure for seed in seeds)


def test_doubts_are_settled_though_nothing_more_is_told():
    """Found by torture: with a tiny outbox the last of them waited for news that never came."""
    assert run_case(random_case(21388)).failure == ""


def test_a_failure_is_made_as_small_as_it_can_be(monkeypatch):
    def check_owners(watch):
        if len(watch.queue) > 3:
            raise Broken("(c) more than three tasks")

    monkeypatch.setattr(Watch, "check_owners", check_owners)
    small = shrink(random_case(3))
    assert small.failure == "at 0 s: (c) more than three tasks"
    assert len(small.case.tasks) == 4
    assert len(small.case.machines) == small.case.settings.local_masters == small.case.settings.global_masters == 1


@pytest.mark.parametrize(("row", "may", "said"), [
    (("START", "new"), ("new",), "(j) START made new RUNNING; it may be new"),
    (("TOOK", "FLYING"), ("HELD",), "(j) TOOK made FLYING RUNNING; it may be HELD, LEAVING"),
    (("EXITED", "RUNNING"), None, "(j) EXITED made RUNNING ENDED; it may be RUNNING"),
])
def test_what_the_table_does_not_say_is_noticed(row, may, said, monkeypatch):
    if may is None:
        monkeypatch.delitem(ALLOWED, row)
    else:
        monkeypatch.setitem(ALLOWED, row, may)
    assert run_case(random_case(1)).failure.endswith(said)


def test_a_broken_view_is_noticed():
    opened = open_federated(plain((0, 1, 1)), fleet_of((2,)), MEGHA, AT_ONCE, 1, 1e6, math.inf, compiled=False)
    watch = Watch(opened.simulation, opened.network, opened.roles)
    opened.roles.masters[0].fleet.free[0, 0] -= 1
    with pytest.raises(Broken, match=r"\(d\) global master 0 believes machine 0 has \[1\] free"):
        watch.check_all()


def test_the_command_says_what_was_covered_and_replays_a_seed():
    done = CliRunner().invoke(app, ["torture", "--seeds", "3", "--coverage"])
    assert done.exit_code == 0, done.output
    assert "ABANDON on PENDING" not in done.output  # which seed 0 takes
    assert "3 drawn federations and one by hand" in done.output.replace("\n", " ")
    assert "every invariant held after every message" in done.output.replace("\n", " ")
    done = CliRunner().invoke(app, ["torture", "--seed", "2"])
    assert done.exit_code == 0, done.output
    assert "submitter <- ARRIVE, task 0" in done.output


def test_the_command_fails_with_the_seed_and_the_messages(monkeypatch):
    def check_owners(watch):
        raise Broken("(c) planted")

    monkeypatch.setattr(Watch, "check_owners", check_owners)
    done = CliRunner().invoke(app, ["torture", "--seeds", "3", "--first", "1", "--no-shrink"])
    assert done.exit_code == 1
    assert "seed 0 fails at 0 s: (c) planted" in done.output
    assert "subak torture --seed 0" in done.output
