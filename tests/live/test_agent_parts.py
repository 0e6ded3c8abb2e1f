"""The parts of the agent by themselves: its journal, control groups, output, orphans, frames, and a full disk."""
import errno
import os
import resource
import socket
import time
from pathlib import Path
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from agents import Machine, alive, attempt, until
from subak.errors import InputError
from subak.live.agent import journal as journal_file
from subak.live.agent.attempts.attempt import (
    EXITED,
    HALTED,
    NO_DISK,
    Begun,
    Ending,
    Exited,
    Fence,
    Key,
    Refused,
    Usage,
    Used,
)
from subak.live.agent.attempts.client import AgentClient
from subak.live.agent.attempts.ledger import Ledger
from subak.live.agent.attempts.records import Ended, Forgotten, Life, Seen, Started
from subak.live.agent.attempts.wire import FRAME_BYTES_MAX, Frames, Ping, Start, WireError, frame, read_request
from subak.live.agent.journal import DiskFullError, Journal
from subak.live.agent.loop import Agent
from subak.live.agent.processes import output, proc, running
from subak.live.agent.processes.cgroups import Cgroups, find_home, limits
from subak.live.agent.processes.output import Outputs
from subak.live.agent.processes.proc import Process, members
from subak.live.agent.processes.running import Run, Running
from subak.live.agent.settings import Settings, checked, open_state

KEY = Key(7, 2)
RECORDS = [Life("a-boot"), Seen(3, 5, 9, (1 << 64) - 1), Started(KEY, Fence(3, 5, 9)),
           Ended(KEY, Fence(3, 5, 9), Ending(EXITED, 1, "wörter", Usage(5, 0.1))),
           Ended(KEY, None, Ending("x", 0, "", Usage(1, 0.1))), Forgotten(KEY)]


# the journal


def test_a_journal_says_what_was_written(tmp_path):
    file = Journal(tmp_path / "journal")
    assert file.read() == []
    for record in RECORDS:
        file.append([record])
    assert Journal(tmp_path / "journal").read() == RECORDS
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_journal_that_was_cut_off_anywhere_says_what_was_whole(tmp_path):
    file = Journal(tmp_path / "journal")
    ends = [0]
    for record in RECORDS:
        file.append([record])
        ends.append(file.size)
    text = (tmp_path / "journal").read_bytes()
    for length in range(len(text)):
        for tail in (b"", b"\0" * 40, b"\x5a" * 40):
            (tmp_path / "cut").write_bytes(text[:length] + tail)
            again = Journal(tmp_path / "cut")
            whole = sum(end <= length for end in ends) - 1
            assert again.read() == RECORDS[:whole]
            assert again.path.stat().st_size == again.size
            assert again.dropped == length - ends[whole] + len(tail)
    again.append(RECORDS[:1])
    assert Journal(tmp_path / "cut").read() == [*RECORDS[:-1], RECORDS[0]]


def test_a_record_that_was_altered_is_not_believed(tmp_path):
    file = Journal(tmp_path / "journal")
    file.append(RECORDS[:2])
    text = bytearray((tmp_path / "journal").read_bytes())
    text[-1] ^= 1
    (tmp_path / "journal").write_bytes(text)
    assert Journal(tmp_path / "journal").read() == RECORDS[:1]


def test_a_record_of_a_later_version_is_not_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_file, "_encode", lambda _: b"\x92\x63\x01")
    Journal(tmp_path / "journal").append(RECORDS[:1])
    with pytest.raises(InputError, match="the record at byte 0 of the journal is of no kind that this version knows"):
        Journal(tmp_path / "journal").read()


