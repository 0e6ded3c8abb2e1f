"""`subak reproduce megha --only prototype`: what its tasks are, how it is judged, and a tiny live one."""
import subprocess
import sys
import time

import numpy as np
import pytest

from subak.errors import InputError, RunError
from subak.reproduce import workloads as made
from subak.reproduce.claims import DIFFERS, HOLDS, UNDECIDED, judge_all
from subak.reproduce.megha.experiments import chosen_figures
from subak.reproduce.megha.prototype import burner, federation, figure, work
from subak.reproduce.megha.prototype.published import CLAIMS, KEY
from subak.reproduce.megha.prototype.run import (
    COMMAND,
    End,
    Live,
    message_delay,
    read_ends,
    run_live,
    run_simulated,
    simulated_delay,
)
from subak.reproduce.megha.study import QUICK, Scale

SMALL = work.Size(4.0, 2)


def sample(count=40, run_time=1.0, cpu=4.0):
    """Alike tasks of a unit of memory, one each 10 s."""
    return made.Sample("alike", "by hand", 10.0 * np.arange(count), np.full(count, run_time), np.full(count, cpu),
                       np.full(count, 0.05), np.arange(count))


# -- what it runs ------------------------------------------------------------------------------------------------------


def test_workers_are_equal_parts_of_this_machine(monkeypatch):
    monkeypatch.setattr(work, "usable_cores", lambda: 2)
    assert work.worker_units(120) == (16, 320)  # 2 cores over 120, and 16 GB over 50
    fleet = work.prototype_fleet(work.Size(), seed=1)
    assert fleet.machines["cluster"].value_counts()["count"].to_list() == [40, 40, 40]
    assert fleet.capacity[:, 0].tolist() == [16, 320]


def test_tasks_are_scaled_down_thinned_to_the_load_and_drawn_together(monkeypatch):
    monkeypatch.setattr(work, "usable_cores", lambda: 2)
    long = sample(200)._replace(run_time=np.where(np.arange(200) % 2, 61.0, 1.0))
    found = work.prototype_work("google_19", long, SMALL, seed=1)
    assert (found.run_time == 1.0).all()  # of at most a minute
    assert (found.cpu == 10).all()  # 4 cores over 400, in thousandths
    assert (found.memory == 1).all()
    assert found.arrival[0] == 0
    assert found.arrival[-1] == pytest.approx(SMALL.seconds)
    assert found.load == pytest.approx(found.arrival.size * 10 / (4.0 * 6 * 333))
    assert work.placeable(found.constraints, found.fleet).all()
    large = work.prototype_work("google_19", sample(50_000, run_time=20.0), SMALL, seed=1)
    assert large.load == pytest.approx(0.8, abs=0.03)  # of the workers' cores
    half = work.prototype_work("alibaba", sample(50_000, run_time=20.0), SMALL, seed=1)
    assert half.load == pytest.approx(0.4, abs=0.03)


def test_who_can_be_held_is_who_meets_all_it_asks():
    fleet = work.prototype_fleet(SMALL, seed=3)
    met = work.met_by(fleet)
    assert met.any(axis=0).sum() > 10
    asked = np.vstack([met[0], np.zeros_like(met[0]), np.ones_like(met[0])])
    assert work.placeable(asked, fleet).tolist() == [True, True, bool(met.all(axis=1).any())]


# -- a task ------------------------------------------------------------------------------------------------------------


def test_a_task_ends_when_it_has_used_its_time_and_not_before():
    began = time.monotonic()
    used = burner.burn(0.05, 0.6)
    assert used >= 0.05 * 0.6
    assert used < 0.06  # no more than a period's quota beyond, on a machine however busy
    assert time.monotonic() - began >= 0.6


