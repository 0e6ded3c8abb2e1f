"""The card: who is recommended, by how much, how certainly, at whose cost, and why; on runs worked out by hand."""
import json

import polars as pl
import pytest

from fake_runs import write_run
from subak.measures.run_folders import load_runs
from subak.report.page import write_report
from subak.report.tables.differences import compared
from subak.report.verdict.facts import judged
from subak.report.verdict.placed import classes, long_limit, placed, worse_queues

# Ten tasks of two queues: nine run for 10 s, the last for 1,000 s, which alone is of queue b.
RUN_TIMES = [10.0] * 9 + [1_000.0]
QUEUES = ["a"] * 9 + ["b"]
FIFO = [0.0] + [100.0] * 9  # seconds that tasks wait
SHORT_FIRST = [0.0] * 9 + [500.0]


def write_waits(folder, label, waits, **changes):
    """Write a run of those tasks, which all arrive at once."""
    run = write_run(folder / "runs" / label, label, tasks=500, wait_time={
        "mean": sum(waits) / 10, "median": sorted(waits)[4], "p90": 100.0, "p99": max(waits), "p999": max(waits),
        "max": max(waits)}, slowdown={"mean": 1 + sum(waits) / 100}, waiting={"mean": 1.0, "max": 2.0}, **changes)
    start = pl.Series("start", waits)
    pl.read_parquet(run / "tasks.parquet").head(10).with_columns(
        start, pl.Series("wait_time", waits), pl.Series("run_time", RUN_TIMES), pl.Series("queue", QUEUES),
        (start + pl.Series(RUN_TIMES)).alias("finish"), arrival=pl.lit(0.0), ready=pl.lit(0.0)).write_parquet(
        run / "tasks.parquet")


@pytest.fixture
def runs(tmp_path):
    write_waits(tmp_path, "fifo", FIFO, makespan=1_000.0, utilisation={"cpu": 0.8, "memory": 0.5})
    write_waits(tmp_path, "short-first", SHORT_FIRST, makespan=1_500.0, utilisation={"cpu": 0.6, "memory": 0.7})
    return load_runs(tmp_path)


def facts_of(runs, baseline=0):
    found = judged(runs, compared(runs, baseline), baseline)
    return found, {title: " ".join(said) for title, said in found.facts}


def test_the_least_mean_wait_is_recommended_with_what_it_costs(runs):
    found, facts = facts_of(runs)
    assert (found.headline, found.chosen) == ("short-first", 1)
    assert found.sentence.startswith("short-first has the lowest mean wait time, 50 s; next is fifo with 90 s.")
    assert "Mean wait: 50 s against 90 s of fifo (\u221244.4 %)." in facts["By how much"]
    assert "One run each" in facts["How certain"]
    assert facts["At whose cost"].startswith("Wait time, 99 %: 8.33 min against 100 s of fifo (+400 %). Makespan: ")
    assert "Utilisation, cpu: 60 % against 80 % of fifo (\u221225.0 %)." in facts["At whose cost"]
    assert "memory" not in facts["At whose cost"]
    assert "1 of 2 queues wait longer in the mean; b most: 8.33 min against 100 s." in facts["At whose cost"]
    assert "Tasks of 16.7 min or longer wait 8.33 min in the mean, against 100 s." in facts["At whose cost"]
    assert "It starts 90 % of its tasks at once, fifo 10 %." in facts["Why"]


def test_the_baseline_itself_is_measured_against_the_next_best(runs):
    found, facts = facts_of(runs, baseline=1)
    assert found.headline == "short-first"
    assert "against 90 s of fifo" in facts["By how much"]


def test_who_loses_nothing_is_told_so(tmp_path):
    write_waits(tmp_path, "fifo", FIFO)
    write_waits(tmp_path, "zero", [0.0] * 10)
    _, facts = facts_of(load_runs(tmp_path))
    assert facts["At whose cost"] == "No measure or queue is worse."


def test_equal_schedulers_have_no_winner(tmp_path):
    for name in ("one", "other"):
        write_waits(tmp_path, name, FIFO)
    found, facts = facts_of(load_runs(tmp_path))
    assert (found.headline, found.chosen) == ("None is clearly best", None)
    assert list(facts) == ["How certain"]


def test_seeds_in_which_it_wins_are_counted(tmp_path):
    for seed, (one, other) in enumerate([(FIFO, SHORT_FIRST), (FIFO, SHORT_FIRST), ([0.0] * 10, SHORT_FIRST)], start=1):
        write_waits(tmp_path, f"fifo-s{seed}", one, seed=seed)
        write_waits(tmp_path, f"short-s{seed}", other, seed=seed)
    found, facts = facts_of(load_runs(tmp_path))
    assert found.headline == "None is clearly best"
    assert facts["How certain"] == "Over 3 seeds, the differences do not tell the schedulers apart."


