"""Computes the difference of two schedulers over the same seeds, with an interval.

A seed gives every scheduler the same workload, so values are compared seed by seed. The difference is that of the
typical seed, the geometric mean of the ratios, and its interval Student's t of their logarithms: it holds the truth in
95 of 100 cases from three seeds on, where the bootstrap of the ratio of means holds it in 80
(docs/decisions/0065-the-typical-seed.md). The ratio of means stands beside it, and is not judged.
Several differences are judged together by Holm's rule (A simple sequentially rejective multiple test procedure, 1979).
A value that is held against a bound has nothing to be paired with: see `mean_interval`.

Of one trace that was drawn anew by its days (`Redrawn`) the trace's own value is the estimate, and the draws tell its
spread alone: their deviation, not divided by the root of their number, for more draws tell no more of the trace. Draws
of D days of C classes lie closer together than weeks do, by the root of (D - C) / D, and t has D - C degrees of freedom
(docs/decisions/0069-days-of-a-trace.md).
"""
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from subak.workload.days import USERS_DAYS, WHOLE_DAYS, drawn_by

PAIRS_MIN = 3  # seeds that the interval of a difference takes
SEEDS_MIN = 6  # and that of a mean
LEVEL = 0.95
OFFSET_SHARE = 0.05  # of the mean of all values: added to each where some are 0, which have no logarithm
BOTH_ZERO_MAX = 1 / 3  # of the seeds: with more, there is no ratio to speak of
# ways to come by a difference
NO_WAY, BY_LOGARITHM, BY_OFFSET, BY_COUNT, BY_DIFFERENCE = range(5)


class Difference(NamedTuple):
    """By what share values are larger than those of a baseline, paired by seed."""

    share: float | None = None  # in the typical seed; None where there is no ratio
    ends: tuple[float, float] | None = None  # the 95 % interval of the share
    p: float | None = None  # of a difference as large by chance, from both sides; None where too few seeds say so
    of_means: float | None = None  # by what share the mean is larger
    way: int = NO_WAY
    offset: float = 0.0  # what was added to all values for their logarithms

    @property
    def is_decided(self) -> bool:
        """Whether chance alone seldom makes such a difference."""
        return self.p is not None and self.p <= 1 - LEVEL


NOT_COMPARED = Difference()


class TraceDays(NamedTuple):
    """The days of a trace from which seeds draw."""

    days: int
    freedom: int  # days less classes


class Redrawn(NamedTuple):
    """What values are of: a trace, and draws of its days."""

    seeds: tuple[int, ...]  # of each value
    of: TraceDays

    def spread(self, of: np.ndarray) -> "Spread | None":
        """Return the trace's own of float64[seed], and how far weeks lie apart; None where too few draws tell it."""
        what = np.array([drawn_by(seed) for seed in self.seeds])
        found = [of[what == kind] for kind in (WHOLE_DAYS, USERS_DAYS)]
        if min(each.size for each in found) < PAIRS_MIN:
            return None
        widest = max(found, key=lambda each: float(each.std(ddof=1)))
        return Spread(self.own(of), float(widest.std(ddof=1)) * math.sqrt(self.of.days / self.of.freedom),
                      min(self.of.freedom, widest.size - 1))

    def own(self, of: np.ndarray) -> float:
        """Return the trace's own value; the mean of the draws where it was not run itself (what tuning holds out)."""
        return float(of[self.seeds.index(1)] if 1 in self.seeds else of.mean())


class Spread(NamedTuple):
    """An estimate that varies evenly, such as a logarithm: its error, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: int

    def half(self, level: float) -> float:
        """Return by how much the truth may be larger, at a level of confidence from one side."""
        from scipy.stats import t as student  # noqa: PLC0415  (takes a while to load)

        return float(student.ppf(level, self.freedom)) * self.error

    def p(self) -> float:
        """Return how probable an estimate as far from 0 is by chance."""
        from scipy.stats import t as student  # noqa: PLC0415

        if self.error == 0.0:
            return float(self.value == 0.0)
        return 2.0 * float(student.sf(abs(self.value) / self.error, self.freedom))


def paired(values: dict[int, float], baseline: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64[seed], for the seeds that both have."""
    seeds = both(values, baseline)
    return np.array([values[seed] for seed in seeds]), np.array([baseline[seed] for seed in seeds])


def both(values: dict[int, float], baseline: dict[int, float]) -> tuple[int, ...]:
    """Return the seeds that both have."""
    return tuple(sorted(values.keys() & baseline.keys()))


def difference_by_seed(values: dict[int, float], baseline: dict[int, float], of: TraceDays | None) -> Difference:
    """Return how values by seed differ from the *baseline*'s; *of* says of what days the seeds are draws."""
    return difference(*paired(values, baseline), None if of is None else Redrawn(both(values, baseline), of))


def relative(values: np.ndarray, baseline: np.ndarray) -> float | None:
    """Return the mean of *values* over that of the *baseline*, less one; None where that is 0 or less (a cost).

    Both are float64[seed], in one unit.
    """
    least = baseline.mean() if baseline.size else 0.0
    return float(values.mean() / least - 1.0) if least > 0 else None