def test_what_a_task_did_not_get_in_a_period_is_lost_to_it(monkeypatch):
    clock = {"now": 0.0, "used": 0.0}

    def busy():  # every look at the clock takes 30 ms of the machine, of which this process gets a tenth
        clock["now"] += 0.03
        clock["used"] += 0.003
        return clock["used"]
    monkeypatch.setattr(burner.time, "process_time", busy)
    monkeypatch.setattr(burner.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(burner.time, "sleep", lambda seconds: clock.__setitem__("now", clock["now"] + seconds))
    burner.burn(0.5, 1.0)  # half a second of work, which comes at a tenth of a core
    assert 4.5 < clock["now"] < 5.6


# -- how it is judged --------------------------------------------------------------------------------------------------


def made_up(name="google_19", allocation=0.02, delay=0.3, used=1.01, count=60):
    random = np.random.default_rng(5)
    spread, instants = random.random((2, count)) / 1000, np.arange(count) * 1.0
    live = Live(instants, allocation + spread[0], instants, delay + spread[1], np.full(count, used), 1e-3, 2e-3, 5e-5,
                0.5, 0)
    fleet = work.prototype_fleet(SMALL, 1)
    some = np.zeros(count)
    mine = work.Work(name, live.arrival, some + 1.0, np.full(count, 5), np.full(count, 5),
                     np.zeros((count, made.CONSTRAINTS), bool), np.arange(count) % 3, fleet, 0.8)
    return figure.Measured(mine, live, np.full(count, 0.01), np.zeros(count))


def verdicts(*found, alone=0.05):
    shown = figure.figure_of(list(found), alone)
    return {claim.number: row.verdict for claim, row in zip(CLAIMS, judge_all(CLAIMS, [shown]), strict=True)}, shown


def test_claims_are_judged_by_intervals_of_medians():
    of, shown = verdicts(made_up(delay=3.3), made_up("alibaba", delay=1.1))
    assert of == {**dict.fromkeys(of, HOLDS), "delay, alibaba": DIFFERS}  # the paper has 2.15 s
    of, _ = verdicts(made_up(delay=3.3), made_up("alibaba", delay=2.2))
    assert set(of.values()) == {HOLDS}
    of, shown = verdicts(made_up(), made_up("alibaba", delay=0.1))
    assert of["delay, google_19"] == DIFFERS and of["delay ratio"] == HOLDS
    assert shown.numbers["higher, google_19"].value == pytest.approx(2.05, abs=0.05)
    assert shown.numbers["delay, google_19"].value == pytest.approx(0.25, abs=0.01)
    assert shown.numbers["delay ratio"].value == pytest.approx(3.0, abs=0.05)
    assert shown.table["tasks"].to_list() == [60] * 8
    assert set(shown.points["what"]) == {figure.LIVE, figure.SIMULATED, figure.DELAY, figure.SIMULATED_DELAY}
    of, _ = verdicts(made_up(allocation=0.001, used=0.97), made_up("alibaba", delay=0.04))
    assert of == {"higher, google_19": DIFFERS, "higher, alibaba": HOLDS, "delay, google_19": DIFFERS,
                  "delay, alibaba": DIFFERS, "delay ratio": HOLDS, "used": DIFFERS}


def test_equal_samples_cannot_be_told_apart():
    first, second = made_up(), made_up("alibaba")
    of, _ = verdicts(first, second._replace(live=second.live._replace(delay=first.live.delay[::-1].copy())))
    assert of["delay ratio"] == UNDECIDED


def test_an_attempt_that_a_signal_ended_is_lost_and_its_task_began_when_it_did():
    lines = ["g0-1 10 12 -15 nothing", "g0-2 11 14 0 0.5", "g0-1 20 23.5 0 0.25"]
    assert read_ends(lines[:2]) == ({"g0-2": End(11, 11, 14, 0.5)}, 1)
    assert read_ends(lines) == ({"g0-1": End(10, 20, 23.5, 0.25), "g0-2": End(11, 11, 14, 0.5)}, 1)
    with pytest.raises(RunError, match="the task of job g0-3 ended with exit code 1"):
        read_ends(["g0-3 1 2 1 nothing"])


def test_it_is_run_when_it_is_asked_for_only():
    assert KEY not in chosen_figures(None, False)
    assert KEY not in chosen_figures(None, True)
    assert chosen_figures("3,prototype", False) == ["3", KEY]
    assert QUICK.prototype_seconds < Scale().prototype_seconds


def test_a_machine_that_cannot_run_it_is_told_what_it_lacks(monkeypatch):
    monkeypatch.setattr(federation, "MEMORY_MIB", 1 << 40)
    monkeypatch.setattr(federation.sys, "platform", "darwin")
    with pytest.raises(InputError) as caught:
        federation.refuse_unable()
    assert str(caught.value) == ("prototype: a live federation on this machine needs Linux and 1,099,511,627,776 MiB "
                                 "of free memory")


# -- live --------------------------------------------------------------------------------------------------------------


def test_a_tiny_one_runs_live_and_simulated():
    tiny = work.prototype_work("google_19", sample(60, run_time=0.5, cpu=20.0), work.Size(2.0, 1), seed=1)
    tiny = tiny._replace(**{name: getattr(tiny, name)[:9] for name in (
        "arrival", "run_time", "cpu", "memory", "constraints", "queue")})
    told = []
    live = run_live(tiny, lambda label, part: told.append(part))
    assert (live.used >= 1.0).all()
    assert (live.delay > 0).all()
    assert (live.allocation > 0).all()
    assert 0 < live.of_local_master < 1
    assert 0 < live.of_global_master < 1
    assert told[0] == 0
    assert told[-1] == 1
    run = run_simulated(tiny, live, 1, lambda label, part: None)
    assert (run.tasks, run.unplaceable, run.unstarted) == (9, 0, 0)
    least = live.of_global_master + live.of_local_master + 2 * live.message
    assert run.allocation.min() >= least  # a master of each sort serves it once at least
    assert np.quantile(run.allocation, 0.5) < 100 * least


def test_simulated_delays_are_of_tasks_that_share_all_cores():
    mine, live, *_ = made_up(count=4)
    cores = int(mine.fleet.capacity[0].sum())
    mine = mine._replace(run_time=np.full(4, 10.0), cpu=np.full(4, cores // 2 // 10 * 10))
    half = 2 * mine.cpu[0] / cores  # of the cores, what two of them want
    live = live._replace(began=np.array([30.0, 0.0, 1e3, 0.0]))
    assert simulated_delay(mine, live, 1) == pytest.approx(np.zeros(4), abs=1e-9)
    together = live._replace(began=np.zeros(4))
    assert simulated_delay(mine, together, 1) == pytest.approx(np.full(4, 10 * (2 * half - 1)), rel=1e-3)


def test_messages_here_take_microseconds():
    assert 0 < message_delay() < 0.05


def test_the_task_is_a_program_of_its_own():
    done = subprocess.run([*COMMAND, "0.01", "0.2"], capture_output=True, text=True, check=True)
    assert 0.002 <= float(done.stdout) < 0.02
    assert COMMAND[0] == sys.executable
