"""How two schedulers differ over the same seeds, and how sure that is.

A seed gives every scheduler the same workload, so values are compared seed by seed. The difference is that of the
typical seed, the geometric mean of the ratios, and its interval Student's t of their logarithms: it holds the truth in
95 of 100 cases from three seeds on, where the bootstrap of the ratio of means holds it in 80
(docs/decisions/0065-the-typical-seed.md). The ratio of means stands beside it, and is not judged.
Several differences are judged together by Holm's rule (A simple sequentially rejective multiple test procedure, 1979).
A value that is held against a bound has nothing to be paired with: see `mean_interval`.
"""
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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


def paired(values: dict[int, float], baseline: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64[seed], for the seeds that both have."""
    seeds = sorted(values.keys() & baseline.keys())
    return np.array([values[seed] for seed in seeds]), np.array([baseline[seed] for seed in seeds])


def relative(values: np.ndarray, baseline: np.ndarray) -> float | None:
    """Return the mean of *values* over that of the *baseline*, less one; None where that is 0 or less (a cost)."""
    least = baseline.mean() if baseline.size else 0.0
    return float(values.mean() / least - 1.0) if least > 0 else None


def difference(values: np.ndarray, baseline: np.ndarray) -> Difference:
    """Return how *values* differ from the *baseline*, both float64[seed]; of one seed, or endless ones, means alone."""
    of_means = relative(values, baseline)
    if values.size < 2 or not np.isfinite([values, baseline]).all():
        return Difference(of_means if values.size == 1 else None, of_means=of_means)
    if min(values.min(), baseline.min()) < 0.0:
        return _by_difference(values, baseline, of_means)
    if values.all() and baseline.all():
        return _by_logarithm(values, baseline, of_means)
    if np.mean((values == 0.0) & (baseline == 0.0)) >= BOTH_ZERO_MAX:
        return Difference(of_means, p=_sign_test(values - baseline), of_means=of_means, way=BY_COUNT)
    offset = OFFSET_SHARE * float(np.mean([values, baseline]))
    return _by_logarithm(values + offset, baseline + offset, of_means)._replace(way=BY_OFFSET, offset=offset)


def _by_logarithm(values: np.ndarray, baseline: np.ndarray, of_means: float | None) -> Difference:
    logarithm, half, p = _student(np.log(values / baseline))
    ends = None if half is None else (math.expm1(logarithm - half), math.expm1(logarithm + half))
    return Difference(math.expm1(logarithm), ends, p, of_means, BY_LOGARITHM)


def _by_difference(values: np.ndarray, baseline: np.ndarray, of_means: float | None) -> Difference:
    """Return a difference of amounts below 0 (a cost, where prices fall so far), which have no ratio seed by seed."""
    mean, half, p = _student(values - baseline)
    least = float(baseline.mean())
    ends = None if half is None or least <= 0 else ((mean - half) / least, (mean + half) / least)
    return Difference(of_means, ends, p, of_means, BY_DIFFERENCE)


def _student(of: np.ndarray) -> tuple[float, float | None, float | None]:
    """Return the mean, half of its 95 % interval, and how probable one as far from 0 is by chance."""
    mean = float(of.mean())
    if of.size < PAIRS_MIN:
        return mean, None, None
    from scipy.stats import t as student  # noqa: PLC0415  (takes a while to load)

    error = float(of.std(ddof=1)) / math.sqrt(of.size)
    if error == 0.0:
        return mean, 0.0, float(mean == 0.0)
    return (mean, float(student.ppf((1 + LEVEL) / 2, of.size - 1)) * error,
            2.0 * float(student.sf(abs(mean) / error, of.size - 1)))


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


def mean_interval(values: np.ndarray) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of *values*, one a seed; None with fewer than SEEDS_MIN.

    Of values of 0 or more by the delta method: the logarithm of the mean varies by the mean's standard error over the
    mean. Others (a cost, where prices fall below 0) have no logarithm: Student's t of the mean itself.
    """
    if values.size < SEEDS_MIN or not np.isfinite(values).all():
        return None
    mean, half, _ = _student(values)
    if half is None or (mean == 0.0 and not values.any()):
        return 0.0, 0.0
    if values.min() < 0.0:
        return mean - half, mean + half
    return mean * math.exp(-half / mean), mean * math.exp(half / mean)
