"""Runs a tuning from question to result, in a folder from which it can resume."""
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import optuna
import polars as pl

from subak.errors import InputError, first_line
from subak.experiment.folder import scenario_values
from subak.experiment.inputs import load_inputs, refuse_unfit, scenario_window, settle_resample
from subak.experiment.scenario import Scenario
from subak.experiment.tuning.question import Question, Space, space_of
from subak.experiment.tuning.result import Tuned, best_values, kept, result_of
from subak.experiment.tuning.study import Search, excess_of, open_study, search, values_tried
from subak.experiment.tuning.trials import Runs
from subak.measures.intervals import TraceDays
from subak.measures.objective import read_measure, read_objective
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, write_file
from subak.policy import find_scheduler
from subak.policy_files import policy_file
from subak.workload.redraws import AUTO, DAYS
from subak.workload.resample import drawable, redraw_of
from subak.workload.samples import sample_names

MARKER, JOURNAL = "tune.toml", "journal.log"
TUNING, HELD_OUT = 0, 1  # parts


def checked(question: Question) -> tuple[Question, Space]:
    """Return a question that can be answered, with digests and how seeds redraw, and what is tuned.

    Raises InputError, PolicyError.
    """
    space = space_of(question)
    scenario = question.scenario
    found = [find_scheduler(question.scheduler, scenario.check_policy, scenario.parameters)]
    every = msgspec.structs.replace(scenario, seeds=[*dict.fromkeys([*scenario.seeds, *question.held_out])])
    inputs = load_inputs(every)
    minimised = [read_measure(question.minimise)]
    refuse_unfit(every, found, inputs, minimised)
    if every.resample == AUTO:  # there must be something to hold out
        window = scenario_window(every, inputs[0])
        every = msgspec.structs.replace(every, resample=redraw_of(inputs[0], window.begin, window.end))
    settled = settle_resample(every, inputs[0])
    question = msgspec.structs.replace(question, scenario=msgspec.structs.replace(settled, seeds=scenario.seeds))
    if question.held_out_workload:
        other = question.judged_on()
        held_out = load_inputs(other)
        refuse_unfit(other, found, held_out, minimised)
        settle_resample(other, held_out[0])
    return question, space


def tune(
    question: Question, space: Space, trials: int, processes: int, folder: Path | None,
    on_trial: Callable[[optuna.Study], None], on_judging: Callable[[], None],
) -> tuple[Tuned, optuna.Study]:
    """Search, judge what was found on the held-out part, and return both; with a *folder*, go on with what is there."""
    study = open_study(None if folder is None else folder / JOURNAL)
    given = space.given(question.scenario)
    objectives = [read_objective(text) for text in question.scenario.objectives]
    with Runs([question.scenario, question.judged_on()], question.minimise, space, processes) as runs:
        search(Search(space.parameters, given, objectives, question.sampler_seed,
                      lambda values: runs.values(TUNING, values)), study, trials, on_trial)
        on_judging()
        best = best_values(study)
        baseline = runs.values(HELD_OUT, given)
        found = baseline if best == given else runs.values(HELD_OUT, best)
    tests = [each.holds for each in objectives]
    met = dict(zip(question.scenario.objectives, zip(kept(baseline, tests), kept(found, tests), strict=True),
                   strict=True))
    return result_of(question, space, study, baseline, found, met, _days(question.judged_on())), study


def _days(scenario: Scenario) -> TraceDays | None:
    """Return the days that seeds draw from; None where they draw from none."""
    if scenario.resample != DAYS:
        return None
    workload = load_inputs(scenario)[0]
    window = scenario_window(scenario, workload)
    found = drawable(workload, window.begin, window.end)
    return TraceDays(found.days, found.freedom)


# -- the folder --------------------------------------------------------------------------------------------------------


def open_folder(folder: Path, question: Question, overwrite: bool, inputs: list[Path]) -> None:
    """Make the folder of a tuning, or find that it is of this very question. Raises InputError for another's."""
    text = question_text(question)
    if not overwrite and (folder / MARKER).is_file():
        before = (folder / MARKER).read_bytes()
        if before != text:
            raise InputError(f"{folder}: is of another question ({_difference(before.decode(), text.decode())}); "
                             "choose another folder or pass --overwrite")
        return
    refuse_folder(folder, MARKER, overwrite, inputs)
    with new_folder(folder, MARKER, overwrite, inputs) as partial:
        (partial / MARKER).write_bytes(text)


def question_text(question: Question) -> bytes:
    """Return a question as TOML."""
    values = {name: value for name, value in msgspec.to_builtins(question).items() if name != "scenario"}
    return msgspec.toml.encode({**values, "scenario": scenario_values(_anywhere(question.scenario))})


def _anywhere(scenario: Scenario) -> Scenario:
    """Return a scenario that says the same wherever it is read."""
    changes: dict[str, Any] = {name: str(Path(getattr(scenario, name)).resolve())
                               for name in ("fleet", "faults", "failures", "queues") if getattr(scenario, name)}
    if scenario.workload not in sample_names():
        changes["workload"] = str(Path(scenario.workload).resolve())
    changes["schedulers"] = [str(Path(name).resolve()) if policy_file(name) else name for name in scenario.schedulers]
    return msgspec.structs.replace(scenario, **changes)


def _difference(before: str, now: str) -> str:
    """Return the first line that tells two questions apart."""
    lines = zip(before.splitlines(), now.splitlines(), strict=False)
    return next((f"{first_line(Exception(one))}, now {two}" for one, two in lines if one != two), "its length")


def write_result(folder: Path, question: Question, space: Space, tuned: Tuned, study: optuna.Study) -> None:
    """Write the numbers, the trials, and a scenario of what was found."""
    write_file(folder / "result.json", msgspec.json.format(msgspec.json.encode(tuned), indent=1))
    write_file(folder / "trials.csv", trial_table(study).write_csv().encode())
    best = space.applied(question.scenario, best_values(study))
    write_file(folder / "best.toml", msgspec.toml.encode(scenario_values(_anywhere(best))))


def trial_table(study: optuna.Study) -> pl.DataFrame:
    """Return one row a trial: its number, the mean of the measure, by how much it misses the objectives, its values."""
    rows = [{"trial": trial.number, "value": trial.value, "excess": excess_of(trial), **values_tried(trial),
             "error": trial.user_attrs["error"]} for trial in study.trials]
    return pl.DataFrame(rows, infer_schema_length=None)
