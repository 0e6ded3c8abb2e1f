"""An agent and its attempts, as processes: what it owes to whoever runs attempts by it."""
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from agents import MACHINE, Machine, alive, attempt, until
from checkout import skip_where_closed
from subak.live.agent.attempts.attempt import (
    AGENT_LOST,
    EXITED,
    HALTED,
    INVALID,
    LEASE_LOST,
    NEVER_BEGAN,
    NOT_BEGUN,
    OLD_EPOCH,
    OLD_INCARNATION,
    OLD_START,
    OUT_OF_MEMORY,
    RAN_TOO_LONG,
    SIGNALLED,
    STOPPED,
    STOPPING,
    Exited,
    Fence,
    Key,
    User,
)
from subak.live.agent.attempts.client import AgentError
from subak.live.agent.attempts.wire import Read, frame
from subak.live.agent.connections import CONNECTIONS_MAX
from subak.live.agent.processes import proc

STUBBORN = 'trap "" TERM; echo ready > "$0"; while :; do sleep 0.05; done'  # until SIGKILL
PYTHON = (sys.executable, "-I", "-S", "-c")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run attempts as others")


@pytest.fixture
def machine():
    made = Machine("--lease", 600)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared():
    """An agent that the tests of this file have in common; each has task numbers of its own."""
    made = Machine("--lease", 600, "--output", 65536)
    made.up()
    yield made
    made.close()


def shell(number, script, *words, **others):
    return attempt(number, "/bin/sh", "-c", script, *words, **others)


def stamps(file) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


# what an attempt is given, and how it ends


def test_an_attempt_knows_what_it_is_and_ends_with_its_code(shared):
    script = 'echo $SUBAK_TASK $SUBAK_ATTEMPT $SUBAK_TASK_INDEX $SUBAK_JOB $SUBAK_QUEUE $MINE; pwd; echo no >&2; exit 3'
    ending = shared.run(shell(100, script, job="night", queue="a/b", index=7, environment={"MINE": "x y"},
                              folder=str(shared.here)))
    assert (ending.reason, ending.code, ending.is_good) == (EXITED, 3, False)
    assert shared.text(100) == f"100 1 7 night a/b x y\n{shared.here}\n"
    assert shared.text(100, "err") == "no\n"


def test_a_command_is_no_shells(shared):
    assert shared.run(attempt(101, "/bin/echo", "$HOME;", "*", "a  b")).is_good
    assert shared.text(101) == "$HOME; * a  b\n"


def test_a_job_cannot_say_that_its_attempt_is_another(shared):
    assert shared.run(shell(102, "echo $SUBAK_TASK", environment={"SUBAK_TASK": "1"})).is_good
    assert shared.text(102) == "102\n"


@pytest.mark.parametrize(("number", "command", "others", "code", "words"), [
    (110, ["no-such-command"], {}, 127, "more folders of PATH"),
    (111, ["./no-such-file"], {}, 127, "./no-such-file: no such file"),
    (112, ["/etc/passwd"], {}, 126, "/etc/passwd: may not be executed"),
    (113, ["/etc"], {}, 126, "/etc: may not be executed"),
    (114, ["true"], {"folder": "/no/such"}, 126, "/no/such: no such folder"),
    (115, ["true"], {"folder": "/" + 300 * "x"}, 126, "no such folder"),
    (116, ["true", "a\0b"], {}, 126, "a null character"),
    (117, ["true"], {"environment": {"A=B": "1"}}, 126, "with = in it"),
    (118, ["true"], {"environment": {"A": 131_072 * "y"}}, 126, "Argument list too long"),
])
def test_what_cannot_begin_says_why(shared, number, command, others, code, words):
    ending = shared.run(attempt(number, *command, **others))
    assert (ending.reason, ending.code) == (NOT_BEGUN, code)
    assert words in ending.words
    assert shared.text(number, "err") == f"subak: {ending.words}\n"


def test_a_file_that_is_no_program_ends_with_words(shared):
    file = shared.here / "not-a-program"
    file.write_bytes(b"\x7fELF and nothing more")
    file.chmod(0o755)
    ending = shared.run(attempt(120, file))
    assert (ending.reason, ending.code, ending.words) == (NOT_BEGUN, 126, f"{file}: Exec format error")


def test_a_signal_is_told_from_an_exit_code(shared):
    ending = shared.run(shell(121, "kill -SEGV $$"))
    assert (ending.reason, ending.code, ending.words) == (SIGNALLED, -11, "signal 11 (Segmentation fault)")


