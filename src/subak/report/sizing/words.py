"""An answer of `subak size` in words, and its sizes as a table; the same in the terminal and on the page."""
import math
from collections.abc import Callable, Iterator

from subak.experiment.sizing.answer import Rise, Size, Sized, Sizing, Value
from subak.measures.intervals import SEEDS_MIN
from subak.measures.objective import IN_SECONDS, Objective, read_objective
from subak.report.notes import REDRAWN
from subak.report.number_text import NOTHING, count_text, number_text, ratio_text, seconds_text
from subak.report.tables.table import Amount, Cell, Table

ENDLESS = "never"
INTERVAL = "95 % interval"
SESSIONS_FEW = 30  # fewer are too few for what is drawn from them to vary as the workload does


def objectives_of(sizing: Sizing) -> list[Objective]:
    """Return the objectives that were to be kept."""
    return [read_objective(text) for text in sizing.objectives]


def headline(answer: Sized) -> str:
    """Return an answer in a few words."""
    if answer.fewest is None:
        return f"No number of machines of {answer.name} is enough" if answer.hopeless else (
            f"No number of machines up to {answer.limit:,} is enough")
    machines = "1 machine" if answer.fewest == 1 else f"{answer.fewest:,} machines"
    price = "" if answer.price is None else f" at {number_text(answer.price)}"
    return f"{machines} of {answer.name}{price}"


def interval_text(answer: Sized) -> str:
    """Return the interval of an answer; empty where there is none."""
    if answer.low is None:
        return ""
    if answer.high is None:
        return f"{answer.low:,} or more"
    return f"{answer.low:,} to {answer.high:,}"


def sentences(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Return what is to be said of an answer."""
    if answer.hopeless:
        yield f"{answer.hopeless}. A task that can never run misses every objective."
    elif answer.fewest is None:
        yield from _not_enough(sizing, answer)
    else:
        yield f"The fewest machines with which {_all_hold(sizing)} in the mean over the seeds."
        yield _certainty(sizing, answer)
    if answer.fewest == 1:
        yield "It is the smallest size there is."
    yield from _exceptions(sizing, answer)


def notes(sizing: Sizing) -> list[str]:
    """Return how the answers came about."""
    seeds = len(sizing.seeds)
    how = REDRAWN.get(sizing.resample, "one workload, decisions drawn anew")
    drawn = f"Each size with the same {seeds} seeds: {how}." if seeds > 1 else "One run for each size."
    few = seeds > 1 and sizing.sessions is not None and sizing.sessions < SESSIONS_FEW
    return [f"{sizing.workload} under {sizing.scheduler}. {drawn}",
            *(["Intervals are of the mean over the seeds: Student's t of its logarithm, 95 %; of the answer, the "
               "sizes that they do not decide."] if seeds >= SEEDS_MIN else []),
            *([f"Beware: seeds draw from {sizing.sessions} of the users' sessions, as many as the workload has, and so "
               "change little; intervals are too narrow."] if few else [])]


def size_table(sizing: Sizing, answer: Sized) -> Table:
    """Return the sizes that were tried: what each objective came to, and whether all were kept."""
    objectives = objectives_of(sizing)
    priced = any(size.price is not None for size in answer.sizes)
    titles = ["machines", *(["price"] if priced else []),
              *(title for each in objectives for title in (each.text, INTERVAL)), "kept"]
    return Table("sizes", f"Numbers of machines of {answer.name} that were tried", titles,
                 [_row(size, objectives, priced) for size in answer.sizes])


def value_text(objective: Objective) -> Callable[[float | None], str]:
    """Return how a value of an objective is said."""
    words = seconds_text if objective.measure in IN_SECONDS else ratio_text
    return lambda value: ENDLESS if value is not None and math.isinf(value) else words(value)


def _row(size: Size, objectives: list[Objective], priced: bool) -> list[Cell]:
    kept = "no: " + size.missed if size.missed else "yes" if size.keeps(objectives) else "no"
    cells = [cell for each, value in zip(objectives, size.values, strict=False) for cell in _cells(each, value)]
    missing: list[Cell] = [NOTHING] * (2 * len(objectives) - len(cells))
    price: list[Cell] = [Amount(size.price, number_text(size.price or 0.0))] if priced else []
    return [Amount(size.machines, count_text(size.machines)), *price, *cells, *missing, kept]


def _cells(objective: Objective, value: Value) -> list[Cell]:
    text = value_text(objective)
    known = value.low is not None and math.isfinite(value.mean)
    interval = f"{text(value.low)} to {text(value.high)}" if known else NOTHING
    return [Amount(value.mean if math.isfinite(value.mean) else None, text(value.mean)), interval]


def _all_hold(sizing: Sizing) -> str:
    return f"{' and '.join(sizing.objectives)} {'holds' if len(sizing.objectives) == 1 else 'hold'}"


def _certainty(sizing: Sizing, answer: Sized) -> str:
    interval = interval_text(answer)
    if interval:
        return f"95 % interval: {interval} machines."
    if len(sizing.seeds) == 1:
        return "One run for each size, so there is no interval."
    return f"No interval: that takes {SEEDS_MIN} seeds, there are {len(sizing.seeds)}."


def _not_enough(sizing: Sizing, answer: Sized) -> Iterator[str]:
    most = answer.sizes[-1]
    if most.missed:
        yield f"On {most.machines:,} machines: {most.missed}. A task that can never run misses every objective."
        return
    said = [f"{each.text}: {value_text(each)(value.mean)}"
            for each, value in zip(objectives_of(sizing), most.values, strict=True) if not each.holds(value.mean)]
    yield f"On {most.machines:,} machines, {'; '.join(said)}."


def _exceptions(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Say where more machines did not help."""
    for machines in answer.odd:
        kept = answer.fewest is not None and machines < answer.fewest
        yield (f"Not monotone: {machines:,} machines {'keep all objectives, too' if kept else 'do not keep them'}, "
               "so the answer is of the sizes that were tried around it.")
    for rise in answer.rises:
        yield _rise(sizing, answer, rise)


def _rise(sizing: Sizing, answer: Sized, rise: Rise) -> str:
    objective = objectives_of(sizing)[rise.objective]
    fewer, more = (answer.size(machines).values[rise.objective].mean for machines in (rise.fewer, rise.more))
    text = value_text(objective)
    return (f"Not monotone: {objective.measure}.{objective.statistic} is {text(fewer)} on {rise.fewer:,} machines and "
            f"{text(more)} on {rise.more:,}.")
