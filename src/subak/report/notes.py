"""The notes below a comparison: what was measured, what seeds changed, what marks mean."""
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from subak.measures.intervals import BY_COUNT, BY_DIFFERENCE, BY_OFFSET, LEVEL, PAIRS_MIN, Difference, TraceDays
from subak.measures.plans import missed_words
from subak.measures.runs import Run, Summary, groups, on_trace, trace_days
from subak.measures.side_by_side import differences, of_one_fleet
from subak.placement.schedulers import NOTHING, UNKNOWN
from subak.report.nearest import nearest_to_log
from subak.report.number_text import count_text, counted, difference_text, seconds_text
from subak.workload.days import DAY_S, ITSELF, SESSIONS_FEW, USERS_DAYS, WEEK, WHOLE_DAYS, drawn_by
from subak.workload.redraws import MODEL

REDRAWN = {MODEL: "the workload drawn anew from its model for each"}
VALUES_OF_TRACE, VALUES_OF_DRAWS = "Values are of the trace itself.", (
    "Values are means over draws of the trace's days; seed 1 is the trace itself.")
DRAWS_WANTED = 20  # of whole days, and of users' days
LITTLE_APART = 0.1  # of the queue, or of one task
SPREAD_APART = 1.3  # of whole days over users' days: with more, days differ for everybody alike
MIDDLE_APART = 0.25  # of draws' median from the trace's own value

UNPLACEABLE = "UNPLACEABLE"  # the status of tasks that no machine could ever hold
HOPELESS_REASONS_MAX = 3  # that are said before the results
MEASURES_NAMED_MAX = 4  # measures that a note names
SEEDS_OF_TRACE = 2 * PAIRS_MIN + 1  # the trace, and three draws of each kind
ONE_WORKLOAD = "one workload, decisions drawn anew: they say nothing of other workloads"
WAYS = {
    BY_OFFSET: "Some seeds are 0, so 5 % of the mean of all values was added to each (such intervals cover about 94 %)",
    BY_COUNT: "In a third of the seeds or more both are 0, so there is no interval, and p counts who was better",
    BY_DIFFERENCE: "Some values are below 0, so the interval is of the differences themselves (and covers about 88 %)",
}


def notes(runs: list[Run], marks: bool = True) -> list[str]:
    """Return the notes on runs that are shown side by side, a sentence or two each; *marks*: on what a star means."""
    several = len(groups(runs)) > 1
    return [*_settings(runs), *window_notes(on_trace(runs)), *_waited(runs), *nearest_to_log(runs),
            *_sketched(runs), *_gangs(runs), *_seeds(runs), *_knowledge(runs), *_energy(runs), *_plans(runs),
            *_plain(runs), *([_mark(runs)] if several and marks else [])]


def hopeless_notes(runs: list[Run]) -> list[str]:
    """Say how many tasks can never run, what they ask for, and what the largest machine has; stands before all else."""
    said: dict[str, list[str]] = {}
    for name, group in groups(runs).items():
        worst = max((run.summary for run in group), key=lambda facts: facts.status.get(UNPLACEABLE, 0))
        if worst.status.get(UNPLACEABLE, 0):
            said.setdefault(_hopeless(worst), []).append(name)
    everyone = len(groups(runs))
    return [("" if len(names) == everyone else f"{', '.join(names)}: ") + words for words, names in said.items()]


def _hopeless(facts: Summary) -> str:
    """Return how many tasks of a run can never run, and the commonest reasons."""
    tasks, every = facts.status[UNPLACEABLE], sum(facts.status.values())
    reasons = sorted((each for each in facts.reasons if each.status == UNPLACEABLE and each.reason),
                     key=lambda reason: -reason.tasks)
    shown = [f"{each.reason}" + (f" ({counted(each.tasks, 'task')})" if len(reasons) > 1 else "")
             for each in reasons[:HOPELESS_REASONS_MAX]]
    rest = reasons[HOPELESS_REASONS_MAX:]
    if rest:
        shown.append(f"{count_text(sum(each.tasks for each in rest))} more for {len(rest)} other reasons")
    which = f"{count_text(tasks)} of {counted(every, 'task')} can never run"
    return f"{which}: {'; '.join(shown)}." if shown else f"{which}."


