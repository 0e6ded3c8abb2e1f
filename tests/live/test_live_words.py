"""What people are told: one code for one cause, signals by name, a machine's real capacity, exit codes of a table."""
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from subak import exit_codes
from subak.errors import SubakError
from subak.federation.megha.global_master.hold_back import want
from subak.federation.megha.global_master.state import PHASE_WAITING
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import NOBODY
from subak.fleet.state import LOG
from subak.live.agent.attempts.attempt import HALTED, STOPPED, Ending, Exited
from subak.live.agent.attempts.codes import code_words, signal_of
from subak.live.api.errors import BY_CODE
from subak.live.api.models import QueueView
from subak.live.jobfile.spec import Constraint
from subak.live.role.facts import JOB as JOB_FACT
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.frames import Ask
from subak.live.role.global_master.book import ON_DISK, OUTCOME_WORDS
from subak.live.role.global_master.history import BEGAN, Happening
from subak.live.service.explaining import explanation_of
from subak.live.service.resources import machine_view, running_on
from subak.live.service.views import ended_job, event_view, open_job, task_view
from subak.live.service.waiting import Waiting, never_fit
from subak.live.torture.case import JobCase
from subak.report.number_text import counted
from test_live_roles import JOB, number_of, world_of

FILE = SimpleNamespace(masters=lambda: {0: SimpleNamespace(name="g0")},
                       clusters=lambda: {0: SimpleNamespace(name="west")})
ROOT = Path(__file__).parents[2]


def running_task(seconds=8.0):
    """Return a world in which a task runs, its role, and the only job."""
    world = world_of(jobs=[JobCase(2.5, "client", JOB, (((seconds, 0), (1.0, 0)),))])
    world.until(4.0)
    role = world.masters[0].role
    (job,) = role.book.of_number.values()
    return world, role, job


def asked(world, role, words, task=NOBODY):
    assert role.ask(Ask(1, words, number_of(world), task))
    world.call_soon(world.masters[0])
    world.until(world.now + 1.0)


def known_of(role, job):
    return open_job("g0-0", job, role.book, role.master)


@pytest.mark.parametrize(("words", "why", "by"), [
    ("drain", "preempted because its machine is drained", ("an operator", "its machine is drained")),
    ("preempt", "preempted by an operator", ("an operator", "on request")),
])
def test_who_takes_a_machine_away_is_told_apart(words, why, by):
    world, role, job = running_task()
    task = int(role.book.now[job.places]["number"][0])
    asked(world, role, words, task if words == "preempt" else NOBODY)
    known = known_of(role, job)
    lost = [number for number, event in enumerate(known.events) if event.what == "attempt lost"]
    assert [event_view(known, number, {}, role.queues).why for number in lost] == [why]
    found = explanation_of(role, FILE, known, 0, {})
    assert (found.preempted_by, found.preempted_why) == by
    view = task_view(known, 0, {})
    assert (view.preempted, view.lost) == (1, 0)


def test_a_cordoned_machine_shows_what_it_has_and_what_is_used():
    world, role, _ = running_task()
    machine = number_of(world)

    def seen():
        fact = read_machine(role.facts.known[MACHINE, machine].body)
        return machine_view(role, FILE, machine, fact, running_on(role))

    before = seen()
    assert (before.capacity, before.used) == ({"cpu": 1000, "memory": 1024}, {"cpu": 1000, "memory": 0})
    asked(world, role, "cordon")
    during = seen()
    assert (during.cordoned, during.state) == (True, "ready")
    assert (during.capacity, during.used) == (before.capacity, before.used)
    world.until(20.0)
    assert seen().used == {"cpu": 0, "memory": 0}


def test_the_signal_that_ended_a_cancelled_task_is_named():
    world, role, job = running_task()
    task = job.number
    role.cancel(task, None)
    world.call_soon(world.masters[0])
    ended = []
    plain = role.book.drop_of
    role.book.drop_of = lambda job: (ended.append(plain(job)), ended[-1])[1]
    world.until(8.0)
    ((rows, _),) = ended
    known = ended_job("g0-0", job.stored, job.spec, rows, job.history.events)
    view = task_view(known, 0, {})
    assert (view.outcome, view.exit_code, view.signal) == ("cancelled", None, "SIGTERM")
    assert event_view(known, len(known.events) - 1, {}, role.queues).why == (
        "cancelled by a user, and signal SIGTERM ended it")


@pytest.mark.parametrize(("code", "exit_code", "signal", "words"), [
    (137, 137, "", "exit code 137"), (-9, None, "SIGKILL", "signal SIGKILL"), (-15, None, "SIGTERM", "signal SIGTERM"),
    (1, 1, "", "exit code 1")])
