"""Tables of how tasks ended, and of how each run was made."""
from typing import Any

from subak.measures.runs import Run, Summary
from subak.report.comparison import recorded_note
from subak.report.number_text import NOTHING, bytes_text, count_text, ratio_text, seconds_text
from subak.report.tables.table import Cell, Table, amount


def outcome_tables(runs: list[Run]) -> list[Table]:
    """Return the states of tasks, how they ended, how the trace recorded them, and why some did not start."""
    return [_outcomes(runs), _endings(runs), _recorded(runs), _reasons(runs)]


def run_table(runs: list[Run]) -> Table:
    """Return each run's options, and how fast it was simulated."""
    titles = ["Run", "Scheduler", "Seed", "Options", "Events", "Took", "Tasks a second", "Peak memory", "Versions"]
    return Table("runs", "How each run was made: options, speed, versions", titles, [_run_row(run) for run in runs])


def _outcomes(runs: list[Run]) -> Table:
    statuses = list(dict.fromkeys(status for run in runs for status in run.summary.status))
    titles = ["Run", *(status.replace("_", " ").lower() for status in statuses)]
    rows: list[list[Cell]] = [
        [run.label, *(amount(run.summary.status.get(status), count_text) for status in statuses)] for run in runs
    ]
    return Table("outcomes", "Tasks by state", titles, rows)


def _endings(runs: list[Run]) -> Table:
    """Return how tasks ended in runs with a plan of failures."""
    planned = {run.label: run.summary.failures for run in runs if run.summary.failures}
    names = list(dict.fromkeys(name for facts in planned.values() for name in facts.outcomes))
    titles = ["Run", *(name.replace("_", " ").lower() for name in names), "attempts that failed or ran too long"]
    rows: list[list[Cell]] = [
        [label, *(amount(facts.outcomes.get(name), count_text) for name in names),
         amount(facts.attempts_failed, count_text)] for label, facts in planned.items()
    ]
    return Table("endings", "Tasks that ended, by how", titles, rows)


def _recorded(runs: list[Run]) -> Table:
    """Return how the trace recorded the tasks that finished, where not all of them did there."""
    noted = {run.label: run.summary.recorded for run in runs if recorded_note(run.summary)}
    names = list(dict.fromkeys(name for recorded in noted.values() for name in recorded))
    rows: list[list[Cell]] = [[label, *(amount(recorded.get(name, 0), count_text) for name in names)]
                              for label, recorded in noted.items()]
    return Table("recorded", "Tasks that finished, as the trace recorded them", ["Run", *names], rows)


def _reasons(runs: list[Run]) -> Table:
    rows: list[list[Cell]] = [
        [run.label, reason.status.lower(), reason.reason or NOTHING, amount(reason.tasks, count_text)]
        for run in runs for reason in run.summary.reasons
    ]
    return Table("reasons", "Why tasks did not start", ["Run", "State", "Reason", "Tasks"], rows)


def _run_row(run: Run) -> list[Cell]:
    facts, speed = run.summary, run.summary.speed
    return [run.label, facts.scheduler, str(facts.seed), _pairs(_options(facts)), amount(speed.events, count_text),
            amount(speed.seconds, seconds_text), amount(speed.tasks_per_second, ratio_text),
            amount(speed.peak_memory_bytes, bytes_text), _pairs(facts.versions)]


def _options(facts: Summary) -> dict[str, Any]:
    """Return a run's options, and what is to be said of its lower bound."""
    return {**facts.options, **({"lower bound": facts.makespan_bound_note} if facts.makespan_bound_note else {})}


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or NOTHING
