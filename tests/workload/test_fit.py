"""Fitting: data of known parameters give them back, censored or not, and `subak fit` as a user meets it."""
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pytest
from scipy import stats

from published import trace
from subak.errors import InputError
from subak.resources import Resource
from subak.workload.google_like import estimates, goodness, small_models
from subak.workload.google_like import fit as fit_file
from subak.workload.google_like.fit import JOB_GAPS, fit
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.parameters import (
    Constraints,
    Diurnal,
    Failures,
    Jobs,
    Parameters,
    Queues,
    RequestClass,
    Stages,
    read_parameters,
    write_parameters,
)
from subak.workload.predicates import Constraint
from subak.workload.readers import swf, tr
from subak.workload.readers.options import Options
from subak.workload.samples import sample_folder
from subak.workload.table import make_workload, read_workload

CPU = (Resource("cpu", 1e-3, "cores"),)
SEEDS = range(20)
# An interval of 95 % covers in all 20 seeds but one on average. Fewer than 16 of 20 would happen once in 390 tries
# (binomial, p = 0.95), so that is the rule, chosen before looking.
COVERED_MIN = 16
TRUTH = {"dynamism": 0.05, "gap_shape": 4.0, "type": 0.7, "tasks.mass": 1700.0, "tasks.disparity": 3.8,
         "services.mass": 8000.0, "services.disparity": 24.0}


def test_the_rule_of_16_is_what_it_says():
    assert 1 / stats.binom.cdf(COVERED_MIN - 1, 20, 0.95) == pytest.approx(390, rel=0.02)


def lognormal(mass, disparity, count, random):
    return stats.lognorm.rvs(np.sqrt(2 * np.log(disparity)), scale=mass / disparity, size=count, random_state=random)


def drawn(seed, count=20_000, window=None):
    """A workload drawn by scipy with the paper's laws; with *window* its end hides kinds and ends, as Google's does."""
    random = np.random.default_rng(seed)
    arrival = np.cumsum(stats.lomax.rvs(4, scale=3 * 0.05, size=count, random_state=random))
    service = random.random(count) >= 0.7
    run_time = np.where(service, lognormal(8000, 24, count, random), lognormal(1700, 3.8, count, random))
    outcome = np.where(service, "KILL", "FINISH")
    if window is not None:
        censored = arrival + run_time > window
        run_time = np.where(censored, window - arrival, run_time)
        outcome = np.where(censored, "CENSORED", outcome)
        service = service | censored
    return table(arrival, run_time, service, outcome if window else None)


def table(arrival, run_time, service=None, outcome=None):
    """A workload of two jobs, the tasks and the services."""
    count = len(arrival)
    service = np.zeros(count, bool) if service is None else service
    tasks = {"stage": service.astype(np.uint32), "index": np.arange(count), "arrival": arrival, "run_time": run_time}
    stages = pl.DataFrame(
        {"job": [0, 1], "name": ["0", "0"], "depends_on": [[], []], "kind": ["TASK", "SERVICE"], "priority": [0, 9],
         "constraints": [[], []], "cpu": [0.5, 2.0]},
        schema_overrides={"depends_on": pl.List(pl.UInt32), "constraints": pl.List(
            pl.Struct({"attribute": pl.String, "operator": pl.String, "value": pl.String}))})
    jobs = pl.DataFrame({"job": ["t", "s"], "queue": ["a/b/c", "a/b/d"], "user": ["c", "d"]})
    return make_workload(jobs, stages, pl.DataFrame(tasks if outcome is None else {**tasks, "outcome": outcome}), CPU)


def fitted(workloads, censored="account"):
    """The fits of some workloads; of all but the first without comparing laws, of which estimates know nothing."""
    first, *others = workloads
    fits = [fit(first, censored=censored)]
    with mock.patch.object(fit_file, "_comparisons", lambda *_: ()):
        return fits + [fit(each, censored=censored) for each in others]