def test_a_signal_is_no_exit_code(code, exit_code, signal, words):
    _, role, job = running_task()
    rows = role.book.now[job.places].copy()
    rows["code"], rows["outcome"], rows["attempts"] = code, OUTCOME_WORDS.index("failed"), 1
    view = task_view(ended_job("g0-0", job.stored, job.spec, rows.astype(ON_DISK), []), 0, {})
    assert (view.exit_code, view.signal) == (exit_code, signal)
    assert view.reason.endswith(f"with {words}")


@pytest.mark.parametrize(("reason", "what", "why"), [
    (STOPPED, "attempt stopped", "its machine was stopped"), (HALTED, "attempt lost", "its machine was lost")])
def test_a_machine_that_was_stopped_is_told_from_one_that_was_lost(reason, what, why):
    """`subak down` stops what runs: whoever looked at the history afterwards feared a crash."""
    world, role, job = running_task()
    machine = next(each for each in world.machines.all if each.agent is not None and each.agent.list())
    world.machines.carry_out = lambda *_: None  # the next attempt need not begin
    (running,) = machine.agent.list()
    machine.process.role.on_events([Exited(running.key, Ending(reason))])
    world.call_soon(machine.process)
    world.until(world.now + 1.0)
    known = known_of(role, job)
    (event,) = [event_view(known, number, {}, role.queues) for number, event in enumerate(known.events)
                if event.what.startswith("attempt")]
    assert (event.what, event.why) == (what, why)


@pytest.mark.parametrize(("outcome", "exit_code"), [("cancelled", None), ("finished", 0)])
def test_a_code_of_0_is_that_of_a_task_that_finished(outcome, exit_code):
    _, role, job = running_task()
    rows = role.book.now[job.places].copy()
    rows["code"], rows["outcome"], rows["attempts"] = 0, OUTCOME_WORDS.index(outcome), 1
    assert task_view(ended_job("g0-0", job.stored, job.spec, rows.astype(ON_DISK), []), 0, {}).exit_code == exit_code


def waiting_behind_another(**changes):
    """Return a global master, and what it knows of a job that waits while another has all cores of the only machine."""
    stages = [structs.replace(JOB.stages[0], command=("job", str(number)), **each)
              for number, each in enumerate([{}, changes])]
    jobs = [JobCase(2.0 + number, f"client {number}", structs.replace(JOB, stages=(stage,)),
                    (((50.0, 0),),) * stage.tasks) for number, stage in enumerate(stages)]
    world = world_of(jobs=jobs)
    world.until(5.0)
    role = world.masters[0].role
    job = [*role.book.of_number.values()][-1]
    return role, known_of(role, job)


def explained(**changes):
    """Return why that job waits."""
    role, known = waiting_behind_another(**changes)
    return explanation_of(role, FILE, known, 0, {})


def reason(role, known, waiting=(1,)):
    return Waiting(role, FILE).reason(known, waiting, has_pauses=False)


@pytest.mark.parametrize(("changes", "words"), [
    ({}, "waits for machines"),  # its queue is over its share, but nobody else waits
    ({"tasks": 2, "gang": True}, "waits for machines"),
    ({"resources": {"cpu": 1001}}, "no machine is large enough: it asks for cpu 1001m, the largest machine has cpu 1"),
    ({"resources": {"cpu": 1, "memory": 2048}},
     "no machine is large enough: it asks for memory 2Gi, the largest machine has memory 1Gi"),
    ({"constraints": (Constraint("rack", "=", "z"),)}, "no machine meets its constraints"),
])
def test_a_job_that_waits_has_a_reason(changes, words):
    assert reason(*waiting_behind_another(**changes)) == words


@pytest.mark.parametrize(("others", "words"), [
    ({}, "waits for machines"), ({"other": 1}, "waits for machines; its queue is over its share"),
    ({"": 3, "QUEUE": 3, "QUEUE/below": 3, "other": 0}, "waits for machines"),
])
def test_a_share_is_only_spoken_of_where_others_wait(others, words, monkeypatch):
    role, known = waiting_behind_another()
    own = known.spec.queue
    views = [QueueView(path=path.replace("QUEUE", own), weight=1.0, guarantee=0.5, dominant_share=0.0, waiting=count)
             for path, count in others.items()]
    over = QueueView(path=own, weight=1.0, guarantee=0.5, dominant_share=1.0, waiting=1)
    monkeypatch.setattr("subak.live.service.waiting.queue_views", lambda *_: [*views, over])
    assert reason(role, known) == words