def test_signals_are_as_a_program_expects_them(machine):
    machine.up(prefix=("/bin/sh", "-c", "trap '' INT QUIT HUP USR2; exec \"$@\"", "sh"))
    assert machine.run(shell(1, "grep -E 'Sig(Ign|Blk)' /proc/self/status")).is_good
    ours = sum(1 << (number - 1) for number in signal.valid_signals())  # 32 and 33 are the C library's own
    assert [int(line.split()[1], 16) & ours for line in machine.text(1).splitlines()] == [0, 0]
    os.kill(machine.agent, signal.SIGHUP)  # of a terminal that is closed
    assert machine.run(attempt(2, "true")).is_good


def test_nothing_of_the_agents_is_open_in_an_attempt(shared):
    assert shared.run(shell(123, "ls /proc/self/fd")).is_good
    assert shared.text(123).split() == ["0", "1", "2", "3"]  # the last is that of the folder itself


def test_who_runs_for_too_long_is_ended(shared):
    shared.client.start(attempt(124, "sleep", 60, limit_s=0.1))
    assert shared.ending(124).reason == RAN_TOO_LONG


# at most once


def test_a_repeated_start_begins_nothing(shared):
    stamp = shared.here / "once"
    order = shell(200, f"echo >> {stamp}; exec sleep 60")
    shared.client.start(order)
    shared.client.start(order)
    pid = shared.begun(200)
    until(lambda: stamps(stamp))
    shared.client.start(order)
    assert shared.begun(200) == pid
    shared.client.end(Key(200, 1), 5.0)
    assert shared.ending(200).reason == HALTED
    shared.client.start(order)
    assert shared.ending(200).reason == HALTED  # as it was told
    shared.client.forget(Key(200, 1))
    shared.client.start(order)
    assert shared.refused(200) == OLD_START
    assert len(stamps(stamp)) == 1


def test_who_was_ended_before_it_was_started_never_begins(machine):
    machine.up()
    machine.client.end(Key(1, 1), 5.0)
    machine.client.end(Key(2, 1), 5.0, Fence(1, 1, 2))
    assert machine.ending(1).reason == machine.ending(2).reason == NEVER_BEGAN
    machine.client.forget(Key(2, 1))
    machine.client.start(attempt(2, "true"))
    assert machine.refused(2) == OLD_START
    machine.kill(machine.agent)
    machine.wait()
    machine.up()
    machine.client.start(attempt(1, "true"))
    assert machine.ending(1).reason == NEVER_BEGAN
    machine.client.start(attempt(2, "true"))
    assert machine.refused(2) == OLD_START


def test_older_orders_are_refused_also_after_a_restart(machine):
    machine.up(incarnation=4, epoch=6)
    assert machine.run(attempt(1, "true", incarnation=4, epoch=7)).is_good
    for _ in range(2):
        machine.client.start(attempt(2, "true", incarnation=4, epoch=6))
        machine.client.start(attempt(3, "true", incarnation=3, epoch=9))
        machine.client.end(Key(1, 1), 0.0, Fence(4, 6, 1))
        assert machine.refused(2) == machine.refused(1) == OLD_EPOCH
        assert machine.refused(3) == OLD_INCARNATION
        machine.kill(machine.agent)
        machine.wait()
        machine.up(incarnation=4, epoch=7)
        assert machine.ending(1).is_good
    with pytest.raises(AgentError, match=r"old incarnation: the latest worker is incarnation 4, of epoch 7"):
        machine.connect(incarnation=3, epoch=8)


def test_ends_are_said_until_they_are_forgotten(machine):
    machine.up()
    assert machine.run(shell(1, "exit 5")).code == machine.run(shell(2, "exit 5")).code
    for _ in range(2):
        machine.connect()
        assert machine.ending(1).code == 5
    machine.client.forget(Key(1, 1))
    machine.client.list()  # so that it has arrived
    assert machine.run(attempt(3, "true")).is_good  # and is on disk
    machine.kill(machine.agent)
    machine.wait()
    machine.up()
    assert machine.ending(2).code == 5
    assert [known.key.task for known in machine.client.list()] == [2, 3]


# how attempts are ended


