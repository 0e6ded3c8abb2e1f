"""Tuning: what is declared, what is tried, that it goes on where it was, and that it is judged elsewhere."""
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from small import plain, some_workload
from subak.cli.commands.tune import page_of
from subak.errors import InputError, PolicyError, RunError
from subak.experiment.scenario import Scenario, read_scenario
from subak.experiment.tuning.question import Question, space_of
from subak.experiment.tuning.result import BETTER, NO_INTERVAL, NOT_BETTER, NOT_FOUND, UNFEASIBLE, WORSE, result_of
from subak.experiment.tuning.study import Search, best_of, importance, open_study, search, values_tried
from subak.federation.settings import Federation, supported_by
from subak.federation.tunable import FEDERATION_PARAMETERS, declared
from subak.measures.objective import read_measure, read_objective
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import SCHEDULERS
from subak.placement.tunable import LOTES_PARAMETERS, Parameter
from subak.policy_files import named_scheduler, parameter
from subak.report import tuning

SPACE = (Parameter("x", 0.0, 10.0), Parameter("n", 0, 10), Parameter("word", words=("a", "b")))
GIVEN = {"x": 9.0, "n": 1, "word": "a"}
POLICY = '''
from subak.policy import next_fitting, parameter, policy

SHARE = parameter("share", 0.5, 0.1, 1.0)
DEPTH = parameter("depth", 3, 1, 32, log=True)

@policy
def some(fleet, tasks, task):
    """First fit on a share of the machines."""
    machine = next_fitting(fleet, tasks, task, 0)
    return machine if machine < SHARE * fleet.machines else -1
'''


def bowl(values):
    """Least at x = 3, word b; n does nothing; two seeds."""
    value = (values["x"] - 3) ** 2 + (values["word"] == "a")
    return [[value], [value + 1]]


def searched(trials, run=bowl, seed=1, objectives=(), study=None, given=GIVEN):
    study = open_study(None) if study is None else study
    search(Search(SPACE, given, list(objectives), seed, run), study, trials, lambda _: None)
    return study


def tried(study):
    return [(trial.value, values_tried(trial)) for trial in study.trials]


# -- what is declared --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [LotesSettings, Federation])
def test_what_is_declared_are_settings_and_their_ranges_are_allowed(settings):
    for each in LOTES_PARAMETERS if settings is LotesSettings else FEDERATION_PARAMETERS:
        usual = getattr(settings(), each.name)
        assert each.holds(usual) or each.name == "cutoff"  # which has no usual value
        assert isinstance(usual, int) == (each.is_whole or each.words == (False, True)) or each.words
        for value in each.words or (each.least, each.most):
            settings(**{each.name: value})


def test_what_is_declared_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text()
    for each in (*LOTES_PARAMETERS, *FEDERATION_PARAMETERS):
        assert f"| `{each.name}` | {each.text} |" in page


def test_each_scheduler_declares_what_it_supports():
    names = {name: [each.name for group in declared(scheduler).values() for each in group]
             for name, scheduler in SCHEDULERS.items()}
    assert names["first-fit"] == names["tetris"] == []
    assert names["hawk"] == ["global_masters", "probe_ratio", "probes_min", "sampling", "cutoff", "short_share",
                             "steal_attempts"]
    assert "heartbeat" in names["megha"]
    assert names["lotes"][0] == "classes"
    assert all(each.name in supported_by(SCHEDULERS[name]) for name in ("megha", "sparrow", "eagle", "pigeon")
               for each in declared(SCHEDULERS[name])["federation"])


def test_a_policy_declares_numbers_and_takes_their_values(tmp_path):
    (tmp_path / "p.py").write_text(POLICY)
    scheduler = named_scheduler(f"{tmp_path}/p.py:some")
    assert [(each.name, each.default, each.is_whole, each.log) for each in scheduler.parameters] == [
        ("share", 0.5, False, False), ("depth", 3, True, True)]
    assert scheduler.select_machine.__globals__["SHARE"] == 0.5
    other = named_scheduler(f"{tmp_path}/p.py:some", {"share": 0.75, "depth": 7.0, "of_another": 1.0})
    assert (other.select_machine.__globals__["SHARE"], other.select_machine.__globals__["DEPTH"]) == (0.75, 7)
    assert scheduler.select_machine.__globals__["SHARE"] == 0.5
    for values, said in (({"share": 2.0}, "share: must be 0.1 to 1, not 2"), ({"depth": 2.5}, "whole, not 2.5")):
        with pytest.raises(PolicyError, match=said):
            named_scheduler(f"{tmp_path}/p.py:some", values)


