"""Compares schedulers: one row per measure, one value per scheduler (mean over seeds), best marked."""
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from subak.federation.messages import CROSSES, KINDS
from subak.fleet.locality import LEVELS as PLACES
from subak.measures.intervals import NOT_COMPARED, Difference, TraceDays, difference_by_seed, holm
from subak.measures.objective import IN_SECONDS, MACHINE_STATISTICS, OF_MACHINES, Objective, read_objective
from subak.measures.runs import FederationFacts, Run, Spread, Summary, groups, on_trace, resource_names, trace_days
from subak.measures.tasks.job_sums import LENGTHS
from subak.placement.schedulers import BY_USERS, foreknown
from subak.placement.schedulers import NOTHING as NOTHING_KNOWN
from subak.report.number_text import (
    NOTHING,
    bytes_text,
    count_text,
    counted,
    energy_text,
    mass_text,
    plain_text,
    power_text,
    ratio_text,
    seconds_text,
    share_text,
)

WAIT_TITLES = {"mean": "mean", "median": "median", "p90": "90 %", "p95": "95 %", "p99": "99 %", "p999": "99.9 %",
               "max": "longest"}
SPREAD_TITLES = {"mean": "mean", "median": "median", "p90": "90 %", "p99": "99 %", "p999": "99.9 %", "max": "longest"}
SLOWDOWN_TITLES = {"mean": "mean", "median": "median", "p99": "99 %", "max": "largest"}
JOB_WAIT_TITLES = {"mean": "mean", "median": "median", "p95": "95 %", "p99": "99 %", "max": "longest"}
LENGTH_TITLES = {"mean": "mean", "p99": "99 %"}
PART_TITLES = {"framework_queueing": "framework queueing", "processing": "processing",
               "worker_queueing": "worker queueing", "communication": "communication"}
ENDING_TITLES = {"FAILED": "failed", "CANCELLED": "cancelled", "TIMED_OUT": "timed out", "LOST": "lost"}
FIFO = ("fifo+backfill", "first-fit+backfill", "fifo", "first-fit")  # what gains in makespan are measured from
RECORDED = "recorded"  # the scheduler of the log
OF_MACHINES_TEXT = {"energy": energy_text, "cost": plain_text, "carbon": mass_text}
MACHINE_TITLES = dict(zip(MACHINE_STATISTICS, ("total", "per finished task", "per used hour"), strict=True))
MORE_OF_MACHINES: dict[str, list[tuple[str, str, Callable[[float | None], str]]]] = {
    "energy": [("mean power", "watts_mean", power_text)], "carbon": [],
    "cost": [("of energy", "cost_energy", plain_text), ("of machines", "cost_machines", plain_text)]}
NOT_STARTED = ("WAITING", "BLOCKED", "UNPLACEABLE")
# Nobody is best who starves, in these families, and in those whose names begin so
WAITS = ("Wait time", "Allocation time", "Bounded slowdown", "Slurm job wait", "Job wait", "Job slowdown")
STARVED = 0.001  # share of tasks more than another scheduler lets wait all through the window: that is starvation
NEARER = dict(zip(PLACES, (operator.gt, None, operator.lt), strict=True))  # what is better: where the input is


@dataclass(frozen=True)
class Measure:
    """A number of a run: the family it belongs to, its title, its words, and whether less or more is better."""

    family: str
    title: str
    value: Callable[[Summary], float | None]
    text: Callable[[float | None], str]
    best: Callable[[float, float], bool] | None = None  # operator.lt, operator.gt, or no judgement


