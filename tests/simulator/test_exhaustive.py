"""Every interleaving of tiny federations: what is walked, that nothing is left out, and that planted defects are found.

Handlers run as plain Python here, so that a defect can be planted in them.
"""
import msgspec
import pytest

from subak.cli.torture import exhaustive
from subak.federation.megha import roles, submitter, worker, worker_role
from subak.federation.megha.global_master import handlers as global_master
from subak.federation.megha.global_master.state import is_here
from subak.federation.megha.jobs import SUBMISSION_ENDED
from subak.federation.megha.local_master import handlers, leases, reports
from subak.federation.megha.local_master.state import ABSENT, LOST_MACHINE
from subak.simulator.exhaustive.check import check, length
from subak.simulator.exhaustive.explore import STUCK, Walk
from subak.simulator.exhaustive.leases import lease_bounds
from subak.simulator.exhaustive.proof import prove
from subak.simulator.exhaustive.roles.actor import Actor
from subak.simulator.exhaustive.roles.canonical import STATES, check_message_named, check_named
from subak.simulator.exhaustive.roles.configurations import CONFIGURATIONS, Configuration, named
from subak.simulator.exhaustive.roles.opening import open_configuration
from subak.simulator.exhaustive.script import play

TWICE, AGAIN = "a task runs twice at once", "a task that has finished runs again"
STRAY = "an attempt begins that is no task's"
QUIET = Configuration(name="quiet", beats=False)
DOUBLED_LEFT = Configuration(name="doubled", doubled=1, early=0)
LEASE = Configuration(name="lease", leases=1, early=0)
WORKER = Configuration(name="worker", crashes=1, crashing=("worker 0",), early=0)
TAKEOVER = Configuration(name="takeover", standby=True, takeovers=1, early=0)
FAILURE = Configuration(name="failure", failures=2, retries=1, early=0)
CANCEL = Configuration(name="cancel", cancelled=1, lost=1, early=0)
HOLDS = Configuration(name="holds", tasks=2, global_masters=2, holds=True, early=0)
MASTER = Configuration(name="master", crashes=1, crashing=("global master 0",), early=1)


def found(configuration, states_max=300_000):
    return check(configuration, states_max, compiled=False)


# -- the canonical form ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", range(1, 4))
def test_every_field_of_a_role_has_a_name_in_the_canonical_form(role):
    state = Actor(open_configuration(QUIET), role, 0, compiled=False).state
    check_named(state, STATES[type(state)])
    check_message_named()


def test_a_field_without_a_name_is_told():
    state = Actor(open_configuration(QUIET), 1, 0, compiled=False).state
    master = STATES[type(state)]["master"]
    task = {name: what for name, what in master["task"].items() if name != "doubted"}
    forgotten = {**STATES[type(state)], "master": {**master, "task": task}}
    with pytest.raises(KeyError, match="doubted"):
        check_named(state, forgotten)


def test_a_state_is_read_and_written_as_it_is():
    walk = Walk(msgspec.structs.replace(TAKEOVER, tasks=2), 5_000, handlers=False)
    walk.run()
    for slot, key in walk.moves.states:
        walk.moves.actors[slot].load(key)
        assert walk.moves.actors[slot].key() == key


def test_handlers_lead_to_the_same_states_compiled_and_in_plain_python():
    plain, compiled = (check(QUIET, 10_000, compiled=each) for each in (False, True))
    assert (plain.states, plain.moves, plain.complete, plain.wrong) == (compiled.states, compiled.moves, True, "")


# -- the walks ---------------------------------------------------------------------------------------------------------


def test_dropping_what_does_nothing_leaves_no_state_of_a_role_out():
    dropping, keeping = (Walk(QUIET, 100_000, handlers=False) for _ in range(2))
    keeping.tables.drops = False
    few, many = dropping.run(), keeping.run()
    assert [set(ids) for ids in dropping.moves.state_ids] == [set(ids) for ids in keeping.moves.state_ids]
    assert few.complete
    assert many.complete
    assert 5 * few.states < many.states


def test_what_was_dropped_and_matters_later_is_kept_in_the_next_round():
    report = found(DOUBLED_LEFT)
    assert report.rounds > 1
    assert (report.complete, report.wrong) == (True, "")


@pytest.mark.parametrize("configuration", [DOUBLED_LEFT, LEASE, WORKER, TAKEOVER, MASTER, FAILURE, CANCEL, HOLDS],
                         ids=lambda each: each.name)