def test_a_group_with_an_end_is_synced_before_append_returns_and_all_is_written(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
    file = Journal(tmp_path / "journal")
    starts = [record for record in RECORDS if isinstance(record, Seen | Started)]
    file.append(starts)
    assert (synced, file.path.stat().st_size) == ([], file.size)
    assert Journal(file.path).read() == starts
    file.append([Started(Key(1, 2), Fence(1, 1, 3)), Ended(Key(1, 2), None, Ending("exited", 0))])
    assert synced == [file.size]
    file.append([Life("a boot")])
    assert synced[1:] == [file.size]


def test_where_there_is_no_room_nothing_is_left(tmp_path, monkeypatch):
    file = Journal(tmp_path / "journal")
    file.append(RECORDS[:2])
    full(monkeypatch)
    with pytest.raises(DiskFullError, match="No space left on device"):
        file.append(RECORDS[2:])
    assert file.path.stat().st_size == file.size
    file.rewrite_at = 0
    file.rewrite(RECORDS[:1])
    assert not file.is_long()  # it is not tried at every turn
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal"]
    file.append(RECORDS[2:])
    assert Journal(tmp_path / "journal").read() == RECORDS


def full(monkeypatch):
    """Let a byte less be written than is to be, and then nothing."""
    write = os.write

    def some(file, text):
        if len(text) < 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, text[:-1])
    monkeypatch.setattr(os, "write", some)


def test_a_journal_is_written_anew_when_little_of_it_still_says_something(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_file, "SLACK_BYTES", 1024)
    settings_ = Settings(tmp_path / "state", 3)
    settings_.state.mkdir(0o700)
    agent = Agent(settings_)
    sizes = []
    for number in range(150):
        agent.ledger.start(attempt(number, "no-such-command"), 0.0)
        agent._release(0.0)
        agent.ledger.forget(Key(number, 1))
        agent._release(0.0)
        sizes.append(agent.journal.size)
    assert max(sizes) < 3 * 1024
    agent.close()
    again = Ledger()
    again.restore(Journal(settings_.state / "journal").read())
    assert (again.rows, again.seen.top, again.seen.bits) == ({}, 149, (1 << 64) - 1)


# a disk that is full


@pytest.fixture
def agent(tmp_path):
    """An agent within this process, and its worker; it kills whose it does not know, but not what tests left here."""
    every, before = proc.children, set(proc.children(os.getpid()))
    with mock.patch.object(proc, "children", lambda pid: [each for each in every(pid) if each not in before]):
        made = Agent(Settings(tmp_path / "s", 3))
        made.worker_ = AgentClient(tmp_path / "s" / "socket")
        yield made
        made.worker_.close()
        made.close()
    assert before <= set(every(os.getpid()))


def turns(agent, holds) -> list:
    """Let the agent work until something holds of the events so far; return them."""
    events, end = [], time.monotonic() + 20
    while not holds(events):
        assert time.monotonic() < end, events
        agent.connections.waker.send(b"x")
        agent.turn()
        events += [event for event in agent.worker_.watch() if not isinstance(event, Used)]
    return events


def test_on_a_full_disk_nothing_starts_and_no_end_is_lost(agent, monkeypatch, capsys):
    worker = agent.worker_
    monkeypatch.setattr(worker, "_answer", lambda request, _: worker._send(request))
    worker._send(frame_of_attach())
    worker.ping()
    worker.start(attempt(1, "sleep", "0.1"))
    worker.start(attempt(2, "sleep", "60"))
    turns(agent, lambda events: [type(each) for each in events] == [Begun, Begun])
    full(monkeypatch)
    time.sleep(0.2)
    worker.end(Key(2, 1), 0.0)
    events = turns(agent, lambda _: not agent.ledger.running)  # both have ended
    assert events == []  # and nobody is told, since it is not on disk
    worker.start(attempt(3, "true"))
    events = turns(agent, lambda events: events)
    assert [(type(each), each.why) for each in events] == [(Refused, NO_DISK)]
    monkeypatch.undo()
    agent.try_disk_at = 0.0
    events = turns(agent, lambda events: len(events) == 2)
    assert [(each.key.task, each.ending.reason) for each in events] == [(1, EXITED), (2, HALTED)]
    worker.start(attempt(3, "true"))
    assert turns(agent, lambda events: len(events) == 2)[1].ending.is_good
    said = capsys.readouterr().err
    assert "No space left on device; nothing is started until there is room" in said
    assert said.count("\n") == 2