@dataclass(frozen=True)
class Row:
    """A measure's value for each scheduler, and the columns that hold the best one."""

    measure: Measure
    values: list[float | None]  # means over seeds, or those on the trace itself
    best: frozenset[int]
    by_seed: list[dict[int, float]]  # the value of each seed, where there is one
    of: TraceDays | None = None  # that seeds draw from

    def differences(self, baseline: int = 0) -> list[Difference]:
        """Return how each scheduler differs from the *baseline*, judged together by Holm's rule."""
        return holm([NOT_COMPARED if number == baseline
                     else difference_by_seed(values, self.by_seed[baseline], self.of)
                     for number, values in enumerate(self.by_seed)])

    def texts(self) -> list[str]:
        """Return the values in words."""
        return [self.measure.text(value) for value in self.values]


def compare(runs: list[Run]) -> list[Row]:
    """Return every measure for every scheduler, in the order of `groups`."""
    levels = max(len(run.summary.fairness.levels) if run.summary.fairness else 0 for run in runs)
    seeds = sorted({run.summary.seed for run in runs})
    texts = [facts.text for run in runs for facts in run.summary.objectives]
    starving = starving_of(runs)
    rows = [_row(measure, groups(runs), seeds, trace_days(runs), starving if measure.family.startswith(WAITS) else ())
            for measure in (*objective_measures(texts), *measures(resource_names(runs), levels, _currencies(runs)))]
    if all(of is None or of.allocation == wait for of, wait in (
            (run.summary.federation, run.summary.wait_time) for run in runs)):  # it would say the wait time again
        rows = [row for row in rows if row.measure.family != "Allocation time"]
    after = next(number for number, row in enumerate(rows, start=1) if row.measure.title == "above it")
    return [*rows[:after], *_below_fifo(rows, list(groups(runs))), *rows[after:]]


def _below_fifo(rows: list[Row], names: list[str]) -> list[Row]:
    """Return how much shorter each makespan is than first in, first out's, for MapReduce jobs among which that ran."""
    by_title = {(row.measure.family, row.measure.title): row.values for row in rows}
    makespans, bounds = by_title["Makespan", ""], by_title["Makespan", "lower bound"]
    fifo = next((names.index(name) for name in FIFO if name in names), None)
    longest = None if fifo is None else makespans[fifo]
    if fifo is None or not longest or len(names) == 1 or any(bound is None for bound in bounds):
        return []
    measure = Measure("Makespan", f"below {names[fifo]}", lambda _: None, share_text)
    values = [None if value is None else 1.0 - value / longest for value in makespans]
    return [Row(measure, values, frozenset(), [{} for _ in values])]


def objective_measures(texts: Iterable[str]) -> list[Measure]:
    """Return objectives, each once, as measures whose text says whether they are met."""
    return [Measure("Objectives", text, partial(_objective, text), partial(_met, read_objective(text)))
            for text in dict.fromkeys(texts)]


def _currencies(runs: list[Run]) -> int:
    """Return in how many currencies the runs count costs."""
    return len({run.summary.energy.currency for run in runs if run.summary.energy})


