"""Fairness of a run in chunks is that of the run in memory: files, summary, and what its sweep goes by."""
import numpy as np
import pytest

from small import fleet_of, staged
from subak.experiment import checkpoints
from subak.measures.fairness import measure, spans
from subak.measures.fairness import tally as fair_tally
from subak.simulator.chunks.run import Cut
from test_chunks import both_runs, busy, folders_agree, in_queues


@pytest.mark.parametrize("block", [None, 7, 50])
@pytest.mark.parametrize(("scheduler", "options"), [
    ("first-fit", {"until": 90.0}), ("best-fit+mch", {"measure_from": 20.0, "measure_until": 80.0}),
    ("megha", {"faults": "faults.toml", "measure_from": 20.0})])
def test_its_fairness_is_that_of_the_run_in_memory(tmp_path, scheduler, options, block, monkeypatch):
    """With weights, and attempts that are lost; in spans of a few events."""
    if block is not None:
        monkeypatch.setattr(checkpoints, "Cut", lambda *given: Cut(*given, block=block))
    monkeypatch.setattr(measure, "EVENTS_OF_CHUNK", 30)
    monkeypatch.setattr(spans, "SAMPLE_MIN", 150)
    for name, text in (("queues", '[[queue]]\nname = "q2"\nweight = 3.0'),
                       ("faults", 'loss = 0.05\n[[crash]]\nrole = "local master 0"\nat = 40\nrestart_after = 5')):
        (tmp_path / f"{name}.toml").write_text(text)
    files = {name: str(tmp_path / f"{name}.toml") for name in ("queues", "faults")}
    options = {**options, **({"faults": files["faults"]} if "faults" in options else {})}
    memory, cut = both_runs(tmp_path, scheduler, in_queues(busy(), 4), **options, queues=files["queues"])
    assert memory.summary.attempts_lost > 0 and len(memory.summary.fairness.levels) == 2
    assert (memory.folder / "shares.parquet").is_file()
    folders_agree(memory, cut)


def test_queues_that_change_have_no_fairness(tmp_path):
    (tmp_path / "queues.toml").write_text('[[change]]\ntime = 9\n[[change.queue]]\nname = "q0"\nweight = 3.0')
    memory, cut = both_runs(tmp_path, "megha", in_queues(busy(), 4), queues=str(tmp_path / "queues.toml"))
    assert cut.summary.fairness is None and not (cut.folder / "queues.parquet").exists()
    folders_agree(memory, cut)


@pytest.fixture
def told(monkeypatch):
    """What `fairness_of` is called with, in memory and in chunks; parts are drawn up to be looked at, too."""
    calls, fairness_of = [], measure.fairness_of

    def listening(field, totals, parts):
        calls.append((field, totals, list(parts)))
        return fairness_of(field, totals, calls[-1][-1])

    monkeypatch.setattr(fair_tally, "fairness_of", listening)
    monkeypatch.setattr(spans, "SAMPLE_MIN", 150)
    monkeypatch.setattr(checkpoints, "Cut", lambda *given: Cut(*given, block=7))
    return calls


def often_lost():
    """Tasks of two stages in two queues that never end, on machines that leave and come back again and again."""
    random = np.random.default_rng(5)
    tasks = [(row % 2, arrival, 1e6) for row, arrival in enumerate(np.sort(random.uniform(0, 100, 40)).tolist())]
    changes = [(time, row % 4, row // 4 % 2 == 1, 6.0)
               for row, time in enumerate(np.sort(random.uniform(50, 1000, 64)).tolist())]
    case = staged([{"job": 0, "request": (1.0,)}, {"job": 1, "request": (1.0,)}], tasks)
    return in_queues((case, fleet_of((6,), (6,), (6,), (6,), changes=changes)), 2)


def test_what_a_sweep_is_told_beforehand_is_the_same_to_the_bit(tmp_path, told):
    """Attempts are lost in another order than their tasks arrive, and seconds are added up in that order."""
    memory, _ = both_runs(tmp_path, "first-fit", often_lost(), until=1200.0, measure_until=1200.0)
    assert memory.summary.attempts_lost > 100
    (_, one, _), (_, other, _) = told
    assert one.rows == other.rows == one.tasks.sum() + memory.summary.attempts_lost
    assert one.tasks.tolist() == other.tasks.tolist()
    assert one.held.tobytes() == other.held.tobytes()
    assert np.sort(one.sample).tolist() == np.sort(other.sample).tolist()


def test_no_more_is_kept_than_changes_in_the_time_that_is_measured(tmp_path, told):
    both_runs(tmp_path, "first-fit", in_queues(busy(), 4), measure_from=60.0, measure_until=70.0)
    (field, totals, (whole,)), (_, _, parts) = told
    times = np.stack(whole.trail[1:])
    assert ((times.min(axis=0) < field.span) & (times.max(axis=0) > 0.0)).all()
    assert sum(part.trail.stage.size for part in parts) == whole.trail.stage.size < totals.rows / 2