def test_what_seeds_decide_is_said_with_its_interval(tmp_path):
    for seed in range(1, 8):
        write_waits(tmp_path, f"fifo-s{seed}", FIFO, seed=seed)
        write_waits(tmp_path, f"short-s{seed}", [wait + seed for wait in SHORT_FIRST], seed=seed)
    found, facts = facts_of(load_runs(tmp_path))
    assert found.headline == "short"
    assert facts["How certain"].startswith("Over 7 seeds, the 95 % interval of the difference in mean wait")


def test_who_is_told_more_is_not_the_one_to_recommend(tmp_path):
    for label, waits, knows in (("fifo", FIFO, "nothing"), ("told", [0.0] * 10, "run times"),
                                ("short", SHORT_FIRST, "nothing"), ("recorded", [0.0] * 10, "not recorded")):
        write_waits(tmp_path, label, waits, knows=knows)
    found, facts = facts_of(load_runs(tmp_path))
    assert found.headline == "short"
    assert "told" not in facts["By how much"] and "recorded" not in facts["By how much"]
    assert "Knowing run times" in found.sentence


def test_who_goes_by_what_users_estimate_may_be_recommended(tmp_path):
    for label, waits, knows in (("backfill", FIFO, "nothing"), ("told", [0.0] * 10, "run times"),
                                ("easy", SHORT_FIRST, "run times, as users estimate them")):
        write_waits(tmp_path, label, waits, knows=knows)
    found, facts = facts_of(load_runs(tmp_path))
    assert found.headline == "easy"
    assert "told" not in facts["By how much"]


def test_no_reason_is_given_where_none_was_found(tmp_path, runs):
    """Both had started the same tasks by the last arrival, or such as are about as long."""
    assert "last arrival" not in facts_of(runs)[1]["Why"]
    window = {"begin": 0.0, "end": 200.0}
    for label, waits in (("late", FIFO[:5] + [300.0] * 5), ("soon", [0.0] * 6 + [250.0] * 4)):
        write_waits(tmp_path / "of", label, waits, window=window)
    assert facts_of(load_runs(tmp_path / "of"))[1]["Why"].endswith(
        "By the last arrival it had started 6 tasks, of 10 s in the mean; late 5, of 10 s.")
    write_waits(tmp_path / "by", "long", [0.0] * 8 + [300.0, 0.0], window=window)
    write_waits(tmp_path / "by", "short", [150.0] * 9 + [300.0], window=window)
    assert facts_of(load_runs(tmp_path / "by"))[1]["Why"].endswith(": it takes longer tasks first.")


def test_a_lone_run_has_a_sentence_and_no_recommendation(tmp_path):
    write_waits(tmp_path, "fifo", FIFO)
    found, facts = facts_of(load_runs(tmp_path))
    assert (found.headline, found.chosen, facts) == ("fifo", None, {})
    assert "Tasks waited 90 s on average" in found.sentence


def test_what_was_placed_is_counted(runs):
    fifo, short_first = runs
    assert long_limit([fifo]) == 1_000.0
    assert classes([short_first], 1_000.0)[1:] == (0.0, 500.0)
    assert classes([fifo], 1_000.0)[1:] == (pytest.approx(800 / 9), 100.0)
    assert placed([fifo])[:2] == (10, 0.1)
    assert worse_queues([short_first], [fifo]) == (2, 1, "b", 500.0, 100.0)
    assert worse_queues([fifo], [fifo]) is None
    assert worse_queues([fifo], [short_first]) == (2, 1, "a", pytest.approx(800 / 9), 0.0)


def test_services_run_for_ever_and_tasks_that_never_started_count_nowhere(runs):
    folder = runs[0].folder
    tasks = pl.read_parquet(folder / "tasks.parquet")
    none = pl.when(pl.int_range(10) == 0).then(None)
    tasks.with_columns(none.otherwise(pl.col("start")).alias("start"), none.otherwise(pl.col("wait_time")).alias(
        "wait_time"), run_time=pl.lit(float("inf"))).write_parquet(folder / "tasks.parquet")
    assert placed(runs[:1]) == (9, 0.0, None, None)
    assert long_limit(runs[:1]) is None


def test_the_card_is_on_the_page_in_one_place(runs, tmp_path):
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert text.count('class="card-verdict"') == 1
    card = text.partition('class="card-verdict"')[2].partition("</section>")[0]
    for words in ("Recommended", "short-first", "By how much", "How certain", "At whose cost", "Why"):
        assert words in card
    assert json.dumps("short-first") not in card


def test_the_page_says_what_was_measured(tmp_path):
    folder = write_run(tmp_path / "runs" / "one", "one", tasks=500, knows="run times",
                       window={"begin": 60.0, "end": 7200.0, "why": "as asked for", "tasks": 30, "left_out": 12})
    write_run(tmp_path / "runs" / "two", "two", tasks=500)
    page = write_report(folder.parent.parent, tmp_path / "page.html").read_text()
    assert "Measured from 60 s to 2 h (as asked for): 30 tasks that arrive then, 12 that do not" in page
    assert "Know run times before the tasks run: one (run times)." in page