def test_sigkill_comes_after_the_grace_and_not_before(shared):
    ready = shared.here / "ready"
    shared.client.start(shell(300, STUBBORN, ready))
    until(ready.exists)
    begun = time.monotonic()
    shared.client.end(Key(300, 1), 0.4)
    ending = shared.ending(300)
    assert time.monotonic() - begun > 0.39
    assert (ending.reason, ending.code) == (HALTED, -9)


def test_whoever_cleans_up_within_the_grace_may(shared):
    shared.client.start(shell(301, 'trap "echo clean; exit 0" TERM; echo > "$0"; while :; do sleep 0.02; done',
                              shared.here / "cleaning"))
    until((shared.here / "cleaning").exists)
    shared.client.end(Key(301, 1), 30.0)
    assert shared.ending(301).reason == HALTED  # though it exits by itself, and with 0
    assert shared.text(301) == "clean\n"


def test_children_have_the_grace_too_when_their_parent_ends_at_once(shared):
    child = f"trap 'sleep 0.3; echo saved; exit' TERM; echo > {shared.here}/child; while :; do sleep 0.02; done"
    shared.client.start(shell(302, '(eval "$0") & wait', child))
    until((shared.here / "child").exists)
    shared.client.end(Key(302, 1), 30.0)
    shared.ending(302)
    assert shared.text(302) == "saved\n"


@pytest.mark.parametrize(("number", "leave"), [
    (310, "sleep 600 &"),  # in the group
    (311, "setsid sleep 600 &"),  # in a session of its own
    (312, "(setsid sh -c 'sleep 600 & sleep 600' &);"),  # and with children
    (313, "env -i setsid sleep 600 &"),  # and with nothing that marks it
])
@pytest.mark.parametrize("ended", [False, True])
def test_nothing_of_an_attempt_is_left(shared, number, leave, ended):
    number += 10 * ended
    script = f"{leave} echo begun; " + ("sleep 600" if ended else "sleep 0.1")
    shared.client.start(shell(number, script))
    until(lambda: shared.text(number))
    if ended:
        time.sleep(0.3)  # a look, at which whose child it is can still be seen
        shared.client.end(Key(number, 1), 0.2)
    shared.ending(number)
    assert descendants_of_the_agent(shared) == []


def descendants_of_the_agent(machine) -> list[int]:
    every = proc.all_processes()
    direct = proc.children(machine.agent)
    return sorted({pid for pids in proc.members(direct, {}, every).values() for pid in pids})


def test_an_attempts_daemons_live_as_long_as_it_does(shared):
    shared.client.start(shell(330, "(setsid sleep 600 & echo $!); sleep 600"))
    daemon = int(until(lambda: shared.text(330)))
    time.sleep(0.3)
    assert alive(daemon)
    shared.client.end(Key(330, 1), 0.0)
    assert shared.ending(330).reason == HALTED
    assert not alive(daemon)


def test_the_end_of_one_attempt_leaves_others_alone(shared):
    shared.client.start(shell(340, "(setsid sleep 600 & echo $!); sleep 600"))
    shared.client.start(shell(341, "(setsid sleep 600 & echo $!); sleep 600"))
    daemon, other = (int(until(lambda number=number: shared.text(number))) for number in (340, 341))
    shared.client.end(Key(340, 1), 0.0)
    shared.ending(340)
    assert not alive(daemon)
    assert alive(other)
    shared.client.end(Key(341, 1), 0.0)
    shared.ending(341)


# limits


def test_output_is_kept_up_to_its_limit_and_nobody_is_held_up(shared):
    script = "i=0; while [ $i -lt 4000 ]; do echo line $i of what is more than sixty-four KiB; i=$((i+1)); done"
    script += "; while [ ! -e \"$0\" ]; do sleep 0.02; done; echo end"
    shared.client.start(shell(400, script, shared.here / "end"))
    file = shared.state / "output" / "400.1.out"
    shared.begun(400)
    until(lambda: file.stat().st_size > 2 * 65536 and file.stat().st_blocks * 512 <= 65536 + 2 * 4096)
    (shared.here / "end").touch()
    assert shared.ending(400).is_good
    written = file.stat().st_size
    part = shared.client.read(Key(400, 1), "out", 0, 1 << 20)
    assert (part.offset + len(part.data), part.is_end) == (written, True)
    assert 65536 <= len(part.data) < 65536 + 4096
    assert part.data.endswith(b"sixty-four KiB\nend\n")
    assert b"\0" not in part.data


