"""Finds the facts of the verdict: best scheduler, difference, certainty, cost and reasons."""
import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from subak.measures.runs import Run, groups, on_trace, trace_days
from subak.measures.side_by_side import of_one_fleet
from subak.placement.schedulers import KNOWLEDGE, UNKNOWN, foreknown
from subak.report.comparison import RECORDED, verdict
from subak.report.notes import knows_of
from subak.report.number_text import count_text, difference_text, seconds_text, share_text
from subak.report.short_names import shortened
from subak.report.tables.differences import Compared, compared
from subak.report.verdict.placed import classes, long_limit, placed, worse_queues

COSTS_MAX = 3  # measures that are said to be worse, one a family
COST_LEAST = 0.01  # relative difference that is worth a word
# Families that are nobody's loss: they say how a scheduler works, or say the wait again.
NO_COST = ("Simulation", "Federation", "Its parts, mean", "Allocation time", "Fragmented")


class Verdict(NamedTuple):
    """What the card says; *facts* are headings with their sentences."""

    headline: str
    chosen: int | None  # the place of the recommended scheduler; None where none is, or there is one only
    sentence: str
    facts: list[tuple[str, list[str]]]


class Pair(NamedTuple):
    """The recommended scheduler and the one it is measured against: the baseline, or the next best if it is that."""

    chosen: int
    other: int
    names: Sequence[str]


def judged(runs: list[Run], rows: Sequence[Compared], baseline: int = 0) -> Verdict:
    """Return the verdict over *runs*, whose comparison from *baseline* is *rows*."""
    everyone, sentence = list(groups(runs)), verdict(runs)
    if not of_one_fleet(runs):
        return Verdict("Not of the same machines", None, sentence, [
            ("Why none is recommended", ["The runs are on different machines: what differs between them is not the "
                                         "scheduler's doing alone."])])
    runs, rows, baseline = _equals(runs, rows, baseline)
    names = list(groups(runs))
    wait = _row(rows, "Wait time", "mean")
    if wait is None or len(names) == 1:
        nobody = "No task started" if wait is None else "None is clearly best"
        return Verdict(everyone[0] if len(everyone) == 1 else nobody, None, sentence, [])
    chosen = _chosen(wait)
    if chosen is None:
        return Verdict("None is clearly best", None, sentence, [("How certain", [_certainty(runs, wait, None)])])
    pair = Pair(chosen, baseline if chosen != baseline else _next_best(wait, chosen), names)
    facts = [("By how much", list(_gains(rows, wait, pair))), ("How certain", [_certainty(runs, wait, pair)]),
             ("At whose cost", list(_costs(on_trace(runs), rows, pair)) or ["No measure or queue is worse."]),
             ("Why", list(_reasons(on_trace(runs), pair)))]
    return Verdict(names[chosen], everyone.index(names[chosen]), sentence,
                   [(title, said) for title, said in facts if said])


def _equals(
    runs: list[Run], rows: Sequence[Compared], baseline: int
) -> tuple[list[Run], Sequence[Compared], int]:
    """Return the runs of schedulers that know the least of run times, compared; all if there are no two of them.

    Who is told more in advance, or is the scheduler of a log, is not one of them; users' estimates are told to all.
    """
    ranks = [word for word in KNOWLEDGE if word != UNKNOWN]
    known = {name: next((rank for rank, word in enumerate(ranks) if foreknown(knows_of(group)).startswith(word)),
                        len(ranks))
             for name, group in groups(runs).items() if group[0].summary.scheduler != RECORDED}
    equals = [name for name, rank in known.items() if rank == min(known.values())]
    if len(equals) == len(groups(runs)) or len(equals) < 2:
        return runs, rows, baseline
    name = list(groups(runs))[baseline]
    fair = [run for run in runs if run.group in equals]
    own = equals.index(name) if name in equals else 0
    return fair, compared(fair, own), own


def _row(rows: Sequence[Compared], family: str, title: str) -> Compared | None:
    return next((row for row in rows if (row.measure.family, row.measure.title) == (family, title)), None)


def _chosen(wait: Compared) -> int | None:
    """Return the first of those whose mean wait is best; none where differences do not decide."""
    best = [(wait.values[number], number) for number in wait.best]
    return min((value, number) for value, number in best if value is not None)[1] if best else None


def _next_best(wait: Compared, chosen: int) -> int:
    ranked = sorted((value, number) for number, value in enumerate(wait.values)
                    if value is not None and number != chosen)
    return ranked[0][1] if ranked else chosen


def _gains(rows: Sequence[Compared], wait: Compared, pair: Pair) -> Iterator[str]:
    yield _against(wait, pair, "mean wait")
    for what, family, title in (("99 % wait at most", "Wait time", "99 %"),
                                ("mean slowdown", "Bounded slowdown", "mean")):
        row = _row(rows, family, title)
        if row is not None and _said(row, pair.chosen) != _said(row, pair.other):
            yield _against(row, pair, what)
    equal = [pair.names[number] for number in sorted(wait.best) if number != pair.chosen]
    if equal:
        yield f"As good: {', '.join(equal)}."
    following = _next_best(wait, pair.chosen)
    if following not in (pair.other, *wait.best):
        yield f"Next best is {pair.names[following]}, with {_said(wait, following)} in the mean."


