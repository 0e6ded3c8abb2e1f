"""Says an objective as a sentence: "95 % of jobs wait less than 10 min"."""
import math
from collections.abc import Callable

from subak.experiment.sizing.answer import Sizing
from subak.measures.objective import IN_SECONDS, OF_JOBS, SLURM_WAIT, Objective, level_of, read_objective
from subak.report.number_text import ratio_text, seconds_text

ENDLESS = "never"

VERBS = {"wait": "wait", SLURM_WAIT: "wait", "job_wait": "wait"}  # of measures that have one
NOUNS = {"turnaround": "a turnaround time", "completion": "a completion time", "slowdown": "a slowdown",
         "job_slowdown": "a slowdown"}
LESS = {"<": "less than", "<=": "at most"}


def objectives_of(sizing: Sizing) -> list[Objective]:
    """Return the objectives that were to be kept."""
    return [read_objective(text) for text in sizing.objectives]


def value_text(objective: Objective) -> Callable[[float | None], str]:
    """Return how a value of an objective is said."""
    words = seconds_text if objective.measure in IN_SECONDS else ratio_text
    return lambda value: ENDLESS if value is not None and math.isinf(value) else words(value)


def said_objective(objective: Objective, tasks: str = "tasks") -> str:
    """Return what an objective of tasks, Slurm jobs or jobs asks for; *tasks* is the word for what tasks are."""
    number = seconds_text(objective.bound) if objective.measure in IN_SECONDS else f"{objective.bound:g}"
    bound = f"{LESS[objective.sign]} {number}"
    what = f"wait {bound}" if objective.measure in VERBS else f"have {NOUNS[objective.measure]} of {bound}"
    who, concerned = who_of(objective, tasks), _concerned(objective)
    level = level_of(objective.statistic, objective.text)
    if level is None:
        return f"{who}{concerned} {what} on average"
    share = "all" if level == 1.0 else "half of" if level == 0.5 else f"{100 * level:g} % of"
    return f"{share} {who}{concerned} {what}"


def who_of(objective: Objective, tasks: str) -> str:
    """Return who an objective is about; *tasks* is the word for what tasks are."""
    return "Slurm jobs" if objective.measure == SLURM_WAIT else "jobs" if objective.measure in OF_JOBS else tasks


def _concerned(objective: Objective) -> str:
    return "".join(f" of {key} {value}" for key, value in objective.keys)


def said_beside(objective: Objective, tasks: str, log: float, simulated: float) -> str:
    """Return what an objective came to in the log, and in the simulation."""
    text, level = value_text(objective), level_of(objective.statistic, objective.text)
    what = "waited" if objective.measure in VERBS else f"had {NOUNS[objective.measure]} of"
    which = "mean" if level is None else "longest" if level == 1.0 else f"{100 * level:g} %"
    return (f"the log's {who_of(objective, tasks)}{_concerned(objective)} {what} {text(log)}, the simulation's "
            f"{text(simulated)} ({which})")