def test_output_is_read_while_it_is_written(shared):
    shared.client.start(shell(401, 'echo one; while [ ! -e "$0" ]; do sleep 0.01; done; echo two', shared.here / "go"))
    part = until(lambda: (found := shared.client.read(Key(401, 1))).data and found)
    assert (part.data, part.is_end) == (b"one\n", False)
    (shared.here / "go").touch()
    shared.ending(401)
    part = shared.client.read(Key(401, 1), "out", 4)
    assert (part.offset, part.data, part.is_end) == (4, b"two\n", True)


def test_who_uses_more_memory_than_it_asked_for_fails(shared):
    shared.client.start(attempt(410, *PYTHON, "import time; x = bytearray(90_000_000); time.sleep(60)",
                                memory=40_000_000))
    ending = shared.ending(410)
    assert ending.reason == OUT_OF_MEMORY
    assert ending.words.endswith("bytes of memory, and asked for 40000000")
    assert ending.usage.memory > 40_000_000


def test_memory_is_that_of_all_its_processes_and_what_they_share_counts_once(shared):
    fork = "import os, time; x = bytearray(60_000_000); [os.fork() for _ in range(2)]; "
    shared.client.start(attempt(411, *PYTHON, f"{fork}time.sleep(0.8)", memory=120_000_000))
    shared.client.start(attempt(412, *PYTHON, f"{fork}x[::4096] = bytes(len(x[::4096])); time.sleep(60)",
                                memory=120_000_000))
    assert shared.ending(411).is_good
    assert shared.ending(412).reason == OUT_OF_MEMORY


# as whom


@needs_root
def test_an_attempt_runs_as_another_user(shared):
    order = shell(500, "id -u; id -g; id -G; umask; touch $0; stat -c %a:%u:%g $0", shared.here / "made",
                  user=User(65534, 65533, (65532, 65531)), umask=0o027)
    assert shared.run(order).is_good, shared.text(500, "err")
    uid, gid, groups, umask, made = shared.text(500).splitlines()
    assert (uid, gid, umask, made) == ("65534", "65533", "0027", "640:65534:65533")
    assert {*groups.split()} == {"65533", "65532", "65531"}


@needs_root
def test_a_folder_is_entered_as_the_user(shared):
    """Root enters every folder: what lies below one that is closed to others must stay out of reach."""
    closed, user = shared.here / "closed", User(65534, 65534)
    below = closed / "below"
    below.mkdir(parents=True)
    (below / "secret").write_text("secret")
    closed.chmod(0o700)
    assert not shared.run(shell(501, "cat secret", user=user, folder=str(below))).is_good
    assert "secret" not in shared.text(501)
    assert shared.run(shell(502, "pwd; echo $0 $1", "a b", "-n", user=user, folder=str(shared.here))).is_good
    assert shared.text(502) == f"{shared.here}\na b -n\n"


@needs_root
def test_a_user_without_other_groups_has_none(machine):
    machine.up(prefix=("setpriv", "--groups", "0,65531"))
    assert machine.run(shell(1, "id -G", user=User(65534, 65534))).is_good
    assert machine.text(1) == "65534\n"