def measures(resources: list[str], levels: int = 0, currencies: int = 1) -> list[Measure]:
    """Return the measures of a comparison; utilisation and stranded shares are one a resource, Jain's index a level.

    Costs in several *currencies* are not judged.
    """
    return [
        *(Measure("Wait time", title, partial(_spread, "wait_time", name), seconds_text, operator.lt)
          for name, title in WAIT_TITLES.items()),
        *(Measure("Allocation time", title, partial(_allocation, name), seconds_text, operator.lt)
          for name, title in SPREAD_TITLES.items()),
        *(Measure("Its parts, mean", title, partial(_part, name), seconds_text)
          for name, title in PART_TITLES.items()),
        *(Measure("Bounded slowdown", title, partial(_spread, "slowdown", name), ratio_text, operator.lt)
          for name, title in SLOWDOWN_TITLES.items()),
        *(Measure("Execution delay", title, partial(_delay, name), seconds_text, operator.lt)
          for name, title in SPREAD_TITLES.items()),
        *(Measure(f"Wait time, {length} jobs", title, partial(_of_length, length, name), seconds_text, operator.lt)
          for length in LENGTHS for name, title in LENGTH_TITLES.items()),
        *(Measure("Slurm job wait", title, partial(_of_slurm_jobs, name), seconds_text, operator.lt)
          for name, title in JOB_WAIT_TITLES.items()),
        *(Measure("Job wait", title, partial(_of_jobs, "wait", name), seconds_text, operator.lt)
          for name, title in JOB_WAIT_TITLES.items()),
        *(Measure("Job completion", title, partial(_of_jobs, "completion", name), seconds_text, operator.lt)
          for name, title in SPREAD_TITLES.items()),
        *(Measure("Job slowdown", title, partial(_of_jobs, "slowdown", name), ratio_text, operator.lt)
          for name, title in SLOWDOWN_TITLES.items()),
        Measure("Jobs", "finished", lambda summary: summary.jobs.completed if summary.jobs else None,
                count_text, operator.gt),
        *(Measure("Locality", level, partial(_near, level), share_text, better) for level, better in NEARER.items()),
        *(Measure("Utilisation", name, partial(_share, "utilisation", name), share_text, operator.gt)
          for name in resources),
        *(Measure("Idle while tasks wait", name, partial(_share, "idle_while_waiting", name), share_text, operator.lt)
          for name in resources),
        *(Measure("Fragmented", name, partial(_share, "stranded", name), share_text)  # little may be a blocked queue
          for name in resources),
        *(each for measure in OF_MACHINES
          for each in _machine_measures(measure, measure != "cost" or currencies <= 1)),
        Measure("Queue", "mean", lambda summary: summary.waiting.mean, ratio_text, operator.lt),
        Measure("Queue", "longest", lambda summary: summary.waiting.max, count_text, operator.lt),
        *(Measure("Fairness", f"Jain, level {level}", partial(_jain, level), ratio_text, operator.gt)
          for level in range(1, levels + 1)),
        Measure("Fairness", "mean shortfall", partial(_fairness, "shortfall_mean"), share_text, operator.lt),
        Measure("Fairness", "in share-seconds", partial(_fairness, "shortfall"), ratio_text, operator.lt),
        Measure("Fairness", "queues ever short", partial(_fairness, "short"), count_text, operator.lt),
        Measure("Fairness", "longest starved", partial(_fairness, "starved_longest"), seconds_text, operator.lt),
        Measure("Tasks", "finished", partial(_tasks, ("FINISHED",)), count_text, operator.gt),
        Measure("Tasks", "running at the end", partial(_tasks, ("RUNNING",)), count_text),
        Measure("Tasks", "waiting at the end", partial(_tasks, ("WAITING", "BLOCKED")), count_text, operator.lt),
        Measure("Tasks", "unplaceable", partial(_tasks, ("UNPLACEABLE",)), count_text, operator.lt),
        *(Measure("Tasks", title, partial(_ended, name), count_text, operator.lt)
          for name, title in ENDING_TITLES.items()),
        Measure("Tasks", "attempts failed", attempts_failed, count_text, operator.lt),
        Measure("Tasks", "attempts lost", lambda summary: summary.attempts_lost, count_text, operator.lt),
        Measure("Tasks", "run time lost", lambda summary: summary.run_time_lost, seconds_text, operator.lt),
        Measure("Federation", "messages a task", messages_a_task, ratio_text, operator.lt),
        Measure("Federation", "requests refused", refused_share, share_text, operator.lt),
        Measure("Federation", "tasks preempted", partial(_counted, "tasks preempted"), count_text),
        Measure("Federation", "global masters busy", partial(_busy, "global master"), share_text),
        Measure("Federation", "local masters busy", partial(_busy, "local master"), share_text),
        Measure("Makespan", "", lambda summary: summary.makespan, seconds_text, operator.lt),
        Measure("Makespan", "lower bound", lambda summary: summary.makespan_bound, seconds_text),
        Measure("Makespan", "above it", lambda summary: summary.gap, share_text, operator.lt),
        Measure("Simulation", "tasks a second", lambda summary: summary.speed.tasks_per_second, count_text),
        Measure("Simulation", "peak memory", lambda summary: summary.speed.peak_memory_bytes, bytes_text),
    ]


