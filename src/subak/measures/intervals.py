"""Differences between two schedulers over the same seeds, and how sure they are.

A seed gives every scheduler the same workload, so values are compared seed by seed. The interval is that of the ratio
of means, by the bootstrap over seeds (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13).
A value that is held against a bound has nothing to be paired with, and waits are skewed: its interval is Student's t of
the logarithm of the mean, which covers better there (docs/decisions/0038-sizing.md).
"""
import math
import warnings

import numpy as np

SEEDS_MIN = 6  # of five, even the span from the least to the largest misses a median in 2 / 2^5 of all cases, over 5 %
LEVEL, DRAWS, SEED = 0.95, 9_999, 1


def paired(values: dict[int, float], baseline: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64[seed], for the seeds that both have."""
    seeds = sorted(values.keys() & baseline.keys())
    return np.array([values[seed] for seed in seeds]), np.array([baseline[seed] for seed in seeds])


def relative(values: np.ndarray, baseline: np.ndarray) -> float | None:
    """Return the mean of *values* over that of the *baseline*, less one; None where that is 0 or less (a cost)."""
    least = baseline.mean() if baseline.size else 0.0
    return float(values.mean() / least - 1.0) if least > 0 else None


def interval(values: np.ndarray, baseline: np.ndarray) -> tuple[float, float] | None:
    """Return the 95 % interval of `relative`, values being paired; None with fewer than SEEDS_MIN, or no ratio."""
    if values.size < SEEDS_MIN or baseline.mean() <= 0 or not np.isfinite([values, baseline]).all():
        return None
    if np.array_equal(values, baseline):
        return 0.0, 0.0
    from scipy.stats import DegenerateDataWarning, bootstrap  # noqa: PLC0415  (takes a while to load)

    def ratio(of: np.ndarray, to: np.ndarray, axis: int = -1) -> np.ndarray:
        least = to.mean(axis=axis)
        return np.divide(of.mean(axis=axis), least, out=np.full(np.shape(least), np.nan), where=least > 0) - 1.0

    with warnings.catch_warnings(action="ignore", category=DegenerateDataWarning):  # then there is none, below
        found = bootstrap((values, baseline), ratio, paired=True, vectorized=True, n_resamples=DRAWS,
                          method="percentile", confidence_level=LEVEL, rng=np.random.default_rng(SEED),
                          ).confidence_interval
    return (float(found.low), float(found.high)) if np.isfinite(found.low + found.high) else None


def mean_interval(values: np.ndarray) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of *values*, one a seed; None with fewer than SEEDS_MIN.

    Of values of 0 or more by the delta method: the logarithm of the mean varies by the mean's standard error over the
    mean. Others (a cost, where prices fall below 0) have no logarithm: Student's t of the mean itself.
    """
    if values.size < SEEDS_MIN or not np.isfinite(values).all():
        return None
    mean = float(values.mean())
    if mean == 0.0 and not values.any():
        return 0.0, 0.0
    from scipy.stats import t as student  # noqa: PLC0415  (takes a while to load)

    half = float(student.ppf((1 + LEVEL) / 2, values.size - 1)) * float(values.std(ddof=1)) / math.sqrt(values.size)
    if values.min() < 0.0:
        return mean - half, mean + half
    return mean * math.exp(-half / mean), mean * math.exp(half / mean)