def frame_of_attach():
    from subak.live.agent.attempts.wire import Attach
    return Attach(3, 1, 1)


def test_what_is_not_on_disk_does_not_begin(agent, monkeypatch):
    def no_room(_):
        raise DiskFullError("full")
    agent.connections.wait(0.0)
    monkeypatch.setattr(agent.journal, "append", no_room)
    agent.ledger.start(attempt(1, "true"), 0.0)
    agent._release(0.0)
    assert agent.running.runs == {}
    agent.ledger.end(Key(1, 1), 0.0, 0.0)
    agent.ledger.tick(0.0)
    agent._release(0.0)
    monkeypatch.undo()
    agent._release(9.0)
    assert agent.running.runs == {}  # it was ended while it waited for the disk
    assert [(known.ending.reason, known.ending.code) for known in agent.ledger.known()] == [(HALTED, 0)]


# control groups


def test_limits_of_control_groups():
    both = frozenset({"memory", "cpu"})
    each = attempt(1, "x", memory=4 << 20, cpu=2500, cpu_limited=True)
    assert limits(each, both) == {"memory.max": "4194304", "memory.swap.max": "0", "memory.oom.group": "1",
                                  "cpu.weight": "250", "cpu.max": "250000 100000"}
    assert limits(attempt(1, "x", cpu=1, cpu_limited=True), both)["cpu.max"] == "1000 100000"  # Linux takes no less
    assert limits(attempt(1, "x", cpu=1), both) == {"cpu.weight": "1"}
    assert limits(attempt(1, "x"), both) == limits(each, frozenset()) == {}


def fake_tree(root, controllers="cpuset cpu io memory pids", delegated=True):
    """Make files as Linux shows them for a group *agent.service*, where a new group has those of its parent."""
    base = root / "agent.service"
    base.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    for name, text in (("cgroup.controllers", controllers), ("cgroup.subtree_control", ""), ("cgroup.procs", ""),
                       *([("cgroup.type", "domain")] if delegated else ())):
        (base / name).write_text(text)
    home = base / "subak-me"
    home.mkdir()
    for name in ("cgroup.kill", "cgroup.subtree_control"):
        (home / name).write_text("")
    return base


def test_a_delegated_tree_is_used_from_a_leaf(tmp_path):
    base = fake_tree(tmp_path)
    (base / "subak-me" / "cgroup.subtree_control").write_text("memory cpu")
    found = find_home("me", (12, 13), tmp_path, "0::/agent.service\n")
    assert found.home == base / "subak-me"
    assert (base / "agent" / "cgroup.procs").read_text() == "13"  # the last that was written; Linux takes each
    assert (base / "cgroup.subtree_control").read_text() == "+cpu"


@pytest.mark.parametrize("own", ["", "0::/elsewhere\n", "4:memory:/x\n"])
def test_where_there_is_no_tree_there_are_no_groups(tmp_path, own):
    fake_tree(tmp_path)
    assert find_home("me", (), tmp_path, own) is None


def test_a_group_has_its_limits_written_where_linux_has_a_file_for_them(tmp_path):
    groups, key = Cgroups(tmp_path, frozenset({"memory", "cpu"})), Key(3, 1)
    (tmp_path / "3.1").mkdir()
    for name in ("memory.max", "memory.oom.group", "cpu.weight"):
        (tmp_path / "3.1" / name).write_text("max")
    assert groups.make(attempt(3, "true", memory=4096, cpu=2000)) == groups.path(key) == tmp_path / "3.1"
    found = {path.name: path.read_text() for path in (tmp_path / "3.1").iterdir()}
    assert found == {"memory.max": "4096", "memory.oom.group": "1", "cpu.weight": "200"}  # no swap is counted there