def _machine_measures(measure: str, judged: bool) -> list[Measure]:
    """Return what is shown of energy, cost or carbon; a total is not *judged*, for little may be little done."""
    family, text = measure.capitalize(), OF_MACHINES_TEXT[measure]
    return [
        *(Measure(family, title, partial(_of_machines, statistic, OF_MACHINES[measure]), text,
                  operator.lt if judged and statistic != "total" else None)
          for statistic, title in MACHINE_TITLES.items()),
        *(Measure(family, title, partial(_energy, name), words) for title, name, words in MORE_OF_MACHINES[measure]),
    ]


def attempts_failed(summary: Summary) -> float | None:
    """Return how many attempts failed or ran too long, None for a run without a plan of failures."""
    return None if summary.failures is None else summary.failures.attempts_failed


def recorded_note(summary: Summary) -> str:
    """Say how the trace recorded those tasks that finished here; nothing where it says the same, or nothing."""
    if not summary.recorded.keys() - {"FINISH"}:
        return ""
    counts = ", ".join(f"{count_text(count)} {name}" for name, count in summary.recorded.items())
    return f"Of the tasks that finished here, the trace recorded {counts}."


def messages_a_task(summary: Summary) -> float | None:
    """Return the messages that crossed the network for each task, None for a run without a federation."""
    if summary.federation is None:
        return None
    crossing = {kind for kind, crosses in zip(KINDS, CROSSES, strict=True) if crosses}
    count = sum(number for kind, number in summary.federation.messages.items() if kind in crossing)
    return count / max(sum(summary.status.values()), 1)


def refused_share(summary: Summary) -> float | None:
    """Return the share of the requests of global masters that local masters refused: how often a view was wrong."""
    counts = summary.federation.counts if summary.federation else {}
    refused = counts.get("refused: not free", 0) + counts.get("refused otherwise", 0)
    asked = counts.get("launches", 0) + counts.get("repartitions", 0)
    return refused / asked if asked else None


def not_started(summary: Summary) -> int:
    """Return how many tasks arrived and never started: no wait time counts them."""
    return sum(summary.status.get(status, 0) for status in NOT_STARTED)


def verdict(runs: list[Run]) -> str:
    """Say which scheduler has the lowest mean and 99th percentile wait time, and what to beware.

    Among those that know the same of run times: who is told more in advance has less to find out. What users estimate
    each scheduler may be told, so that is no knowledge of the future.
    """
    of_knowledge: dict[str, list[Run]] = {}
    for run in runs:
        if run.summary.scheduler == RECORDED and len(groups(runs)) > 1:
            continue
        of_knowledge.setdefault(foreknown(run.summary.knows), []).append(run)
    if len(of_knowledge) == 1:
        return _verdict(*of_knowledge.values()) + _caution(runs)
    ranked = sorted(of_knowledge.items(), key=lambda pair: pair[0] != NOTHING_KNOWN)
    users = any(run.summary.knows.endswith(BY_USERS) for run in runs)
    nothing = f"{NOTHING_KNOWN} of run times" + (" but what users estimate" if users else "")
    return " ".join(f"Of those that know {nothing}: {_verdict(group)}" if knows == NOTHING_KNOWN
                    else f"Knowing {knows}: {_verdict(group)}" for knows, group in ranked) + _caution(runs)


def _verdict(runs: list[Run]) -> str:
    names = list(groups(runs))
    rows = {row.measure.title: row for row in compare(runs) if row.measure.family == "Wait time"}
    if all(value is None for value in rows["mean"].values):
        return "No task started, so there is no wait time to report."
    if len(names) == 1:
        return (f"Tasks waited {rows['mean'].texts()[0]} on average before they started; "
                f"one in a hundred waited longer than {rows['99 %'].texts()[0]}.")
    starving = starving_of(runs)
    return " ".join([_winner(names, rows["mean"], "lowest mean wait time", starving),
                     _winner(names, rows["99 %"], "lowest 99th percentile", starving)])


