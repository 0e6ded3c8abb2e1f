"""Says which scheduler of a comparison is nearest to the log, by the objectives."""
import math
from collections.abc import Iterator

from subak.measures.objective import Objective, read_objective
from subak.measures.runs import Run, groups, on_trace
from subak.report.comparison import RECORDED
from subak.report.sizing.beside_log import APART, is_apart
from subak.report.sizing.objective_words import value_text


def nearest_to_log(runs: list[Run]) -> Iterator[str]:
    """Name, for each objective, the scheduler whose value is nearest to the log's; nothing without a log's run."""
    named = {name: on_trace(group) for name, group in groups(runs).items()}
    log = next((group for group in named.values() if group and group[0].summary.scheduler == RECORDED), None)
    if log is None:
        return
    others = {name: group for name, group in named.items() if group is not log and group}
    for text in dict.fromkeys(facts.text for run in log for facts in run.summary.objectives):
        was, values = _value(text, log), {name: _value(text, group) for name, group in others.items()}
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if known and math.isfinite(was):
            yield _said(read_objective(text), was, known)


def _value(text: str, group: list[Run]) -> float:
    """Return the mean value of an objective's measure over runs, endless where one has none."""
    found = [facts.value for run in group for facts in run.summary.objectives if facts.text == text]
    known = [value for value in found if value is not None]
    return sum(known) / len(known) if known and len(known) == len(group) else math.inf


def _said(objective: Objective, was: float, known: dict[str, float]) -> str:
    text = value_text(objective)
    least = min(abs(value - was) for value in known.values())
    nearest = [name for name, value in known.items() if abs(value - was) == least]
    said = (f"Nearest to the log in {objective.measure}.{objective.statistic}: {' and '.join(nearest)}, "
            f"{text(known[nearest[0]])} where the log has {text(was)}.")
    if not is_apart(objective, was, known[nearest[0]]):
        return said
    return (f"{said} That is more than {APART:g} times apart, so none reproduces the log: it may know "
            "priorities, limits or nodes out of order that the simulation does not.")
