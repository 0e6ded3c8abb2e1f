"""Says an objective as a sentence: "95 % of jobs wait less than 10 min"."""
from subak.measures.objective import IN_SECONDS, OF_JOBS, SLURM_WAIT, Objective, level_of
from subak.report.number_text import seconds_text

VERBS = {"wait": "wait", SLURM_WAIT: "wait", "job_wait": "wait"}  # of measures that have one
NOUNS = {"turnaround": "a turnaround time", "completion": "a completion time", "slowdown": "a slowdown",
         "job_slowdown": "a slowdown"}
LESS = {"<": "less than", "<=": "at most"}


def said_objective(objective: Objective, tasks: str = "tasks") -> str:
    """Return what an objective of tasks, Slurm jobs or jobs asks for; *tasks* is the word for what tasks are."""
    number = seconds_text(objective.bound) if objective.measure in IN_SECONDS else f"{objective.bound:g}"
    bound = f"{LESS[objective.sign]} {number}"
    what = f"wait {bound}" if objective.measure in VERBS else f"have {NOUNS[objective.measure]} of {bound}"
    who = "Slurm jobs" if objective.measure == SLURM_WAIT else "jobs" if objective.measure in OF_JOBS else tasks
    concerned = "".join(f" of {key} {value}" for key, value in objective.keys)
    level = level_of(objective.statistic, objective.text)
    if level is None:
        return f"{who}{concerned} {what} on average"
    share = "all" if level == 1.0 else "half of" if level == 0.5 else f"{100 * level:g} % of"
    return f"{share} {who}{concerned} {what}"