def starving_of(runs: list[Run]) -> list[str]:
    """Return the schedulers that let more tasks wait all through the window than another one does."""
    shares = {}
    for name, group in groups(runs).items():
        facts = [run.summary.waited for run in on_trace(group) if run.summary.waited is not None]
        if not facts:
            return []
        shares[name] = sum(each.through for each in facts) / max(sum(each.tasks for each in facts), 1)
    return [name for name, share in shares.items() if share > min(shares.values()) + STARVED]


def _row(
    measure: Measure, schedulers: dict[str, list[Run]], seeds: list[int], of: TraceDays | None,
    starving: Sequence[str],
) -> Row:
    by_seed = [_by_seed(measure, runs, seeds) for runs in schedulers.values()]
    values = [_mean([measure.value(run.summary) for run in on_trace(runs)]) for runs in schedulers.values()]
    rivals = [None if runs[0].summary.scheduler == RECORDED or name in starving else value
              for (name, runs), value in zip(schedulers.items(), values, strict=True)]  # a log cannot be chosen
    return Row(measure, values, _best(measure, rivals, by_seed, of), by_seed, of)


def _by_seed(measure: Measure, runs: list[Run], seeds: list[int]) -> dict[int, float]:
    """Return the value of each seed; a scheduler that was run once has the same whatever the seed."""
    found = {run.summary.seed: measure.value(run.summary) for run in runs}
    if len(found) == 1:
        found = dict.fromkeys(seeds, *found.values())
    return {seed: value for seed, value in found.items() if value is not None}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _best(
    measure: Measure, values: list[float | None], by_seed: list[dict[int, float]], of: TraceDays | None,
) -> frozenset[int]:
    """Return which values are best: of single runs those that read as the best one, unless all do.

    Of several seeds it is one that is better than each other, in the typical seed and by Holm's rule, or none.
    """
    known = [value for value in values if value is not None]
    if measure.best is None or len(known) < 2:
        return frozenset()
    best = min(known) if measure.best is operator.lt else max(known)
    if max(map(len, by_seed)) == 1:
        equal = frozenset(index for index, value in enumerate(values) if measure.text(value) == measure.text(best))
        return equal if len(equal) < len(known) else frozenset()
    first = values.index(best)
    others = holm([difference_by_seed(by_seed[first], other, of) for number, other in enumerate(by_seed)
                   if number != first and values[number] is not None])
    return frozenset({first}) if all(each.is_decided and _is_better(measure, each) for each in others) else frozenset()


def _is_better(measure: Measure, of: Difference) -> bool:
    """Whether the typical seed says the same as the means by which the best was found; where it is silent, it does."""
    return of.share is None or measure.best is None or measure.best(of.share, 0.0)


def _spread(which: str, name: str, summary: Summary) -> float | None:
    spread: Spread = getattr(summary, which)
    value: float | None = getattr(spread, name)
    return value


def _allocation(name: str, summary: Summary) -> float | None:
    return None if summary.federation is None else getattr(summary.federation.allocation, name)


def _delay(name: str, summary: Summary) -> float | None:
    return None if summary.execution_delay is None else getattr(summary.execution_delay, name)


def _near(level: str, summary: Summary) -> float | None:
    """Return which part of the tasks ran so near their input, None where no task is known to have one."""
    return summary.locality.get(level)


def _part(name: str, summary: Summary) -> float | None:
    part = None if summary.federation is None else summary.federation.parts.get(name)
    return None if part is None else part.mean


def _counted(name: str, summary: Summary) -> float | None:
    return None if summary.federation is None else summary.federation.counts.get(name)