def covered(fits, truth):
    return {name: sum(each.estimates[name].covers(value) for each in fits) for name, value in truth.items()}


# Known parameters


def test_the_papers_parameters_come_back():
    counts = covered(fitted([drawn(seed) for seed in SEEDS]), TRUTH)
    assert min(counts.values()) >= COVERED_MIN, counts


def test_what_is_still_running_at_the_windows_end_is_accounted_for():
    """A window of twice the arrivals' span hides a good part of the makespans and which kind they are of."""
    workloads = [drawn(seed, window=2000.0) for seed in SEEDS]
    hidden = (workloads[0].tasks["outcome"] == "CENSORED").mean()
    assert 0.2 < hidden < 0.6
    counts = covered(fitted(workloads), TRUTH)
    assert min(counts.values()) >= COVERED_MIN, counts
    blind = fitted(workloads, "ignore")
    assert covered(blind, TRUTH)["tasks.mass"] == covered(blind, TRUTH)["services.mass"] == 0
    assert np.mean([each.parameters.services.mass for each in blind]) < 0.2 * 8000
    assert any("as asked" in note for note in blind[0].notes)


def test_known_kinds_are_fitted_apart():
    """Where tasks proper are among the censored, the reader knew the kinds."""
    hits = 0
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        run_time, limit = lognormal(1700, 3.8, 5000, random), random.uniform(100, 3000, 5000)
        seen = run_time <= limit
        law = estimates.fit_log_normal(estimates.ended(run_time[seen], "x"), estimates.last_seen(limit[~seen]))
        hits += law.mass.covers(1700)
        naive = estimates.fit_log_normal(estimates.ended(run_time[seen], "x"), estimates.last_seen(np.empty(0)))
        assert naive.mass.value < 0.5 * 1700
    assert hits >= COVERED_MIN


def test_data_of_one_law_rank_that_law_first():
    random = np.random.default_rng(3)
    laws = {"log-normal": stats.lognorm(1.4, scale=500), "Weibull": stats.weibull_min(0.6, scale=500),
            "gamma": stats.gamma(0.5, scale=900), "Pareto from 0": stats.lomax(2.5, scale=700),
            "Pareto from the least": stats.pareto(1.2, scale=30)}
    for name, law in laws.items():
        found = goodness.compare(name, law.rvs(50_000, random_state=random))
        assert found.laws[0].name == name, name
        assert found.laws[0].distance < 0.01
        own = dict(zip(law.dist.shapes.split(", "), law.args, strict=True)) | {"scale": law.kwds["scale"]}
        assert {key: found.laws[0].parameters[key] for key in own} == pytest.approx(own, rel=0.05)


def test_distance_agrees_with_scipy():
    random = np.random.default_rng(4)
    for values in (random.exponential(3, 500), np.repeat(random.exponential(3, 50), 7)):
        law = stats.lomax(3, scale=5)
        ours = goodness.distance(np.sort(values), law)
        assert ours == pytest.approx(stats.kstest(values, law.cdf).statistic, abs=1e-12)


def test_weibull_and_gamma_agree_with_scipy():
    values = np.random.default_rng(5).gamma(0.7, 100, 3000)
    shape, _, scale = stats.weibull_min.fit(values, floc=0)
    assert goodness.weibull(values).kwds == pytest.approx({"c": shape, "loc": 0, "scale": scale}, rel=1e-3)


def test_the_papers_pareto_law_is_the_one_that_starts_at_the_least():
    """0.113 and 0.073 follow from mu = 6.25: 1 / (6.25 - ln 0.073)."""
    values = np.exp(np.array([np.log(0.073), 2 * 6.25 - np.log(0.073)]))
    law = goodness.pareto_from_least(values)
    assert law.kwds["b"] == pytest.approx(0.113, abs=5e-4)
    assert law.kwds["scale"] == pytest.approx(0.073)