def test_a_tiny_federation_is_clean(configuration):
    report = found(configuration)
    assert (report.complete, report.wrong) == (True, "")
    assert report.states > 500


def test_the_end_of_a_walk_that_was_cut_short_is_told():
    report = found(LEASE, states_max=5_000)
    assert not report.complete
    assert "more than 5,000 states" in report.why


def test_a_task_that_only_a_lost_message_tells_of_cannot_be_done_without_heartbeats():
    report = found(msgspec.structs.replace(QUIET, lost=1))
    assert report.wrong == STUCK
    assert report.script[-1].startswith("lost: ENDED, task 0")


def test_two_tasks_are_safe_whatever_the_network_does():
    proof = prove(msgspec.structs.replace(QUIET, tasks=2), 10_000, handlers=False)
    assert (proof.complete, proof.wrong, proof.cuts) == (True, "", 0)
    assert proof.states > 300


def test_every_configuration_has_a_name_of_its_own():
    assert len({each.name for each in CONFIGURATIONS}) == len(CONFIGURATIONS) >= 6
    assert all(named(each.name) == each for each in CONFIGURATIONS)


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_command_line_walks_a_configuration_and_says_what_it_saw(run):
    code, out, err = run("torture", "--exhaustive", "--config", "one-task")
    assert code == 0
    assert all("compiles" in line for line in err.splitlines())  # another process, which is waited for
    assert "one-task" in out
    assert "all were seen, and nothing is wrong in any." in out
    assert "stopped after 5.98438 s" in out


def test_a_walk_that_is_cut_short_says_so(run):
    code, out, _ = run("torture", "--exhaustive", "--config", "one-task", "--states-max", "20000")
    assert code == 0
    assert "one-task: not all states were seen: more than 20,000 states" in out
    assert "nothing is wrong in those that were seen" in out


def test_what_is_wrong_is_printed_with_the_way_to_it(run, monkeypatch):
    forget_which_starts_came(monkeypatch)
    monkeypatch.setattr(exhaustive, "check", lambda _, most, show: check(DOUBLED_LEFT, most, show, compiled=False))
    code, out, err = run("torture", "--exhaustive", "--config", "one-task")
    assert code == 1
    assert f"doubled: {AGAIN}, after 7 moves" in err
    assert "doubled: worker 0 <- START, task 0" in out


@pytest.mark.parametrize(("options", "said"), [
    (("--exhaustive", "--config", "x"), "there is no configuration 'x'; there are one-task, "),
    (("--exhaustive", "--seed", "3"), "--exhaustive: goes with --config and --states-max only"),
    (("--states-max", "9"), "--config, --states-max: go with --exhaustive only"),
])
def test_options_that_do_not_go_together_are_refused(run, options, said):
    code, _, err = run("torture", *options)
    assert code == 2
    assert said in err


# -- planted defects ---------------------------------------------------------------------------------------------------


def obey_every_epoch(monkeypatch):
    def obeys(workers, _topology, _rules, message, _out):
        worker.adopt(workers, message["machine"], message["epoch"])
        return True

    monkeypatch.setattr(worker, "obeys", obeys)


def forget_which_starts_came(monkeypatch):
    monkeypatch.setattr(worker, "is_new", lambda window, number: True)


def forget_which_requests_came(monkeypatch):
    monkeypatch.setattr(handlers, "is_new", lambda window, number: True)


def start_for_any_incarnation(monkeypatch):
    monkeypatch.setattr(worker, "is_for_this_incarnation", lambda workers, message: True)


def lose_attempts_before_a_report(monkeypatch):
    """Finding 19: a later incarnation of a worker loses its attempts at once, also those whose ends it has kept."""
    def on_alive(local, topology, rules, tasks, now, message, out):
        machine = message["machine"]
        if local.standing.active and message["epoch"] == local.standing.epoch and (
            local.machine[machine]["state"] != ABSENT
        ):
            leases.note_worker_incarnation(local, topology, rules, tasks, machine, message["incarnation"], now, out)
        reports.on_alive(local, topology, rules, tasks, now, message, out)

    monkeypatch.setattr(roles, "on_alive", on_alive)


def test_a_worker_has_stopped_before_it_is_declared_lost_whenever_timers_ring():
    runs_until, lost_from = lease_bounds(compiled=False)
    assert 5.0 < runs_until < 6.0 < lost_from < 7.0