def _plain(runs: list[Run]) -> Iterator[str]:
    """Say which policies were called as plain Python, and how fast they decided."""
    for name, group in groups(runs).items():
        rates = [run.summary.speed.decisions_per_second for run in group]
        known = [rate for rate in rates if isinstance(rate, float)]
        if known:
            yield (f"{name} was called as plain Python (compiled=False), which is slower than compiled: "
                   f"{count_text(sum(known) / len(known))} decisions a second.")


def _settings(runs: list[Run]) -> list[str]:
    """Say what differs beside the schedulers, and what that makes of a comparison."""
    found = differences(runs)
    if not found:
        return []
    said = "; ".join(f"{name} ({', '.join(value or 'as usual' for value in values)})" for name, values in found.items())
    machines = "" if of_one_fleet(runs) else " More machines are no better scheduler."
    return [f"The runs differ in more than the scheduler: {said}.{machines}"]


def window_notes(runs: list[Run]) -> list[str]:
    """Say which part of the runs was measured, and what that leaves out."""
    windows = {run.summary.window for run in runs if run.summary.window is not None}
    found = []
    for begin, end, why in sorted({(window.begin, window.end, window.why) for window in windows}):
        of = [window for window in windows if (window.begin, window.end) == (begin, end)]
        tasks = count_text(sum(window.tasks for window in of) / len(of))
        out = count_text(sum(window.left_out for window in of) / len(of))
        found.append(f"Measured from {seconds_text(begin)} to {seconds_text(end)} ({why}): {tasks} tasks that arrive "
                     f"then, {out} that do not; means over time are of that time.")
    return found


def _waited(runs: list[Run]) -> Iterator[str]:
    """Say who counts that did not arrive in the window or never started, who starves, and where Little's law fails."""
    facts = {name: [run.summary for run in on_trace(group) if run.summary.waited is not None and run.summary.window]
             for name, group in groups(runs).items()}
    before, still, through = (_counts(facts, what) for what in ("before", "still", "through"))
    if before:
        yield f"Tasks that waited as the window began count with the whole of their waits: {before}."
    if still:
        yield f"Tasks that never started count with their waits until the window's end: {still}."
    if through:
        yield f"Waited from the window's begin to its end: {through}. Who lets more wait so is best in no wait."
    apart = [said for name, group in facts.items() if (said := _little(name, group))]
    if apart:
        yield ("By Little's law, rate times mean wait, the mean queue would be another: "
               f"{_few(apart)}. Such tasks wait on beyond the window's ends, or again after they had started.")


def _counts(facts: dict[str, list[Summary]], what: str) -> str:
    """Return the mean number over the runs of each scheduler that has any."""
    means = {name: sum(getattr(each.waited, what) for each in group) / max(len(group), 1)
             for name, group in facts.items()}
    return _few([f"{count_text(round(mean))} of {name}" for name, mean in means.items() if mean >= 1])


def _little(name: str, group: list[Summary]) -> str:
    """Say where what a scheduler's waits make of the queue is not its queue; empty where it is."""
    spans = [each.window.end - each.window.begin for each in group if each.window]
    queues = [each.waiting.mean for each in group if each.waiting.mean is not None]
    if not group or len(queues) < len(group) or sum(spans) <= 0.0:
        return ""
    by_law = sum(each.waited.tasks * (each.wait_time.mean or 0.0) for each in group if each.waited) / sum(spans)
    queue = sum(queues) / len(queues)
    if abs(by_law - queue) <= LITTLE_APART * max(by_law, queue, 1.0):
        return ""
    return f"{count_text(by_law)}, not {count_text(queue)}, of {name}"


def _sketched(runs: list[Run]) -> list[str]:
    """Say how far percentiles may be off that are not of every task's value."""
    off = max((run.summary.percentiles_within or 0.0 for run in runs), default=0.0)
    return [f"Percentiles of waits and slowdowns of tasks are those of a sketch (DDSketch), each within "
            f"{100 * off:g} % of its value; counts, means and largest values are exact."] if off else []


def seeds_of(runs: list[Run]) -> int:
    """Return how many seeds the runs have."""
    return len({run.summary.seed for run in runs})