def _ended(name: str, summary: Summary) -> float | None:
    """Return how many tasks ended so, None for a run without a plan of failures."""
    return None if summary.failures is None else summary.failures.outcomes.get(name, 0)


def _jain(level: int, summary: Summary) -> float | None:
    """Return Jain's index of a level of the queues, None where there is none."""
    levels = summary.fairness.levels if summary.fairness else ()
    return levels[level - 1].jain if level <= len(levels) else None


def _fairness(name: str, summary: Summary) -> float | None:
    return None if summary.fairness is None else getattr(summary.fairness, name)


def _busy(role: str, summary: Summary) -> float | None:
    facts: FederationFacts | None = summary.federation
    return None if facts is None or role not in facts.roles else facts.roles[role].busy


def _of_length(length: str, name: str, summary: Summary) -> float | None:
    return getattr(summary.lengths[length], name) if length in summary.lengths else None


def _of_slurm_jobs(name: str, summary: Summary) -> float | None:
    return None if summary.slurm_wait is None else getattr(summary.slurm_wait, name)


def _of_jobs(which: str, name: str, summary: Summary) -> float | None:
    return None if summary.jobs is None else getattr(getattr(summary.jobs, which), name)


def _of_machines(statistic: str, amount: str, summary: Summary) -> float | None:
    return None if summary.energy is None else getattr(getattr(summary.energy, statistic), amount)


def _energy(name: str, summary: Summary) -> float | None:
    return None if summary.energy is None else getattr(summary.energy, name)


def _objective(text: str, summary: Summary) -> float | None:
    """Return the value that an objective is about, endless where tasks never started or ended."""
    found = next((facts for facts in summary.objectives if facts.text == text), None)
    return None if found is None else math.inf if found.value is None else found.value


def _met(objective: Objective, value: float | None) -> str:
    if value is None:
        return NOTHING
    words = OF_MACHINES_TEXT.get(objective.measure, seconds_text if objective.measure in IN_SECONDS else ratio_text)
    return f"{'met' if objective.holds(value) else 'missed'}: {'never' if math.isinf(value) else words(value)}"


def _share(which: str, resource: str, summary: Summary) -> float | None:
    shares: dict[str, float | None] = getattr(summary, which)
    return shares.get(resource)


def _tasks(statuses: tuple[str, ...], summary: Summary) -> float | None:
    return sum(summary.status.get(status, 0) for status in statuses) if summary.status else None


def _winner(names: list[str], row: Row, title: str, starving: Sequence[str]) -> str:
    ranked = sorted((value, name) for name, value in zip(names, row.values, strict=True)
                    if value is not None and name not in starving)
    text = row.measure.text
    alike = [name for value, name in ranked if text(value) == text(ranked[0][0])]
    if len(alike) == len(ranked) > 1:
        return f"All schedulers have the same {title.removeprefix('lowest ')}, {text(ranked[0][0])}."
    sentence = f"{' and '.join(alike)} {'has' if len(alike) == 1 else 'have'} the {title}, {text(ranked[0][0])}"
    rest = ranked[len(alike):]
    if not rest:
        return f"{sentence}."
    seeds = max(map(len, row.by_seed))
    doubt = "" if row.best or seeds == 1 else f", but {seeds} seeds do not decide between them"
    return f"{sentence}; next is {rest[0][1]} with {text(rest[0][0])}{doubt}."


def _caution(runs: list[Run]) -> str:
    """Averages flatter a scheduler that left tasks waiting: say so beside them."""
    left = {name: _mean([not_started(run.summary) for run in group]) or 0 for name, group in groups(runs).items()}
    worst = max(left, key=lambda name: left[name])
    if left[worst] < 1:
        return ""
    who = f"up to {counted(left[worst], 'task')} ({worst})" if len(left) > 1 else counted(left[worst], "task")
    return f" These numbers leave out {who} that had not started when the run ended."