def _against(row: Compared, pair: Pair, what: str) -> str:
    here, there = row.values[pair.chosen], row.values[pair.other]
    difference = f" ({difference_text(here / there - 1)})" if here is not None and there else ""
    return (f"{what[0].upper()}{what[1:]}: {_said(row, pair.chosen)} against {_said(row, pair.other)} of "
            f"{pair.names[pair.other]}{difference}.")


def _said(row: Compared, number: int) -> str:
    return row.measure.text(row.values[number])


def _certainty(runs: list[Run], wait: Compared, pair: Pair | None) -> str:
    seeds = min(len(members) for members in groups(runs).values())
    if seeds < 2:
        return "One run each: what is said holds of this workload and this seed, and no interval can be given. " \
               "subak compare --seeds 1-10 draws the workload anew for each seed."
    over = f"Over {seeds} seeds" if trace_days(runs) is None else "By draws of the trace's days"
    if pair is None:
        return f"{over}, the differences do not tell the schedulers apart."
    interval = wait.interval(pair.chosen)
    if interval:
        return f"{over}, the 95 % interval of the difference in mean wait from the baseline is {interval}."
    return f"It has the lowest mean wait in {_wins(runs, pair)} of {seeds} seeds."


def _wins(runs: list[Run], pair: Pair) -> int:
    """Return in how many seeds the chosen scheduler waits least of those that ran with that seed."""
    by_seed: dict[int, dict[str, float]] = {}
    for run in runs:
        if run.summary.wait_time.mean is not None:
            by_seed.setdefault(run.summary.seed, {})[run.group] = run.summary.wait_time.mean
    chosen = pair.names[pair.chosen]
    return sum(chosen in found and found[chosen] <= min(found.values()) for found in by_seed.values())


def _costs(runs: list[Run], rows: Sequence[Compared], pair: Pair) -> Iterator[str]:
    worst: dict[str, tuple[float, Compared]] = {}
    for row in rows:
        loss = _loss(row, pair)
        if loss > max(COST_LEAST, worst.get(row.measure.family, (0.0, row))[0]):
            worst[row.measure.family] = loss, row
    for _, row in sorted(worst.values(), key=lambda each: -each[0])[:COSTS_MAX]:
        yield _against(row, pair, row.title)
    by_scheduler = groups(runs)
    here, there = (by_scheduler[pair.names[number]] for number in (pair.chosen, pair.other))
    found = worse_queues(here, there)
    if found:
        name = shortened([found.queue])[found.queue]
        yield (f"{count_text(found.worse)} of {count_text(found.queues)} queues wait longer in the mean; {name} most: "
               f"{seconds_text(found.seconds)} against {seconds_text(found.other_seconds)}.")
    limit = long_limit(here)
    if limit is not None:
        mine, other = classes(here, limit), classes(there, limit)
        if mine.long is not None and other.long is not None and mine.long > other.long * (1 + COST_LEAST) + 1:
            yield (f"Tasks of {seconds_text(limit)} or longer wait {seconds_text(mine.long)} in the mean, against "
                   f"{seconds_text(other.long)}.")


def _loss(row: Compared, pair: Pair) -> float:
    """Return by what share a measure of the chosen scheduler is worse; zero where it is not, or is not judged."""
    here, there = row.values[pair.chosen], row.values[pair.other]
    if row.measure.best is None or row.measure.family in NO_COST or here is None or not there:
        return 0.0
    if _said(row, pair.chosen) == _said(row, pair.other):
        return 0.0
    change = here / there - 1
    return -change if row.measure.best is operator.gt else change


def _reasons(runs: list[Run], pair: Pair) -> Iterator[str]:
    """Say what differs in what was placed."""
    by_scheduler = groups(runs)
    here, there = (placed(by_scheduler[pair.names[number]]) for number in (pair.chosen, pair.other))
    other = pair.names[pair.other]
    if here.at_once is not None and there.at_once is not None:
        yield f"It starts {share_text(here.at_once)} of its tasks at once, {other} {share_text(there.at_once)}."
    if here.run_time_mean is not None and there.run_time_mean is not None:
        mine, others = ((count_text(each.started), seconds_text(each.run_time_mean)) for each in (here, there))
        if mine != others:  # else both have started the same by then, which says nothing of why one waits less
            yield (f"By the last arrival it had started {mine[0]} tasks, of {mine[1]} in the mean; {other} "
                   f"{others[0]}, of {others[1]}{_shape(here.run_time_mean / (there.run_time_mean or 1))}.")


def _shape(ratio: float) -> str:
    if ratio < 0.9:
        return ": it takes shorter tasks first"
    return ": it takes longer tasks first" if ratio > 1.1 else ""
