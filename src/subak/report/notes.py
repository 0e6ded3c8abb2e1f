"""What is said below a comparison: what was measured, what seeds changed, and what a mark means."""
from collections.abc import Iterable, Iterator, Sequence

from subak.measures.intervals import BY_COUNT, BY_DIFFERENCE, BY_OFFSET, LEVEL, PAIRS_MIN, Difference
from subak.measures.plans import missed_words
from subak.measures.runs import Run, groups
from subak.measures.side_by_side import differences, of_one_fleet
from subak.placement.schedulers import NOTHING
from subak.report.number_text import count_text, difference_text, seconds_text

REDRAWN = {"sessions": "sessions of users drawn anew for each",
           "model": "the workload drawn anew from its model for each"}

MEASURES_NAMED_MAX = 4  # measures that a note names
WAYS = {
    BY_OFFSET: "Some seeds are 0, so 5 % of the mean of all values was added to each (such intervals cover about 94 %)",
    BY_COUNT: "In a third of the seeds or more both are 0, so there is no interval, and p counts who was better",
    BY_DIFFERENCE: "Some values are below 0, so the interval is of the differences themselves (and covers about 88 %)",
}


def notes(runs: list[Run], marks: bool = True) -> list[str]:
    """Return the notes on runs that are shown side by side, a sentence or two each; *marks*: on what a star means."""
    several = len(groups(runs)) > 1
    return [*_settings(runs), *window_notes(runs), *_sketched(runs), *_seeds(runs), *_knowledge(runs), *_energy(runs),
            *_plans(runs),
            *([_mark(runs)] if several and marks else [])]


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
                     f"then, {out} left out; means over time are of that time.")
    return found


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
    ways = {str(run.summary.options.get("resample", "")) for run in runs}
    words = " and ".join(REDRAWN.get(way, "one workload, decisions drawn anew") for way in sorted(ways))
    once = [name for name, group in groups(runs).items() if len(group) == 1]
    alone = f" A seed changes nothing for {', '.join(once)}: run once." if once else ""
    return [f"Means over {seeds} seeds, {words}.{alone}"]


def _knowledge(runs: list[Run]) -> list[str]:
    """Say who knows run times in advance, which the others have to do without."""
    known = [f"{name} knows {knows_of(group)}" for name, group in groups(runs).items() if knows_of(group) != NOTHING]
    return [f"Told in advance: {'; '.join(known)}."] if known else []


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
        return "* best of these single runs; --seeds 1-10 shows whether that is chance."
    if seeds < PAIRS_MIN:
        return f"No value is marked as best: 95 % intervals take {PAIRS_MIN} seeds, there are {seeds}."
    return "* a best value that differs from each other, a difference that differs from 0: p at most " \
           f"{1 - LEVEL:.2f}, over all schedulers of the row (Holm)."


def difference_notes(rows: Iterable[tuple[str, Sequence[Difference]]], names: Sequence[str]) -> list[str]:
    """Return how differences over several seeds were found, and where the means say the opposite.

    *rows*: measures in words with the difference of each of the schedulers *names*.
    """
    shown = [(title, found) for title, found in rows if any(each.p is not None for each in found)]
    if not shown:
        return []
    return ["Differences are of the typical seed (geometric mean of the ratios, seed by seed), with 95 % intervals "
            "(Student's t of their logarithms).", *_ways(shown), *_opposites(shown, names)]


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
