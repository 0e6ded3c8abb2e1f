"""Real processes are killed under load, and a disk is filled; and whether what checks that would notice."""
import os

import pytest

import chaos
from chaos_disk import fill_and_free
from chaos_stamps import ALIVE, END, START, TWICE, Kill, Stamp, overlaps, repeated, takeovers, wrongs
from live_federation import LOCAL_MASTER, Federation

KILLS, SEED = 20, 1


def stamps(*lines):
    """Return stamps a second apart, each of `what attempt` or `what attempt agent`."""
    found = []
    for at, line in enumerate(lines):
        what, attempt, *agent = line.split()
        found.append(Stamp(what, int(attempt), agent[0] if agent else "w", float(at)))
    return found


def test_twenty_kills_lose_nothing(tmp_path, capsys):
    assert chaos.run(KILLS, SEED, tmp_path) == []
    said = capsys.readouterr().out
    assert f"{KILLS} kills in" in said
    assert "ended by itself" not in said


@pytest.mark.parametrize("may_mount", [True, False])
def test_a_full_disk_refuses_and_loses_nothing(tmp_path, may_mount):
    if may_mount and os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    said, wrong = fill_and_free(tmp_path, may_mount)
    assert wrong == [], said


def test_attempts_one_after_the_other_do_not_overlap():
    one_by_one = stamps(f"{START} 1", f"{ALIVE} 1", f"{START} 2", f"{ALIVE} 2", f"{END} 2")
    assert overlaps(one_by_one) == []
    assert overlaps(stamps(f"{START} 1 w", f"{ALIVE} 1 w", f"{START} 1 v", f"{END} 1 v")) == []  # of another cluster
    assert overlaps(stamps(f"{START} 1 w", f"{START} 1 v", f"{ALIVE} 1 w")) != []
    assert wrongs("t", "finished", one_by_one, []) == []


@pytest.mark.parametrize(("lines", "words"), [
    ((f"{START} 1", f"{START} 2", f"{ALIVE} 1"), "attempt 1 was alive at 2.00 s, after a later one had started"),
    ((f"{START} 1", f"{START} 2", f"{END} 1"), "attempt 1 was alive"),
    ((f"{START} 1", f"{START} 1"), "attempt 1 started twice"),
    ((f"{START} 1", f"{ALIVE} 2"), "attempt 2 says alive before it started"),
    ((f"{START} 1", f"{TWICE} 1"), "attempt 1 runs at 1.00 s beside another that holds the task's lock"),
])
def test_attempts_that_overlap_are_noticed(lines, words):
    assert words in overlaps(stamps(*lines))[0]


def test_a_second_run_is_explained_only_by_the_death_of_those_who_knew_of_the_first():
    twice = stamps(f"{START} 1 w", f"{END} 1 w", f"{START} 2 v", f"{END} 2 v")
    assert repeated(twice, []) == 1
    assert repeated(twice, [Kill("w", 1.2)]) == 0
    for kill in (Kill("v", 1.2), Kill("w", 0.2), Kill("w", 60.0)):
        assert repeated(twice, [kill]) == 1
    assert repeated(twice, [Kill("w", 0.9, lease_s=1.0)]) == 0
    assert repeated(twice, [Kill("w", 0.9, lease_s=1.0, until=1.0)]) == 0
    for kill in (Kill("v", 0.9, lease_s=1.0), Kill("w", 0.9, lease_s=3.0), Kill("w", 1.9, lease_s=0.1),
                 Kill("w", 0.9, lease_s=1.0, until=0.95)):
        assert repeated(twice, [kill]) == 1
    assert "1 times more" in wrongs("t", "finished", twice, [])[0]


def test_what_is_finished_has_run_to_its_end():
    assert wrongs("t", "finished", stamps(f"{START} 1"), []) == ["t: is reported finished, and never ran to its end"]
    assert wrongs("t", "cancelled", stamps(f"{START} 1"), []) == []


def test_a_task_that_may_not_be_lost_and_starts_twice_is_noticed():
    twice = stamps(f"{START} 1 w", f"{START} 2 v")
    assert wrongs("t", "lost", twice, []) == []
    assert wrongs("t", "lost", twice, [], once=True) == ["t: started 2 times, with losses_max 0"]
    assert wrongs("t", "lost", twice[:1], [], once=True) == []


def test_a_takeover_ends_with_the_next_start_of_its_cluster():
    starts = {"t": stamps(f"{START} 1 w", f"{START} 2 v", f"{START} 3 w", f"{START} 4 w")}  # at 0, 1, 2, 3 s
    kills = [("a", 0.5), ("a", 1.9), ("b", 2.0)]
    assert takeovers(starts, kills, {"w": "a", "v": "b"}, 0.2) == [1.5, pytest.approx(1.1)]


def test_a_traceback_in_a_log_is_noticed():
    log = "ready\nTraceback (most recent call last):\n  File x\n    raise\nKeyError: 3\nready\n"
    assert chaos.tracebacks(log) == ["raised KeyError: 3"]
    assert chaos.tracebacks("ready\nended\n") == []


def test_what_a_federation_leaves_is_noticed(tmp_path):
    federation = Federation(tmp_path / "federation", 1, 1, 0, standby=False)
    master = federation.names(LOCAL_MASTER)[0]
    federation.start(master)
    forgotten = federation.running.pop(master)
    try:
        assert str(forgotten.pid) in federation.stop(0.2)[0]
    finally:
        forgotten.kill()
        forgotten.wait()