def test_the_reason_of_a_job_is_that_of_the_tasks_that_wait():
    role, known = waiting_behind_another()
    assert Waiting(role, FILE).reason(known, (0,), has_pauses=True) == "is tried again after a pause"
    assert Waiting(role, FILE).reason(known, (0,), has_pauses=False) == ""
    role.master.total[:] = 0  # as if the other job were another queue's
    assert reason(role, known) == "waits for machines"
    fleet, number = role.master.fleet, int(np.flatnonzero(role.master.listed)[0])
    fleet.free[:, number] = fleet.capacity[:, number]
    assert reason(role, known) == "waits for its turn"
    role.master.total[0, 0] = 501  # of 1,000, where each of two queues is due half
    assert reason(role, known) == "its queue is over its share"
    role.master.total[0, 0] = 500
    assert reason(role, known) == "waits for its turn"
    fleet.capacity[:, number] -= 1  # its fact says otherwise
    assert reason(role, known) == "the machines that are large enough take no tasks now"
    fleet.capacity[:, number] = 0
    assert reason(role, known) == "no machine takes tasks now"


def test_a_gang_that_has_room_for_one_waits_for_all():
    role, known = waiting_behind_another(tasks=2, gang=True)
    number = int(np.flatnonzero(role.master.listed)[0])
    role.master.fleet.free[:, number] = role.master.fleet.capacity[:, number]
    assert reason(role, known, (2,)) == "waits for room for its whole gang"


def test_what_no_machine_is_large_enough_for_is_known_at_once():
    """A machine that takes no tasks now counts; one that is not known yet is no reason to warn."""
    role, _ = waiting_behind_another()
    number = int(np.flatnonzero(role.master.listed)[0])

    def warned(*stages):
        return never_fit(role, structs.replace(JOB, stages=tuple(
            structs.replace(JOB.stages[0], name=f"s{place}", resources=resources)
            for place, resources in enumerate(stages))))

    words = "it can never run: it asks for cpu 64, the largest machine has cpu 1"
    assert warned({"cpu": 1000}) == ()
    assert warned({"cpu": 64_000}) == (words,)
    assert warned({"cpu": 1}, {"cpu": 1001, "memory": 2048}) == (
        "stage s1 can never run: it asks for cpu 1001m, memory 2Gi, the largest machine has cpu 1, memory 1Gi",)
    role.master.fleet.capacity[:, number] = 0
    assert (warned({"cpu": 1000}), warned({"cpu": 64_000})) == ((), (words,))
    for fact in [key for key in role.facts.known if key[0] == MACHINE]:
        del role.facts.known[fact]
    assert warned({"cpu": 64_000}) == ()


def test_it_is_said_of_each_demand_on_how_many_machines_it_fails():
    full, = explained().shortages
    assert (full.test, full.what, full.machines, full.of) == ("resource", "cpu", 1, 1)
    assert full.words == "1 of 1 machines of west have less than 1 cpu free now"
    small, = explained(resources={"cpu": 1001}).shortages
    assert small.words == "1 of 1 machines of west have less than 1001m cpu even when they are empty"
    here, = explained(constraints=(Constraint("rack", "=", "z"),), resources={"cpu": 0}).shortages
    assert (here.test, here.words) == ("constraint", "1 of 1 machines of west do not meet its constraints")


def test_machines_that_are_held_back_are_named_with_the_job_that_they_are_for():
    """The only machine is held back for the job itself; then for who stands in another lane."""
    world, role, job = running_task()
    holding, number, task = role.master.holding, number_of(world), int(role.book.now[job.places]["number"][0])
    role.master.task["phase"][role.jobs.row[job.places]] = PHASE_WAITING
    role.master.fleet.free[:, number] = role.master.fleet.capacity[:, number]
    want(role.master.fleet, holding, 0, number, task)
    holding.holder[number] = 0
    holding.search.for_lane = role.tasks.lane[role.jobs.row[job.places][0]]
    holding.held_for[number], holding.held_at[number] = task, role.now - 12.4
    mine = explanation_of(role, FILE, known_of(role, job), 0, {}).shortages[0]
    assert (mine.test, mine.machines) == ("held-back", 1)
    assert mine.words.startswith("1 machines are held back for it, or for what stands before it")
    holding.search.for_lane = NOBODY
    found = explanation_of(role, FILE, known_of(role, job), 0, {}).shortages[0]
    assert (found.test, found.cluster, found.machines, found.of) == ("held-back", "west", 1, 1)
    assert found.words == "1 of 1 machines of west have room, and are held back for g0-1 for 12 s"


def test_a_gang_says_with_how_many_others_it_starts():
    gang = explained(tasks=3, gang=True)
    assert [each.test for each in gang.shortages] == ["resource", "gang"]
    assert gang.shortages[1].words == "it starts together with 2 others, all at once"
    assert gang.words == f"it waits: {gang.shortages[0].words}"