def _seeds(runs: list[Run]) -> list[str]:
    """Say what several seeds changed, and for whom they changed nothing."""
    seeds = seeds_of(runs)
    if seeds == 1:
        return []
    if trace_days(runs) is not None:
        return list(_redrawn(runs))
    ways = {str(run.summary.options.get("resample", "")) for run in runs}
    words = " and ".join(REDRAWN.get(way, ONE_WORKLOAD) for way in sorted(ways))
    once = [name for name, group in groups(runs).items() if len(group) == 1]
    alone = f" A seed changes nothing for {', '.join(once)}: run once." if once else ""
    return [f"Means over {seeds} seeds, {words}.{alone}"]


def _redrawn(runs: list[Run]) -> Iterator[str]:
    """Say what the draws of a trace's days are, and where they say little."""
    facts = next(run.summary.redrawn for run in runs if run.summary.redrawn is not None)
    seeds = {run.summary.seed for run in runs}
    kinds = [sum(drawn_by(seed) == kind for seed in seeds) for kind in (WHOLE_DAYS, USERS_DAYS)]
    parts = parts_text(facts.days, facts.length)
    yield (f"{values_of(runs)} For the intervals its {parts} were drawn anew: {kinds[0]} times for all users together, "
           f"{kinds[1]} times for each apart.")
    if min(kinds) < DRAWS_WANTED:
        yield f"Intervals narrow with more draws, up to --seeds 1-{2 * DRAWS_WANTED + 1}."
    yield from uneven(facts.sessions)
    yield from _waits_of_draws(runs)


def values_of(runs: list[Run]) -> str:
    """Say of what the values of runs on a trace, or on draws of it, are."""
    return VALUES_OF_TRACE if any(drawn_by(run.summary.seed) == ITSELF for run in runs) else VALUES_OF_DRAWS


def uneven(sessions: float) -> list[str]:
    """Say where a trace hangs upon a few sessions of users."""
    return [f"Beware: the trace's work is as uneven as that of {sessions:.0f} alike sessions of users, so intervals "
            "may be too narrow."] if sessions < SESSIONS_FEW else []


def parts_text(parts: int, length: float) -> str:
    """Return what is drawn anew of a trace: days, or what a short one was cut into."""
    return counted(parts, "day") if length == DAY_S else f"{counted(parts, 'part')} of {seconds_text(length)}"


def _waits_of_draws(runs: list[Run]) -> Iterator[str]:
    """Say where mean waits of draws lie apart from the trace's, and where whole days differ more than users' days."""
    apart, alike = [], []
    for name, group in groups(runs).items():
        waits = {run.summary.seed: run.summary.wait_time.mean for run in group if run.summary.wait_time.mean}
        of = {kind: np.log([wait for seed, wait in waits.items() if drawn_by(seed) == kind])
              for kind in (ITSELF, WHOLE_DAYS, USERS_DAYS)}
        draws = np.concatenate([of[WHOLE_DAYS], of[USERS_DAYS]])
        if of[ITSELF].size and draws.size:
            middle = float(np.median(draws) - of[ITSELF][0])
            if abs(middle) > math.log1p(MIDDLE_APART):
                apart.append(f"{name} ({difference_text(math.expm1(middle))})")
        if min(of[WHOLE_DAYS].size, of[USERS_DAYS].size) >= PAIRS_MIN and (
                of[WHOLE_DAYS].std(ddof=1) > SPREAD_APART * of[USERS_DAYS].std(ddof=1)):
            alike.append(name)
    if apart:
        yield f"Beware: the mean wait of the median draw is not the trace's: {_few(apart)}."
    if alike:
        yield f"Days differ for all users alike, more than each user's days do apart: by the waits of {_few(alike)}."


def _gangs(runs: list[Run]) -> list[str]:
    """Say who took gangs apart, so that waits are not of the same work."""
    apart = {name: group[0].summary.gangs_apart for name, group in groups(runs).items() if group[0].summary.gangs_apart}
    if not apart:
        return []
    return [f"Beware: {', '.join(apart)} started the tasks of {count_text(max(apart.values()))} gangs one by one, not "
            "together (--gangs apart), so that waits are not of the work that others had."]