@needs_root
def test_only_root_can_run_attempts_as_others(machine):
    skip_where_closed()
    os.chown(machine.state, 65534, 65534)
    machine.up(prefix=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"))
    ending = machine.run(shell(1, "id -u", user=User(0, 0)))
    assert (ending.reason, ending.code) == (NOT_BEGUN, 126)
    assert ending.words == "user 0: the node agent runs as user 65534, and only root can run attempts as others"
    assert machine.run(shell(2, "id -u", user=User(65534, 65534))).is_good
    assert machine.text(2) == "65534\n"


# without a worker, and without an agent


def test_without_its_worker_everything_ends_within_the_lease(machine):
    machine.up("--lease", 1.5, "--lease-grace", 0.5)
    ready = machine.here / "ready"
    machine.client.start(shell(1, STUBBORN, ready))
    machine.client.start(shell(2, "sleep 600"))
    pids = [machine.begun(1), machine.begun(2)]
    until(ready.exists)
    machine.client.ping()
    heard = time.clock_gettime(time.CLOCK_BOOTTIME)
    until(lambda: not alive(pids[1]))
    assert time.clock_gettime(time.CLOCK_BOOTTIME) - heard > 0.95
    assert alive(pids[0])
    until(lambda: not alive(pids[0]))
    assert 1.45 < time.clock_gettime(time.CLOCK_BOOTTIME) - heard < 3
    machine.connect()
    assert machine.ending(1).reason == machine.ending(2).reason == LEASE_LOST


def test_a_worker_that_is_heard_keeps_its_attempts_and_others_do_not_count(machine):
    machine.up("--lease", 0.6, "--lease-grace", 0.1)
    machine.client.start(attempt(1, "sleep", 600))
    machine.begun(1)
    for _ in range(10):
        time.sleep(0.1)
        machine.client.ping()
    assert [known.ending for known in machine.client.list()] == [None]
    stranger = machine.stranger()
    until(lambda: stranger.list()[0].ending)
    assert stranger.list()[0].ending.reason == LEASE_LOST
    stranger.close()


LEAVING = "(setsid sleep 600 &) ; env -i setsid sleep 600 & sleep 600"


def test_attempts_die_with_their_agent_and_are_said_to_be_lost(machine):
    machine.up()
    machine.client.start(shell(1, LEAVING))
    machine.client.start(attempt(2, "true"))
    machine.begun(1)
    machine.ending(2)
    running = until(lambda: len(found := descendants_of_the_agent(machine)) == 4 and found)
    machine.kill(machine.agent)
    machine.wait()
    assert not [pid for pid in running if alive(pid)]
    machine.up(incarnation=2)
    ending = machine.ending(1)
    assert (ending.reason, ending.words) == (AGENT_LOST, "its node agent died")
    assert machine.ending(2).is_good
    machine.client.start(shell(1, LEAVING, attempt=1, incarnation=2))
    assert machine.ending(1).reason == AGENT_LOST  # and does not begin again


def test_what_outlives_guard_and_agent_is_ended_before_anything_begins(machine):
    machine.up()
    machine.client.start(shell(1, "(setsid sleep 600 &); sleep 600"))
    machine.begun(1)
    running = until(lambda: len(found := machine.marked()) == 3 and found)
    os.kill(machine.guard.pid, signal.SIGSTOP)  # so that it cannot do its work
    machine.kill(machine.agent, machine.guard.pid)
    machine.wait()
    assert [pid for pid in running if alive(pid)] == running
    machine.up()
    assert not machine.marked()  # one that is just ending has no memory any more, and runs nothing
    until(lambda: not [pid for pid in running if alive(pid)])
    assert machine.ending(1).reason == AGENT_LOST


def test_without_its_guard_the_agent_ends_everything(machine):
    machine.up()
    machine.client.start(shell(1, STUBBORN, machine.here / "ready"))
    pid, agent = machine.begun(1), machine.agent
    until((machine.here / "ready").exists)
    machine.kill(machine.guard.pid)
    machine.wait()
    until(lambda: not alive(agent) and not alive(pid))
    machine.up()
    assert machine.ending(1).reason == AGENT_LOST


def test_an_agent_that_is_told_to_stop_ends_everything_in_order(machine):
    machine.up()
    last = "echo bye; while [ ! -e go ]; do sleep 0.01; done; exit"
    script = f"trap '{last}' TERM; echo > ready; while :; do sleep 0.02; done"
    machine.client.start(shell(1, script, folder=str(machine.here)))
    until((machine.here / "ready").exists)
    machine.guard.terminate()
    until(lambda: machine.text(1))
    machine.client.start(attempt(2, "true"))
    assert machine.refused(2) == STOPPING
    (machine.here / "go").touch()
    assert machine.wait() == 0
    machine.up()
    assert machine.ending(1).reason == STOPPED
    assert machine.text(1) == "bye\n"


def test_a_folder_has_one_agent(machine):
    machine.up()
    other = subprocess.run([sys.executable, "-c", "import subak.live.agent.guard as guard; guard.LOCK_S = 0.1\n"
                            "from subak.live.agent.__main__ import main; raise SystemExit(main())",
                            "--state", machine.state, "--machine", "9"], capture_output=True, text=True, check=False)
    assert (other.returncode, other.stderr) == (2, f"node agent: {machine.state}: another node agent is at work here\n")
    assert machine.run(attempt(1, "true")).is_good


# many, and those who are up to no good


def test_two_hundred_at_once(machine):
    machine.up()
    for number in range(200):
        machine.client.start(shell(number, "sleep 0.5; exit $SUBAK_TASK_INDEX", index=number % 3))
    ended = {}
    until(lambda: ended.update((event.key.task, event.ending.code) for event in machine.client.watch(0.1)
                               if isinstance(event, Exited)) or len(ended) == 200)
    assert ended == {number: number % 3 for number in range(200)}
    assert len([*(proc.PROC / f"{machine.agent}/fd").iterdir()]) < 20
    machine.client.forget(*(Key(number, 1) for number in range(200)))
    assert machine.client.list() == []
    assert descendants_of_the_agent(machine) == []


def test_a_long_list_comes_in_parts(machine):
    machine.up()
    for number in range(2100):
        machine.client.end(Key(number, 1), 0.0)
    assert [known.key.task for known in machine.client.list()] == list(range(2100))


def test_who_does_not_read_holds_nobody_up(shared):
    shared.run(shell(600, "head -c 60000 /dev/zero"))
    deaf = socket.socket(socket.AF_UNIX)
    deaf.connect(str(shared.state / "socket"))
    deaf.setblocking(False)
    stalled = time.monotonic()
    while time.monotonic() - stalled < 0.3:  # until nothing more is read from it
        try:
            deaf.send(frame(1, Read(Key(600, 1))))
            stalled = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    assert shared.run(attempt(601, "true")).is_good
    deaf.settimeout(5.0)
    heard = 0
    while heard < 2_000_000:  # nor is it left alone
        part = len(deaf.recv(1 << 20))
        assert part
        heard += part
    deaf.close()


@pytest.mark.parametrize("sent", [
    b"\xff\xff\xff\xffabc",  # too long
    b"\0\0\0\0",  # empty
    b"\0\0\0\3abc",  # no MessagePack
    b"\0\0\0\2\x92\x01",  # cut off
    frame(1, Read(Key(-1, 0))),  # out of bounds
    frame(1, Read(Key(1, 1), "../../identity")),
])
def test_what_nobody_understands_is_refused_in_words(shared, sent):
    stranger = shared.stranger()
    stranger.wire.sendall(sent)
    with pytest.raises(AgentError, match=r"frame|MessagePack|truncated|Expected|Invalid|malformed"):
        stranger.watch(5.0)
    stranger.close()
    assert shared.run(attempt(610, "true", attempt=int.from_bytes(sent[-3:], "big"), start=610 + len(sent))).is_good


def test_an_attempt_that_is_out_of_bounds_is_refused_and_others_go_on(shared):
    shared.client.start(attempt(715, "true", folder=5000 * "x"))
    shared.client.start(attempt(716, *(100_000 * "x" for _ in range(11))))
    assert [shared.refused(number) for number in (715, 716)] == [INVALID, INVALID]
    assert shared.run(attempt(717, "true")).is_good


def test_words_have_an_end(shared):
    ending = shared.run(attempt(718, "no-such-command", environment={"PATH": "/" + 100_000 * "é"}))
    assert (ending.code, len(ending.words)) == (127, 400)


def test_only_the_worker_gives_orders(shared):
    stranger = shared.stranger()
    stranger.start(attempt(620, "true"))
    number = stranger.number
    stranger.list()
    assert stranger.answers[number].words.startswith("only the worker may ask for this")
    with pytest.raises(AgentError, match=f"this is the node agent of machine {MACHINE}, not 4"):
        stranger.attach(4, 9, 9)
    stranger.close()
    assert not [known for known in shared.client.list() if known.key.task == 620]


def test_how_limits_are_kept_is_said(shared):
    assert shared.client.limits.startswith("memory is limited by ")
    assert f"machine {MACHINE}: {shared.state}; {shared.client.limits}" in shared.said()


def test_there_may_only_be_so_many_connections(machine):
    machine.up()
    others = [machine.stranger() for _ in range(CONNECTIONS_MAX + 5)]
    assert machine.run(attempt(1, "true")).is_good
    with pytest.raises(AgentError):
        others[-1].list()
    for other in others:
        other.close()

    def listed():
        try:
            return machine.stranger().list()
        except AgentError:
            return None  # it has not noticed yet
    assert until(listed)


def test_the_socket_is_its_users_own(shared):
    assert (shared.state / "socket").stat().st_mode & 0o777 == 0o600
    assert (shared.state / "output").stat().st_mode & 0o777 == 0o700


def test_neither_guard_nor_agent_loads_what_is_heavy():
    script = ("import sys, subak.live.agent.loop, subak.live.agent.__main__, subak.live.agent.attempts.client\n"
              "print([name for name in ('numpy', 'numba', 'polars', 'asyncio', 'typer') if name in sys.modules])")
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