@pytest.mark.parametrize(("arguments", "said"), [
    (("a b", 1, 0, 2), "name must be"), (("a", 1, 2, 2), "to a larger one"), (("a", 3, 0, 2), "default must be from 0"),
    (("a", 1.5, 0.0, math.inf), "to a larger one"), (("a", 1, 0, 2, True), "more than 0"),
    (("a", "x", 0, 2), "default must be"), (("a", 1.0, math.nan, 2.0), "to a larger one")])
def test_what_could_not_be_looked_for_is_no_parameter(arguments, said):
    with pytest.raises(InputError, match=said):
        parameter(*arguments)


def test_outside_of_a_run_a_parameter_is_its_default():
    assert parameter("depth", 3, 1, 32) == 3


def test_a_name_is_declared_once(tmp_path):
    (tmp_path / "p.py").write_text(POLICY + '\nparameter("share", 0.5, 0.1, 1.0)\n')
    with pytest.raises(PolicyError, match="share: must be declared once"):
        named_scheduler(f"{tmp_path}/p.py:some")


# -- the question ------------------------------------------------------------------------------------------------------


def question(scheduler="lotes", tune=(), **more):
    return Question(**{"scenario": Scenario(schedulers=[scheduler], seeds=[1, 2]), "minimise": "wait.mean",
                       "tune": list(tune), "held_out": [3, 4], **more})


def test_a_range_may_be_narrowed():
    space = space_of(question("sparrow", ["probe_ratio=1:3", "sampling"]))
    assert [(each.name, each.least, each.most) for each in space.parameters] == [
        ("probe_ratio", 1.0, 3.0), ("sampling", 0.0, 0.0)]
    scenario = space.applied(Scenario(schedulers=["sparrow"]), {"probe_ratio": 2.5, "sampling": "task"})
    assert (scenario.federation.probe_ratio, scenario.federation.sampling) == (2.5, "task")
    assert space.given(Scenario(schedulers=["sparrow"])) == {"probe_ratio": 2.0, "sampling": "batch"}


@pytest.mark.parametrize(("asked", "said"), [
    ({"scheduler": "best-fit"}, "best-fit declares no parameters to tune; lotes, megha"),
    ({"tune": ["clases"]}, "must be one of classes, .* did you mean 'classes'"),
    ({"tune": ["classes=1"]}, "must be NAME or NAME=LEAST:MOST"), ({"tune": ["classes=3:2"]}, "to a larger one"),
    ({"tune": ["classes=1.5:2"]}, "must be whole numbers"), ({"tune": ["choice=1:2"]}, "roulette, deficit, and has no"),
    ({"tune": ["classes", "classes=1:2"]}, "named once, classes"), ({"tune": ["classes=1:65"]}, "must be at most 64"),
    ({"minimise": "wait"}, "measure: must be like 'wait.p95 for queue=prod'"),
    ({"minimise": "wait.p95 < 1s"}, "measure: must be like"),
    ({"minimise": "energy.total"}, "needs an energy file"), ({"held_out": [2, 3]}, "must be other seeds .* not 2"),
    ({"scheduler": "sparrow", "tune": ["probes_min=0:3"]}, "both above 0"),
])
def test_what_cannot_be_asked_is_named(asked, said):
    with pytest.raises(InputError, match=said):
        space_of(question(**asked))


def test_seeds_must_change_something():
    fixed = Scenario(schedulers=["megha"], seeds=[1, 2], resample="none")
    with pytest.raises(InputError, match="seeds change nothing under this scheduler"):
        question(scenario=fixed)
    question(scenario=fixed, held_out_workload="W2", held_out=[1])