def test_who_cannot_be_killed_is_told_when_the_time_is_over(monkeypatch):
    """A process that waits for a disk dies no earlier than it answers."""
    monkeypatch.setattr(proc, "children", lambda _: [4_194_305])  # no number that a process has
    began = time.monotonic()
    assert proc.kill_children(0.05) == [4_194_305]
    assert time.monotonic() - began < 5.0


def test_who_leaves_an_agent_keeps_no_file_open(tmp_path):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "socket"))
        agent.listen()
        before = len(list(Path("/proc/self/fd").iterdir()))
        left = AgentClient(tmp_path / "socket")
        left.close()
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_who_was_killed_for_its_memory_is_told_from_others(tmp_path):
    groups = Cgroups(tmp_path, frozenset({"memory"}))
    for number, kills in ((1, 0), (2, 3)):
        folder = tmp_path / f"{number}.1"
        folder.mkdir()
        (folder / "memory.events").write_text(f"low 0\nmax 9\noom {kills}\noom_kill {kills}\n")
        (folder / "memory.peak").write_text("8192\n")
        (folder / "cgroup.events").write_text(f"populated {number - 1}\nfrozen 0\n")
    assert [groups.ran_out_of_memory(Key(number, 1)) for number in (1, 2, 3)] == [False, True, False]
    assert [groups.is_empty(Key(number, 1)) for number in (1, 2)] == [True, False]
    assert groups.memory(Key(1, 1)) == 8192


@pytest.fixture
def grouped():
    """A machine whose agent uses control groups, if only to kill by."""
    found = find_home("test", ())
    if found is None:
        pytest.skip("this machine lets nobody make control groups of version 2")
    found.close()
    made = Machine("--lease", 600, "--cgroups", "always")
    yield made
    made.close()


def test_a_group_is_left_by_nobody(grouped):
    grouped.up()
    grouped.client.start(attempt(2, "sleep", 600))  # so that nobody but the group can say whose it is
    grouped.begun(2)
    stranger = grouped.stranger()
    stranger.list()
    assert f"cgroup {group_folder(grouped)} (" in stranger.limits
    stranger.close()
    here = "(env -i setsid sh -c 'cat /proc/self/cgroup > $0; sleep 600 & sleep 600' {} &); "
    script = here.format(grouped.here / "where") + 'while [ ! -s "$0" ]; do sleep 0.01; done; exit 3'
    ending = grouped.run(attempt(1, "/bin/sh", "-c", script, grouped.here / "where"))
    assert (ending.reason, ending.code) == (EXITED, 3)
    where = (grouped.here / "where").read_text()
    assert f"subak-{grouped.identity}/1.1" in where
    assert len([pid for pid in proc.children(grouped.agent) if alive(pid)]) == 1
    until(lambda: len(proc.children(grouped.agent)) == 1)  # when it has noticed that they ended
    assert [path.name for path in group_folder(grouped).glob("*.1")] == ["2.1"]


def test_groups_of_an_agent_that_died_are_emptied_and_removed(grouped):
    grouped.up()
    grouped.client.start(attempt(1, "/bin/sh", "-c", "(env -i setsid sleep 600 &); exec sleep 600"))
    grouped.begun(1)
    home = group_folder(grouped)
    until(lambda: len((home / "1.1" / "cgroup.procs").read_text().split()) == 2)
    os.kill(grouped.guard.pid, 19)
    grouped.kill(grouped.agent, grouped.guard.pid)
    grouped.wait()
    assert (home / "1.1" / "cgroup.procs").read_text()
    grouped.up()
    assert not (home / "1.1").exists()
    grouped.guard.terminate()
    assert grouped.wait() == 0
    assert not home.exists()


def group_folder(machine):
    return find_home(machine.identity, ()).home


# output


def test_what_cannot_be_given_back_to_the_disk_is_said():
    with pytest.raises(OSError, match="/dev/null"):
        output.punch(Path("/dev/null"), 0, 4096)