def difference(values: np.ndarray, baseline: np.ndarray, redrawn: Redrawn | None = None) -> Difference:
    """Return how *values* differ from the *baseline*, both float64[seed]; of one seed, or endless ones, means alone.

    *redrawn* says of which trace the seeds are draws, where they are.
    """
    of_means = relative(values, baseline) if redrawn is None else None
    if values.size < 2 or not np.isfinite([values, baseline]).all():
        of_means = relative(values, baseline)
        return Difference(of_means if values.size == 1 else None, of_means=of_means)
    if min(values.min(), baseline.min()) < 0.0:
        return _by_difference(values, baseline, of_means, redrawn)
    if values.all() and baseline.all():
        return _by_logarithm(values, baseline, of_means, redrawn)
    if np.mean((values == 0.0) & (baseline == 0.0)) >= BOTH_ZERO_MAX:
        if redrawn is not None:  # draws of one trace are no trials that may be counted
            own = [np.array([redrawn.own(each)]) for each in (values, baseline)]
            return Difference(relative(*own), way=BY_COUNT)
        return Difference(of_means, p=_sign_test(values - baseline), of_means=of_means, way=BY_COUNT)
    offset = OFFSET_SHARE * float(np.mean([values, baseline]))
    found = _by_logarithm(values + offset, baseline + offset, of_means, redrawn)
    return found._replace(way=BY_OFFSET, offset=offset)


def _by_logarithm(
    values: np.ndarray, baseline: np.ndarray, of_means: float | None, redrawn: Redrawn | None
) -> Difference:
    logarithm, half, p = _judged(np.log(values / baseline), redrawn)
    ends = None if half is None else (math.expm1(logarithm - half), math.expm1(logarithm + half))
    return Difference(math.expm1(logarithm), ends, p, of_means, BY_LOGARITHM)


def _by_difference(
    values: np.ndarray, baseline: np.ndarray, of_means: float | None, redrawn: Redrawn | None
) -> Difference:
    """Return a difference of amounts below 0 (a cost, where prices fall so far), which have no ratio seed by seed."""
    mean, half, p = _judged(values - baseline, redrawn)
    least = float(baseline.mean()) if redrawn is None else redrawn.own(baseline)
    ends = None if half is None or least <= 0 else ((mean - half) / least, (mean + half) / least)
    share = of_means if redrawn is None else mean / least if least > 0 else None
    return Difference(share, ends, p, of_means, BY_DIFFERENCE)


def _judged(of: np.ndarray, redrawn: Redrawn | None) -> tuple[float, float | None, float | None]:
    """Return the estimate, half of its 95 % interval, and how probable one as far from 0 is by chance."""
    found = _student(of) if redrawn is None else redrawn.spread(of)
    if found is None:
        return float(of.mean()) if redrawn is None else redrawn.own(of), None, None
    return found.value, found.half((1 + LEVEL) / 2), found.p()


def _student(of: np.ndarray) -> Spread | None:
    """Return the mean of draws of their own, and its error; None of too few."""
    if of.size < PAIRS_MIN:
        return None
    return Spread(float(of.mean()), float(of.std(ddof=1)) / math.sqrt(of.size), of.size - 1)


def _sign_test(of: np.ndarray) -> float | None:
    """Return how probable it is by chance that one of two is larger in as many seeds as here."""
    if of.size < PAIRS_MIN:
        return None
    from scipy.stats import binomtest  # noqa: PLC0415

    larger, smaller = int((of > 0).sum()), int((of < 0).sum())
    return float(binomtest(larger, larger + smaller).pvalue) if larger + smaller else 1.0


def holm(found: Sequence[Difference]) -> list[Difference]:
    """Return differences that are judged together: each p is what Holm's rule makes of it.

    The least of m is multiplied by m, the next one by m - 1, and none is less than one before it.
    """
    known = sorted((each.p, place) for place, each in enumerate(found) if each.p is not None)
    adjusted, least = list(found), 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(p * (len(known) - rank), 1.0))
        adjusted[place] = found[place]._replace(p=least)
    return adjusted


def mean_interval(values: np.ndarray, redrawn: Redrawn | None = None) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of *values*, float64[seed]; None with fewer than SEEDS_MIN.

    Of values of 0 or more by the delta method: the logarithm of the mean varies by the mean's standard error over the
    mean. Others (a cost, where prices fall below 0) have no logarithm: Student's t of the mean itself. Of a trace that
    was drawn anew it is the interval of its own value, by logarithms where none is 0 or less.
    """
    if not np.isfinite(values).all() or (redrawn is None and values.size < SEEDS_MIN):
        return None
    even = redrawn is None or values.min() <= 0.0
    found = _student(values) if redrawn is None else redrawn.spread(values if even else np.log(values))
    if found is None:
        return None
    mean, half = found.value, found.half((1 + LEVEL) / 2)
    if not even:
        return math.exp(mean - half), math.exp(mean + half)
    if not values.any():
        return 0.0, 0.0
    if values.min() < 0.0 or redrawn is not None:
        return mean - half if values.min() < 0.0 else max(mean - half, 0.0), mean + half
    return mean * math.exp(-half / mean), mean * math.exp(half / mean)