def test_a_measure_is_an_objective_without_a_bound():
    measure = read_measure(" wait.p95  for queue=a/b, user=u")
    assert (measure.text, measure.measure, measure.statistic) == ("wait.p95 for queue=a/b, user=u", "wait", "p95")
    assert measure.keys == (("queue", "a/b"), ("user", "u"))
    assert measure.holds(1e300)
    assert read_measure("slowdown.mean").keys == ()


# -- the search --------------------------------------------------------------------------------------------------------


def test_the_first_trial_is_what_is_given_and_better_ones_are_found():
    study = searched(25)
    assert tried(study)[0] == (37.5, GIVEN)
    found = values_tried(best_of(study))
    assert abs(found["x"] - 3) < 0.5
    assert found["word"] == "b"
    assert all(each.holds(values[each.name]) for _, values in tried(study) for each in SPACE)
    shares = importance(study)
    assert max(shares, key=shares.get) == "x"


def test_the_same_seed_tries_the_same_also_when_it_was_stopped(tmp_path):
    whole = tried(searched(15))
    assert tried(searched(15)) == whole
    assert tried(searched(15, seed=2)) != whole
    journal = tmp_path / "journal.log"
    for trials in (0, 4, 12):
        calls = []
        searched(trials, run=lambda values, calls=calls: calls.append(1) or bowl(values), study=open_study(journal))
    assert len(calls) == 8

    def killed(values):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        searched(15, run=killed, study=open_study(journal))
    assert tried(searched(15, study=open_study(journal))) == whole


def test_objectives_come_before_the_measure():
    objectives = [read_objective("wait.mean < 10s"), read_objective("slowdown.max >= 2")]

    def run(values):
        return [[values["x"], 20.0 - 4 * values["x"], 3.0], [values["x"], 21.0 - 4 * values["x"], 2.0]]

    study = searched(30, run=run, objectives=objectives)
    found = best_of(study)
    assert found.value >= 2.75  # what both seeds allow
    assert min(trial.value for trial in study.trials) < 2.75
    assert found.value < 4
    late = [values["x"] for _, values in tried(study)[15:]]
    assert np.median(late) > 2.5  # the sampler knows


def test_an_endless_objective_is_missed_by_more_than_any_other():
    objectives = [read_objective("wait.mean < 10s")]
    study = searched(6, run=lambda values: [[1.0, math.inf if values["x"] < 8 else 11.0]], objectives=objectives)
    assert values_tried(best_of(study))["x"] >= 8


def test_a_trial_that_fails_is_as_bad_as_can_be_unless_it_is_the_first():
    def run(values):
        if values["x"] < 5:
            raise RunError("a process died")
        return bowl(values)

    study = searched(12, run=run)
    assert values_tried(best_of(study))["x"] >= 5
    assert {trial.user_attrs["error"] for trial in study.trials} == {"", "a process died"}
    with pytest.raises(RunError, match="a process died"):
        searched(1, run=run, given={**GIVEN, "x": 1.0})


def test_what_is_given_may_be_out_of_the_ranges():
    study = searched(12, given={**GIVEN, "x": 90.0})
    assert tried(study)[0][0] == 87**2 + 1.5
    assert values_tried(best_of(study))["x"] < 10


# -- the result --------------------------------------------------------------------------------------------------------


def judged(given, best, trials=12, run=bowl, objectives=(), **more):
    asked = question(held_out=list(range(10, 10 + len(given))), **more)
    study = searched(trials, run=run, objectives=objectives)
    return result_of(asked, space_of(asked)._replace(parameters=SPACE), study, [[value] for value in given],
                     [[value] for value in best], {}, None)


@pytest.mark.parametrize(("given", "best", "verdict", "said"), [
    ([10.0, 11, 12, 10, 11, 12], [5.0, 6, 5, 6, 5, 6], BETTER, "Better than the settings as given: wait.mean "),
    ([10.0, 11, 12, 10, 11, 12], [12.0, 9, 13, 9, 12, 10], NOT_BETTER, "not beaten: .* may be chance"),
    ([5.0, 6, 5, 6, 5, 6], [10.0, 11, 12, 10, 11, 12], WORSE, "not beaten: what was found is worse"),
    ([10.0, 11], [5.0, 6], NO_INTERVAL, "not known: .* interval takes 3 held-out seeds"),
    ([math.inf, 11, 12, 1, 1, 1], [5.0, 6, 5, 5, 5, 5], NO_INTERVAL, "not known: wait.mean endless on"),
])
def test_it_says_whether_what_was_found_is_better(given, best, verdict, said):
    tuned = judged(given, best)
    assert tuned.verdict == verdict
    assert re.search(said, tuning.verdict(tuned))
    assert b"<h1>lotes: wait.mean in 12 trials</h1>" in page_of(tuned)
    if verdict == BETTER:
        assert tuned.difference == pytest.approx(-0.5, abs=0.02) and tuned.of_means == pytest.approx(-0.5)
        assert tuned.interval[1] < -0.4