def test_old_output_goes_when_there_is_too_much(tmp_path):
    outputs = Outputs(tmp_path / "output", limit=8192, kept_bytes=3 * 8192)
    for number in range(6):
        files = outputs.open(Key(number, 1))
        os.write(files[0], bytes([65 + number]) * 8192)
        for file in files:
            os.close(file)
        outputs.end(Key(number, 1))
    assert sorted(path.name for path in outputs.folder.iterdir()) == ["3.1.out", "4.1.out", "5.1.out"]
    assert outputs.read(Key(0, 1), "out", 5, 10) == (5, b"", 0)
    again = Outputs(tmp_path / "output", limit=8192, kept_bytes=3 * 8192, kept=2)
    again.end(Key(9, 1))
    assert sorted(path.name for path in outputs.folder.iterdir()) == ["4.1.out", "5.1.out"]


@given(st.lists(st.integers(1, 20_000), max_size=12), st.integers(4096, 30_000))
@settings(max_examples=40, deadline=None)
def test_what_is_read_is_the_end_of_what_was_written(tmp_path_factory, sizes, limit):
    outputs = Outputs(tmp_path_factory.mktemp("output"), limit=limit)
    out, error = outputs.open(KEY)
    written = b""
    for place, size in enumerate(sizes):
        part = bytes([1 + place]) * size
        os.write(out, part)
        written += part
        outputs.trim([KEY])
        offset, data, _ = outputs.read(KEY, "out", 0, 1 << 20)
        assert data == written[offset:]
        assert min(limit, len(written)) <= len(data) < limit + 4096
        assert os.fstat(out).st_blocks * 512 <= limit + 3 * 4096
    os.close(out)
    os.close(error)


@given(st.lists(st.sampled_from([b"", b"a", b"bcd", b"e" * 9]), max_size=8), st.booleans(), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_the_last_lines_are_those_of_splitlines(tmp_path_factory, lines, ends, count):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "OUTPUT_BYTES_MAX", 4)  # lines lie over several blocks
        outputs = Outputs(tmp_path_factory.mktemp("output"))
        out, error = outputs.open(KEY)
        written = b"\n".join(lines) + (b"\n" if ends else b"")
        os.write(out, written)
        begin, data, total = outputs.read(KEY, "out", 0, 100, count)
        assert written[begin:] == b"".join(written.splitlines(keepends=True)[-count:]) and total == len(written)
        assert data == written[begin:][:4]
        assert outputs.read(KEY, "out", -3, 100)[:2] == (max(len(written) - 3, 0), written[-3:])
        os.close(out)
        os.close(error)


# whose a process is


def test_members_are_those_of_the_session_and_descendants():
    every = {10: Process(1, 10, False, 1, 0.0), 11: Process(10, 10, False, 1, 0.0),
             12: Process(11, 12, False, 1, 0.0), 13: Process(12, 12, True, 1, 0.0), 14: Process(1, 10, False, 1, 0.0),
             20: Process(1, 20, False, 1, 0.0), 21: Process(1, 99, False, 1, 0.0), 22: Process(21, 98, False, 1, 0.0),
             30: Process(1, 30, False, 1, 0.0), 1: Process(0, 1, False, 1, 0.0)}
    assert members([10, 20], {21: 20}, every) == {10: [10, 11, 12, 14], 20: [20, 21, 22]}


def test_what_hides_whose_it_is_is_killed_with_the_last_that_it_may_be_of(tmp_path, monkeypatch):
    killed = []
    made = Running("me", Outputs(tmp_path / "output"), None)
    for number in (1, 2):
        made.runs[Key(number, 1)] = made.mains[100 + number] = Run(Key(number, 1), 100 + number, 0, False)
    monkeypatch.setattr(proc, "children", lambda _: [*made.mains, 7])
    monkeypatch.setattr(proc, "look_at", lambda pid: Process(1, pid, False, 0, 0.0))
    monkeypatch.setattr(proc, "environment", lambda _: {})
    monkeypatch.setattr(running, "send", lambda pid, *_: killed.append(pid))
    made.adopt()
    del made.runs[Key(1, 1)], made.mains[101]
    made.runs[Key(3, 1)] = made.mains[103] = Run(Key(3, 1), 103, 0, False)
    made.adopt()
    assert killed == []
    del made.runs[Key(2, 1)], made.mains[102]
    made.adopt()
    assert killed == [7]