def _knowledge(runs: list[Run]) -> list[str]:
    """Say who knows run times before the tasks run, which the others have to do without."""
    known = [f"{name} ({knows_of(group)})" for name, group in groups(runs).items()
             if knows_of(group) not in (NOTHING, UNKNOWN)]
    return [f"Know run times before the tasks run: {', '.join(known)}."] if known else []


def _energy(runs: list[Run]) -> list[str]:
    """Say what costs are counted in, and what power follows."""
    known = dict.fromkeys((run.summary.energy.resource, run.summary.energy.currency)
                          for run in runs if run.summary.energy)
    return [f"Used hours are of {resource}" + (f", costs in {currency}." if currency else ".")
            for resource, currency in known]


def _plans(runs: list[Run]) -> list[str]:
    """Say of whom plans could not be made during the run, so that older ones went on."""
    said = [missed_words(run.label, run.summary.plan) for run in runs if run.summary.plan]
    return [f"{each}." for each in said if each]


def knows_of(group: list[Run]) -> str:
    """Return what the scheduler of some runs knew of run times."""
    return group[0].summary.knows or NOTHING


def _mark(runs: list[Run]) -> str:
    seeds = seeds_of(runs)
    if seeds == 1:
        return "* best of these single runs, which may be chance: --seeds 1-10, or 1-41 of a trace, gives each " \
               "difference a 95 % interval."
    if trace_days(runs) is not None and seeds < SEEDS_OF_TRACE:
        return f"No value is marked as best: 95 % intervals of a trace take seeds 1-{SEEDS_OF_TRACE}, not {seeds}."
    if seeds < PAIRS_MIN:
        return f"No value is marked as best: 95 % intervals take {PAIRS_MIN} seeds, there are {seeds}."
    return "* a best value that differs from each other, a difference that differs from 0: p at most " \
           f"{1 - LEVEL:.2f}, over all schedulers of the row (Holm)."


def difference_notes(
    rows: Iterable[tuple[str, Sequence[Difference]]], names: Sequence[str], of: TraceDays | None = None,
) -> list[str]:
    """Return how differences over several seeds were found, and where the means say the opposite.

    *rows*: measures in words with the difference of each of the schedulers *names*; *of*: days that seeds draw from.
    """
    shown = [(title, found) for title, found in rows if any(each.p is not None for each in found)]
    if not shown:
        return []
    if of is not None:
        return ["Differences are the trace's own, with 95 % intervals of the typical "
                f"{stretch_of([of.days])} (Student's t of logarithms, {of.freedom} degrees of freedom at most: days "
                "less classes of days).", *_ways(shown)]
    return ["Differences are of the typical seed (geometric mean of the ratios, seed by seed), with 95 % intervals "
            "(Student's t of their logarithms).", *_ways(shown), *_opposites(shown, names)]


def stretch_of(days: Iterable[int]) -> str:
    """Return what traces of so many days each are: weeks, or stretches of another length (of eighths, if short)."""
    return "week" if set(days) == {WEEK} else "stretch as long as the trace"


def _ways(rows: Sequence[tuple[str, Sequence[Difference]]]) -> Iterator[str]:
    """Say of which measures values that are 0 or less made another way necessary."""
    for way, words in WAYS.items():
        titles = [title for title, found in rows if any(each.way == way for each in found)]
        if titles:
            yield f"{words}: {_few(titles)}."


def _opposites(rows: Sequence[tuple[str, Sequence[Difference]]], names: Sequence[str]) -> Iterator[str]:
    """Say where the typical seed and the means differ in their sign."""
    found = [f"{title} of {name} ({difference_text(each.share)}, of means {difference_text(each.of_means)})"
             for title, differences in rows for name, each in zip(names, differences, strict=True)
             if each.p is not None and (each.share or 0.0) * (each.of_means or 0.0) < 0.0]
    if found:
        yield f"A few seeds outweigh the others, so that means say the opposite: {_few(found)}."


def _few(words: Sequence[str]) -> str:
    """Return a list in words, of which the first few are named."""
    more = len(words) - MEASURES_NAMED_MAX
    return ", ".join(words[:MEASURES_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