def test_a_task_that_runs_says_so_and_one_that_fits_that_others_are_served_before():
    world, role, job = running_task()
    assert explanation_of(role, FILE, known_of(role, job), 0, {}).words == "it is running"
    role.master.task["phase"][role.jobs.row[job.places]] = PHASE_WAITING
    role.master.fleet.free[:, number_of(world)] = role.master.fleet.capacity[:, number_of(world)]
    role.master.counts.scanned = role.master.fleet.freed_blocks[LOG]
    assert [each.test for each in explanation_of(role, FILE, known_of(role, job), 0, {}).shortages] == ["order"]
    role.master.counts.scanned -= 1  # a turn comes, which looks there
    assert explanation_of(role, FILE, known_of(role, job), 0, {}).shortages == ()


def test_an_attempt_stands_by_where_its_task_is_there_and_runs_it():
    _, role, job = running_task()
    book, place = role.book, job.places.start
    attempt, machine = int(book.now[place]["attempt"]), int(book.now[place]["machine"])
    assert book._stands_by(place, attempt, machine)
    assert not book._stands_by(place, attempt + 1, machine)
    assert not book._stands_by(place, attempt, machine + 1)
    assert not book._is_former(attempt)
    assert book._is_former(attempt - (1 << INCARNATION_BITS))
    row = role.jobs.row[place]
    role.master.task[-1] = role.master.task[row]  # where NOBODY's row would be
    role.jobs.row[place] = NOBODY
    assert not book._stands_by(place, attempt, machine)


def test_every_code_has_words():
    assert [(signal_of(code), code_words(code)) for code in (0, -9, -36)] == [
        ("", "exit code 0"), ("SIGKILL", "signal SIGKILL"), ("SIG36", "signal SIG36")]


# -- exit codes --------------------------------------------------------------------------------------------------------


def rows_of(path):
    return {int(code): words for code, words in re.findall(r"^\| (\d+) \| (.*) \|$", path.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", ["live.md", "reference/exit-codes.md"])
def test_every_exit_code_is_in_the_docs(page):
    documented = rows_of(ROOT / "docs" / page)
    assert {code: documented.get(code) for code in exit_codes.MEANINGS} == exit_codes.MEANINGS
    errors = [SubakError, *BY_CODE.values()]
    assert {error.exit_code for error in errors} <= set(documented)


def test_exit_codes_are_named_in_one_module():
    elsewhere = [f"{file.name}: {line.strip()}" for file in (ROOT / "src" / "subak").rglob("*.py")
                 if file.name != "exit_codes.py"
                 for line in file.read_text().splitlines()
                 if re.search(r"\bEXIT_\w+.* = .*\b([0-6]|1\d\d)\b|sys\.exit\([1-9]", line)]
    assert [line for line in elsewhere if "EXIT_CODE_MAX" not in line] == []


@pytest.mark.parametrize(("code", "signal", "expected"), [
    (7, "", 7), (None, "", 1), (0, "", 1), (300, "", 255), (None, "SIGKILL", 137), (None, "SIGTERM", 143),
    (None, "SIG36", 164)])
def test_the_exit_code_of_run(code, signal, expected):
    assert exit_codes.of_command(code, signal) == expected


def test_a_former_attempt_is_found_by_its_task_and_number():
    """Of three that began: the present one is in the row, others are remembered by what happened."""
    _, role, job = running_task()
    known = known_of(role, job)
    began = [Happening(1.0, 0, what, "", machine, nth, attempt) for what, machine, nth, attempt in (
        ("lost", 9, 1, 99), (BEGAN, 5, 1, 51), (BEGAN, 6, 2, 62))]
    other = Happening(1.0, 1, BEGAN, "", 7, 1, 71)
    known = replace(known, events=[other, *began])
    present = known.row(0)
    assert known.attempt_of(0, int(present["attempts"])) == (int(present["machine"]), int(present["attempt"]))
    assert known.attempt_of(0, 2) == (6, 62)
    assert known.attempt_of(1, 3) is None  # which two have not begun


def test_what_a_peer_said_of_a_job_is_forgotten_with_the_job():
    world, role, job = running_task(seconds=3.0)
    links = [link for process in world.processes for link in process.role.links.values()]
    assert any((JOB_FACT, job.number) in link.heard for link in links)
    world.until(20.0)
    assert not role.book.of_number
    assert not any((JOB_FACT, job.number) in link.heard for link in links)


@pytest.mark.parametrize(("count", "words", "processes"), [
    (0, "0 tasks", "0 processes"), (1, "1 task", "1 process"), (2_095, "2,095 tasks", "2,095 processes")])
def test_a_count_and_its_noun_agree(count, words, processes):
    assert (counted(count, "task"), counted(count, "process", "processes")) == (words, processes)