def test_what_comes_late_of_an_attempt_that_is_over_is_killed(tmp_path, monkeypatch):
    killed = []
    made = Running("me", Outputs(tmp_path / "output"), None)
    made.runs[Key(1, 1)] = made.mains[101] = Run(Key(1, 1), 101, 0, False)
    marks = {7: {"SUBAK_AGENT": "me", "SUBAK_TASK": "9", "SUBAK_ATTEMPT": "1"},
             8: {"SUBAK_AGENT": "me", "SUBAK_TASK": "1", "SUBAK_ATTEMPT": "1"}}
    monkeypatch.setattr(proc, "children", lambda _: [101, 7, 8])
    monkeypatch.setattr(proc, "look_at", lambda pid: Process(1, pid, False, 0, 0.0))
    monkeypatch.setattr(proc, "environment", marks.get)
    monkeypatch.setattr(running, "send", lambda pid, *_: killed.append(pid))
    made.adopt()
    assert killed == [7]


# frames, settings


def test_frames_in_any_pieces():
    sent = [frame(number, Start(attempt(number, "x" * number))) for number in range(1, 40)]
    text, frames, bodies = b"".join(sent), Frames(), []
    for at in range(0, len(text), 7):
        frames.add(text[at:at + 7])
        bodies += frames.cut()
    assert [read_request(body)[0] for body in bodies] == list(range(1, 40))
    assert frames.waiting == b""


def test_a_frame_that_is_too_long_is_not_waited_for():
    frames = Frames()
    frames.add(frame(1, Ping()) + (FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
    cut = frames.cut()
    assert read_request(next(cut)) == (1, Ping())
    with pytest.raises(WireError, match="a frame of 1048577 bytes; at most 1048576 are allowed"):
        next(cut)
    with pytest.raises(WireError, match="at most 1048576 are allowed"):
        frame(1, Start(attempt(1, *(100_000 * "x" for _ in range(11)))))


@pytest.mark.parametrize(("change", "words"), [
    ({"machine": -1}, "--machine must be"), ({"lease_s": 0.0}, "--lease must be"),
    ({"lease_grace_s": 31.0}, "--lease-grace must be within half of --lease"), ({"room": 0}, "--attempts must be"),
    ({"output_bytes": 1}, "--output must be"), ({"kept_bytes": -1}, "--kept must not be"),
    ({"lease_s": float("nan")}, "--lease must be"),
])
def test_settings_that_no_agent_can_work_with(tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        checked(Settings(tmp_path, 3)._replace(**change))


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="nobody else may write to it"):
        open_state(tmp_path)


def test_a_path_that_is_too_long_for_a_socket_is_refused(tmp_path):
    with pytest.raises(InputError, match="a socket's path has at most 107 bytes"):
        Agent(Settings(tmp_path / ("x" * 100), 3))


def test_an_agent_that_has_no_more_files_goes_on(tmp_path):
    machine = Machine("--lease", 600)
    try:
        machine.up()
        usual = resource.prlimit(machine.agent, resource.RLIMIT_NOFILE)
        resource.prlimit(machine.agent, resource.RLIMIT_NOFILE, (14, usual[1]))
        others = [machine.stranger() for _ in range(10)]
        ending = machine.run(attempt(1, "true"))
        assert (ending.code, "Too many open files" in ending.words) == (126, True) or ending.is_good
        resource.prlimit(machine.agent, resource.RLIMIT_NOFILE, usual)
        assert machine.run(attempt(2, "true")).is_good
        for other in others:
            other.close()
    finally:
        machine.close()


def test_news_of_an_end_is_news_of_that_attempt():
    assert Exited(KEY, Ending(EXITED)).ending.is_good
    assert not Ending(EXITED, 1).is_good
    assert str(KEY) == "task 7, attempt 2"