def test_leases_without_margins_let_a_lost_worker_run(monkeypatch):
    """Finding 20: neither side reckons with timers that are late."""
    def without(handler):
        def handle(state, topology, rules, *rest):
            handler(state, topology, rules._replace(timer_slack=0.0), *rest)

        return handle

    monkeypatch.setattr(worker_role, "on_tick", without(worker_role.on_tick))
    monkeypatch.setattr(roles, "on_check", without(roles.on_check))
    runs_until, lost_from = lease_bounds(compiled=False)
    assert runs_until > lost_from


def lose_workers_unconfirmed(monkeypatch):
    """An active local master declares workers lost whatever its standby does, which may have taken over."""
    def on_check(local, topology, rules, *rest):
        leases.on_check(local, topology, rules._replace(standby=False), *rest)

    monkeypatch.setattr(roles, "on_check", on_check)


def never_list_a_lost_machine(monkeypatch):
    """A machine that was declared lost is never used again, whatever its worker says."""
    def on_alive(local, *rest):
        message = rest[-2]
        with monkeypatch.context() as patch:
            if local.machine[message["machine"]]["state"] == LOST_MACHINE:
                patch.setattr(reports, "list_machine", lambda *_: None)
            reports.on_alive(local, *rest)

    monkeypatch.setattr(roles, "on_alive", on_alive)


def take_what_a_former_incarnation_was_told(monkeypatch):
    """What was submitted to a former incarnation of a global master is believed by the next."""
    monkeypatch.setattr(global_master, "is_for_this_incarnation", lambda master, tasks, message, out: is_here(
        master, tasks, message["row"], message["task"], message["round"]))


def never_try_again(monkeypatch):
    """A task whose attempt failed stays where it is."""
    monkeypatch.setattr(roles, "on_try_again", lambda *_: None)


def say_nothing_of_what_has_ended(monkeypatch):
    """A submitter that has heard of an end once asks no more whether the row may be another's."""
    def on_resubmit(sender, jobs, message, out):
        if jobs.state[message["task"]] != SUBMISSION_ENDED:
            submitter.on_resubmit(sender, jobs, message, out)

    monkeypatch.setattr(roles, "on_resubmit", on_resubmit)


PLANTED = (
    (forget_which_starts_came, DOUBLED_LEFT, AGAIN, 7), (forget_which_requests_came, DOUBLED_LEFT, AGAIN, 9),
    (start_for_any_incarnation, LEASE, AGAIN, 12), (obey_every_epoch, TAKEOVER, AGAIN, 18),
    (lose_attempts_before_a_report, LEASE, AGAIN, 12), (never_list_a_lost_machine, LEASE, STUCK, 2),
    (take_what_a_former_incarnation_was_told, MASTER, STRAY, 21),
    (never_try_again, FAILURE, STUCK, 6), (say_nothing_of_what_has_ended, CANCEL, STUCK, 6),
    (lose_workers_unconfirmed, msgspec.structs.replace(TAKEOVER, workers=2), TWICE, 15),
)


@pytest.mark.parametrize(("plant", "configuration", "wrong", "moves"), PLANTED, ids=lambda each: getattr(
    each, "__name__", ""))
def test_a_planted_defect_is_found_by_the_shortest_way(monkeypatch, plant, configuration, wrong, moves):
    plant(monkeypatch)
    report = found(configuration)
    assert report.wrong == wrong
    assert length(report.script) == moves, "\n".join(report.script)


@pytest.mark.parametrize(("plant", "configuration", "wrong"), [each[:3] for each in PLANTED[:4]],
                         ids=lambda each: getattr(each, "__name__", ""))
def test_a_script_can_be_played_again_and_leads_to_nothing_wrong_without_the_defect(
    monkeypatch, plant, configuration, wrong
):
    with monkeypatch.context() as patch:
        plant(patch)
        script = "\n".join(found(configuration).script)
        assert play(configuration, script) == wrong
    try:
        assert play(configuration, script) == ""
    except ValueError as error:
        assert str(error).startswith("cannot happen there")  # without the defect it comes otherwise


def test_a_script_that_cannot_be_is_told():
    with pytest.raises(ValueError, match="cannot happen there: worker 0 <- TICK"):
        play(QUIET, "worker 0 <- TICK, machine 0, incarnation 7")