def test_it_says_when_nothing_was_found():
    assert judged([1.0] * 6, [1.0] * 6, run=lambda values: [[float(values != GIVEN)]]).verdict == NOT_FOUND
    missed = judged([1.0] * 6, [1.0] * 6, run=lambda _: [[1.0, 20.0]], objectives=[read_objective("wait.mean < 10s")])
    assert missed.verdict == UNFEASIBLE


def test_importance_is_not_said_of_few_trials():
    tuned = judged([1.0] * 6, [0.5] * 6, trials=4)
    assert [row.importance for row in tuned.rows] == [None] * 3
    assert "Importance is not known of so few trials." in tuning.notes(tuned)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_tunes_a_policy_and_writes_what_it_found(run, tmp_path, monkeypatch):
    workload, fleet = some_workload(jobs=30)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "W" / "fleet").mkdir(parents=True)
    workload.write(tmp_path / "W")
    fleet.write(tmp_path / "W" / "fleet")
    (tmp_path / "p.py").write_text(POLICY)
    words = ("tune", "W", "--scheduler", "p.py:some", "--tune", "share=0.4:1", "--seeds", "1,2", "--held-out", "11-16",
             "--objective", "wait.mean < 1h", "--machines", 4, "--capacity", "cpu=8", "--capacity", "memory=8",
             "--processes", 1, "--trials", 3, "--out", "R")
    code, out, _ = run(*words)
    assert code == 0
    assert "p.py:some: slowdown.mean in 3 trials" in out
    assert "wait.mean < 1h: held-out seeds" in out
    result = json.loads((tmp_path / "R" / "result.json").read_bytes())
    assert (result["verdict"], result["rows"][0]["given"]) == ("better", 0.5)
    assert result["rows"][0]["best"] > 0.5  # more machines
    best = read_scenario(tmp_path / "R" / "best.toml")
    assert best.parameters == {"share": result["rows"][0]["best"]}
    assert (best.seeds, best.machines, len(best.workload_digest)) == ([1, 2], 4, 16)
    assert len((tmp_path / "R" / "trials.csv").read_text().splitlines()) == 4
    assert (tmp_path / "R" / "index.html").is_file()
    assert len(open_study(tmp_path / "R" / "journal.log").trials) == 3
    code, _, err = run(*words, "--minimise", "wait.mean")
    assert (code, "is of another question (minimise" in err) == (2, True)


def test_what_machines_draw_may_be_minimised(run, tmp_path, monkeypatch):
    """One of two machines works at 100 W, for 20 s. A file without a price has no cost to be minimised."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "W").mkdir()
    plain((0, 10, 1), (0, 10, 1)).write(tmp_path / "W")
    (tmp_path / "p.py").write_text(POLICY)
    (tmp_path / "e.toml").write_text('[[kind]]\nname = "k"\nwatts = [100, 100]\nempty = 0\n')
    words = ("tune", "W", "--scheduler", "p.py:some", "--tune", "share=0.4:1", "--machines", 2, "--capacity", "cpu=1",
             "--energy", "e.toml", "--processes", 1, "--trials", 2, "--seeds", "1", "--held-out", "2", "--out", "R")
    assert run(*words, "--minimise", "energy.total")[0] == 0
    result = json.loads((tmp_path / "R" / "result.json").read_bytes())
    assert result["given"] == pytest.approx([100 * 20 / 3.6e6])  # share 0.5 of two machines: one task after the other
    code, _, err = run(*words[:-1], "R2", "--minimise", "cost.total")
    assert (code, "the file says nothing of it" in err) == (2, True)