# By hand


def test_closed_forms_by_hand():
    law = estimates.fit_log_normal(estimates.ended(np.exp([1.0, 3.0]), "x"), estimates.last_seen(np.empty(0)))
    assert (law.mu.value, law.sigma.value) == pytest.approx((2.0, 1.0))
    assert (law.mass.value, law.disparity.value) == pytest.approx((np.exp(2.5), np.exp(0.5)))
    share = estimates.share_of(5, 10)
    assert (share.value, share.low, share.high) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)  # Wilson
    assert estimates.share_of(0, 10).low == 0


def test_numerical_likelihood_agrees_with_the_closed_form():
    """One censored at nearly no time at all says nothing."""
    run_times = lognormal(10, 2, 400, np.random.default_rng(0))
    exact = estimates.fit_log_normal(estimates.ended(run_times, "x"), estimates.last_seen(np.empty(0)))
    found = estimates.fit_log_normal(estimates.ended(run_times, "x"), estimates.last_seen(np.array([1e-9])))
    for name in ("mu", "sigma", "mass", "disparity"):
        one, other = getattr(exact, name), getattr(found, name)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=1e-4)


def test_truncated_exponential_and_zipf_come_back():
    hits = {"rate": 0, "exponent": 0}
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        values = -np.log1p(random.random(20_000) * np.expm1(-6.0)) / 6.0
        hits["rate"] += estimates.fit_truncated_exponential(values).covers(6.0)
        weights = np.arange(1, 11) ** -1.2  # few users, so that their ranks are certain
        hits["exponent"] += estimates.fit_zipf(random.multinomial(20_000, weights / weights.sum())).covers(1.2)
    assert min(hits.values()) >= COVERED_MIN, hits


def test_job_sizes_come_back():
    random = np.random.default_rng(8)
    sizes = np.where(random.random(200_000) < 0.6, 1, 1 + np.floor(lognormal(30, 4, 200_000, random))).astype(np.int64)
    found = small_models.fit_jobs(sizes)
    assert found.jobs.single == pytest.approx(0.6, abs=0.01)
    assert (found.jobs.mass, found.jobs.disparity) == pytest.approx((30, 4), rel=0.05)
    assert (found.model.mean, found.model.p99) == pytest.approx((found.data.mean, found.data.p99), rel=0.05)
    assert small_models.fit_jobs(np.ones(5, np.int64)).jobs is None


def test_rare_requests_join_the_nearest_and_the_total_is_kept():
    tasks = pl.DataFrame({"cpu": [1000] * 6 + [4000] * 3 + [1100], "memory": [10] * 10})
    both = (Resource("cpu", 1e-3), Resource("memory", 1.0))
    classes = small_models.fit_requests(tasks, both, 2)
    assert [each.share for each in classes] == pytest.approx([0.7, 0.3])
    assert classes[0].amounts == pytest.approx({"cpu": 7.1 / 7, "memory": 10})
    assert small_models.fit_requests(tasks, both, 9)[2].amounts == pytest.approx({"cpu": 1.1, "memory": 10})


def test_a_daily_wave_comes_back_and_none_is_made_up():
    random = np.random.default_rng(9)
    even = np.sort(random.uniform(0, 5 * 86_400, 40_000))
    kept = even[random.random(len(even)) < (1 + 0.5 * np.sin(2 * np.pi * (even - 20_000) / 86_400)) / 1.5]
    found, estimate = small_models.fit_diurnal(kept)
    assert estimate.covers(0.5)
    assert found.phase == pytest.approx(20_000, abs=900)
    assert small_models.fit_diurnal(even)[0] is None
    assert small_models.fit_diurnal(kept[kept < 1.9 * 86_400]) == (None, None)


