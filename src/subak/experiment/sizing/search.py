"""Bisects over the number of machines, for the answer and for the ends of its interval.

At each size the mean of every objective over the seeds has a 95 % interval. The fewest machines are those of the first
size at which all means keep their bounds. That answer's interval goes from the first size at which no interval excludes
it (every low end keeps its bound) to the first at which none leaves a doubt (every high end does). Sizes are tried only
once; what one search has tried, the next one goes by. All take objectives to become no worse with more machines; where
what was tried says otherwise, the answer says so (`odd`, `rises`).
"""
from collections.abc import Callable, Generator, Iterable, Sequence

import msgspec
import numpy as np

from subak.experiment.sizing.answer import HIGH, LOW, MEAN, Size, Sized, rises
from subak.measures.intervals import SEEDS_MIN, difference
from subak.measures.objective import Objective

CURVE = (0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5)  # times the answer: tried for the curve alone

Trial = Callable[[int], Size]


def search(name: str, trial: Trial, objectives: Sequence[Objective], start: int, limit: int) -> Sized:
    """Return the fewest machines from 1 to *limit* that keep the *objectives*, beginning with *start* of them."""
    tried: dict[int, Size] = {}

    def fewest_by(end: str) -> int | None:
        return fewest(lambda size: size.keeps(objectives, end), trial, tried, start, limit)

    found = fewest_by(MEAN)
    if found is not None and all(value.low is not None for value in tried[found].values):
        low, high = fewest_by(LOW), fewest_by(HIGH)
    else:
        low, high = None, None
    for near in [] if found is None else [round(found * part) for part in CURVE]:
        if 1 <= near <= limit and near not in tried:
            tried[near] = trial(near)
    return with_sizes(Sized(name, limit, (), found, low, high), tried.values(), objectives)


def with_sizes(answer: Sized, tried: Iterable[Size], objectives: Sequence[Objective]) -> Sized:
    """Return an answer with the sizes that were *tried*, and what is odd about them."""
    sizes, found = tuple(sorted(tried, key=lambda size: size.machines)), answer.fewest
    odd = tuple(size.machines for size in sizes
                if found is not None and size.keeps(objectives) != (size.machines >= found))
    return msgspec.structs.replace(answer, sizes=sizes, odd=odd, rises=rises(sizes, len(objectives), became_worse))


def fewest(holds: Callable[[Size], bool], trial: Trial, tried: dict[int, Size], start: int, limit: int) -> int | None:
    """Return the fewest machines for which *holds*, None where none up to *limit* do; sizes are added to *tried*."""
    search_ = bisection(holds, tried, start, limit)
    try:
        while True:
            machines = next(search_)
            tried[machines] = trial(machines)
    except StopIteration as ended:
        answer: int | None = ended.value
        return answer


def bisection(
    holds: Callable[[Size], bool], tried: dict[int, Size], start: int, limit: int
) -> Generator[int, None, int | None]:
    """Yield the next number of machines that is to be in *tried*, and return the fewest for which *holds*."""
    while True:
        high = min((machines for machines, size in tried.items() if holds(size)), default=None)
        most = max(tried, default=0)
        if high is None and most >= limit:
            return None
        if high is None:
            yield min(max(2 * most, start), limit)
            continue
        low = max((machines for machines in tried if machines < high), default=0)
        if high - low == 1:
            return high
        yield (low + high) // 2


def became_worse(more: np.ndarray, fewer: np.ndarray) -> bool:
    """Whether values, float64[seed] both, are larger with *more* machines: by interval, or by the mean of few seeds."""
    if more.mean() <= fewer.mean() or more.size < SEEDS_MIN:
        return bool(more.mean() > fewer.mean())
    ends = difference(more, fewer).ends
    return ends is not None and ends[0] > 0.0
