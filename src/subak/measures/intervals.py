"""Differences between two schedulers over the same seeds, and how sure they are.

A seed gives every scheduler the same workload, so values are compared seed by seed. The interval is that of the ratio
of means, by the bootstrap over seeds (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13).
"""
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
    from scipy.stats import bootstrap  # noqa: PLC0415  (takes a while to load)

    def ratio(of: np.ndarray, to: np.ndarray, axis: int = -1) -> np.ndarray:
        least = to.mean(axis=axis)
        return np.divide(of.mean(axis=axis), least, out=np.full(np.shape(least), np.nan), where=least > 0) - 1.0

    found = bootstrap((values, baseline), ratio, paired=True, vectorized=True, n_resamples=DRAWS, method="percentile",
                      confidence_level=LEVEL, rng=np.random.default_rng(SEED)).confidence_interval
    return (float(found.low), float(found.high)) if np.isfinite(found.low + found.high) else None