def test_frequencies_of_constraints_undo_at_least_one():
    truth = np.array([0.6, 0.3, 0.2])
    any_drawn = 1 - np.prod(1 - truth)
    assert small_models.independent_frequencies(truth / any_drawn) == pytest.approx(truth)
    alone = small_models.independent_frequencies(np.array([0.7, 0.3]))  # they exclude each other
    assert alone / alone.sum() == pytest.approx([0.7, 0.3])
    assert alone.sum() < 0.01


def test_tasks_that_were_there_before_are_no_arrivals():
    whole = drawn(1, 5000)
    arrival, run_time = (whole.tasks[name].to_numpy() for name in ("arrival", "run_time"))
    standing = table(np.append(np.zeros(500), arrival + 600), np.append(np.full(500, 50_000.0), run_time))
    found = fit(standing)
    assert found.estimates["dynamism"].value == pytest.approx(np.diff(arrival).mean())
    assert found.notes[0].startswith("500 tasks come at once, 600 s before")


def test_gaps_of_zero_count_in_the_mean_only():
    random = np.random.default_rng(2)
    arrival = np.repeat(np.cumsum(stats.lomax.rvs(4, scale=3, size=20_000, random_state=random)), 2)
    found = fit(table(arrival, lognormal(100, 2, 40_000, random)))
    assert found.estimates["dynamism"].value == pytest.approx(0.5, rel=0.05)
    assert found.estimates["gap_shape"].covers(4.0)
    assert any("20,000 of 39,999 gaps are 0" in note for note in found.notes)


# Generated data


SMALL = Parameters(
    jobs=Jobs(single=0.5, mass=6.0, disparity=1.6, most=200), queues=Queues(users=8, exponent=1.1, departments=2),
    constraints=Constraints(0.3, ((Constraint("a", "=", "1"), 0.7), (Constraint("b", "=", "1"), 0.5))),
    requests=(RequestClass(0.8, {"cpu": 0.1, "memory": 0.1}), RequestClass(0.2, {"cpu": 0.2, "memory": 0.3})),
    stages=Stages(0.2, 3, 0.5), failures=Failures(0.05, 0.0),
)


def generated(folder: Path, parameters: Parameters, seed: int, tasks: int):
    folder.mkdir()
    write_generated(folder, parameters, seed, Length(tasks=tasks))
    return read_workload(folder)


def test_generated_workloads_give_their_parameters_back(tmp_path):
    fits = fitted([generated(tmp_path / str(seed), Parameters(), seed, 20_000) for seed in SEEDS])
    counts = covered(fits, TRUTH | {"task_priority_rate": 6.0, "service_priority_rate": 3.0})
    assert min(counts.values()) >= COVERED_MIN, counts
    assert fits[0].parameters.jobs is fits[0].parameters.priorities is None


def test_generated_jobs_give_their_parameters_back(tmp_path):
    fits = fitted([generated(tmp_path / str(seed), SMALL, seed, 25_000) for seed in SEEDS])
    truth = TRUTH | {"constraints.rate": 0.3, "queues.exponent": 1.1, "failures.fail": 0.05}
    counts = covered(fits, truth)
    assert min(counts.values()) >= COVERED_MIN, counts
    found = fits[0].parameters
    assert (found.jobs.mass, found.jobs.disparity) == pytest.approx((6.0, 1.6), rel=0.1)
    assert {str(each): frequency for each, frequency in found.constraints.choices} == pytest.approx(
        {"a = 1": 0.7, "b = 1": 0.5}, abs=0.04)
    assert (found.queues.users, found.queues.departments) == (8, 2)
    assert [each.share for each in found.requests] == pytest.approx([0.8, 0.2], abs=0.05)
    assert JOB_GAPS in [each.name for each in fits[0].comparisons]


def test_a_generated_day_comes_back(tmp_path):
    parameters = Parameters(dynamism=20.0, diurnal=Diurnal(0.4, phase=30_000.0))
    found = fit(generated(tmp_path / "w", parameters, 1, 20_000))
    assert found.estimates["diurnal.amplitude"].covers(0.4)
    assert found.parameters.diurnal.phase == pytest.approx(30_000, abs=1500)
    assert "part of the daily wave" in found.notes[-1]


# Any workload


def test_every_reader_s_workload_fits_and_its_file_is_read_again(tmp_path):
    (tmp_path / "x.tr").write_text("".join(f"{3 * row}.5 2 10 {5 + row} {row + 9}\n" for row in range(30)))
    lines = (f"{row + 1} {7 * row + row % 3} 0 {10 + row**2} 4 -1 -1 {1 + row % 3} 60 -1 1 {row % 4} 1 1 1 -1 -1 -1\n"
             for row in range(40))
    (tmp_path / "x.swf").write_text("; MaxProcs: 8\n" + "".join(lines))
    for reader, name in ((tr, "x.tr"), (swf, "x.swf")):
        found = fit(reader.read(tmp_path / name, Options(), lambda count: None).workload)
        path = tmp_path / f"{name}.toml"
        write_parameters(found.parameters, path)
        assert read_parameters(path) == found.parameters
    assert found.parameters.queues.users == 4


@pytest.mark.parametrize(("reader", "parts"), [(tr, ("tr", "GOOG_subtrace.tr.gz")),
                                               (swf, ("swf", "NASA-iPSC-1993-3.1-cln.swf.gz"))])
def test_real_traces_fit(reader, parts, tmp_path):
    found = fit(reader.read(trace(*parts), Options(), lambda count: None).workload)
    assert found.parameters.type == 1.0
    folder = tmp_path / "w"
    assert len(generated(folder, found.parameters, 1, 5000).tasks) == 5000


def test_the_sample_fits_and_generates(tmp_path):
    found = fit(read_workload(sample_folder()))
    assert found.parameters.tasks.mu == pytest.approx(6.05, abs=0.05)
    assert found.comparisons[2].laws[0].name == "log-normal"
    assert len(generated(tmp_path / "w", found.parameters, 1, 5000).tasks) == 5000


# Errors and the command line


def test_errors_are_worded():
    times = np.arange(10.0)
    cases = {
        "needs 3 tasks": table(times[:1], times[:1] + 1),
        "arrive at once": table(np.zeros(10), times + 1),
        "disparity (mean / median) must exceed 1": table(times, np.full(10, 5.0)),
        "no kind has 2 tasks": table(times, np.zeros(10)),
        "needs 2 gaps above 0": table(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0])),
    }
    for words, workload in cases.items():
        with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
            fit(workload)


def test_fit_prints_and_writes(run, tmp_path):
    out, chart = tmp_path / "p.toml", tmp_path / "c.svg"
    code, text, _ = run("fit", sample_folder(), "--out", out, "--chart", chart)
    assert code == 0
    for words in ("tasks.mass", "Makespans of services", "Pareto from the least", "Tasks per job", "right-censored"):
        assert words in text
    assert read_parameters(out).jobs is not None
    assert "<svg" in chart.read_text()
    code, _, error = run("fit", sample_folder(), "--out", out)
    assert code == 2
    assert "exists already" in error


def test_mistakes_are_one_line(run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    one = tmp_path / "one"
    one.mkdir()
    table(np.arange(1.0), np.arange(1.0) + 1).write(one)
    same = tmp_path / "same"
    same.mkdir()
    table(np.arange(9.0), np.full(9, 3.0)).write(same)
    for folder, words in ((tmp_path / "none", "no such folder"), (empty, "no such file"), (one, "needs 3 tasks"),
                          (same, "must exceed 1")):
        code, out, error = run("fit", folder)
        assert (code, out) == (2, "")
        assert words in error
        assert error.count("\n") == 1
    assert "must end in .toml" in run("fit", one, "--out", tmp_path / "x.txt")[2]
    assert "no such folder" in run("fit", one, "--out", tmp_path / "q" / "x.toml")[2]
