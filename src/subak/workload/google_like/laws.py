"""The laws of the model as inverse distribution functions of uniforms in ]0, 1[."""
import numpy as np
import scipy  # its parts load when they are first used

from subak.workload.google_like.parameters import Diurnal, Makespans

DIURNAL_KNOTS = 4096  # where Newton's method starts from: three steps then reach the last bits
NEWTON_STEPS = 4


def pareto_gaps(uniforms: np.ndarray, shape: float, mean: float) -> np.ndarray:
    """Return gaps, float64[task], seconds: pareto(shape, loc=-1) * (shape - 1) * mean (paper, section IV-A, Fig. 8).

    The mean of pareto(b, loc=-1) is 1 / (b - 1), so *mean* is the mean gap whatever the shape above 1.
    """
    return (uniforms ** (-1.0 / shape) - 1.0) * ((shape - 1.0) * mean)


def lognormal(uniforms: np.ndarray, law: Makespans) -> np.ndarray:
    """Return makespans, float64[task], seconds: the mean is the mass, mean / median the disparity (section V)."""
    return np.exp(law.mu + law.sigma * scipy.special.ndtri(uniforms))


def lognormal_of_two(uniforms: np.ndarray, second: np.ndarray, laws: tuple[Makespans, Makespans]) -> np.ndarray:
    """Return makespans of the first law, or of the second where *second* (bool[task]) holds."""
    mu = np.array([law.mu for law in laws])[second.view(np.uint8)]
    sigma = np.array([law.sigma for law in laws])[second.view(np.uint8)]
    with np.errstate(over="ignore"):  # who takes run times refuses an infinite one in words
        return np.exp(mu + sigma * scipy.special.ndtri(uniforms))


def truncated_exponential(uniforms: np.ndarray, rate: float | np.ndarray) -> np.ndarray:
    """Return priorities in ]0, 1], float64[task]: an exponential of *rate*, given that it is at most 1 (IV-D)."""
    return np.minimum(-np.log1p(uniforms * np.expm1(-rate)) / rate, 1.0)


def discrete(uniforms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return choices, int64[task]: row *i* of *weights* with probability weights[i] / their sum."""
    bounds = np.cumsum(weights) / np.sum(weights)
    last = int(np.flatnonzero(weights)[-1])  # rounding must not choose a row of weight 0 behind it
    return np.minimum(np.searchsorted(bounds, uniforms, side="right"), last)


def zipf_weights(count: int, exponent: float) -> np.ndarray:
    """Return float64[user]: the weight of the k-th user is k ** -exponent, k from 1."""
    return np.arange(1, count + 1, dtype=np.float64) ** -exponent


def bernoulli_sets(uniforms: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Return sets as bit masks, int64[task]: choice *i* is in with frequencies[i], independently, given one at least.

    *uniforms* is float64[1 + choices, task]. The first member is drawn from its exact law, which is why nothing
    is drawn twice: P(first = i) is frequencies[i] times the product of 1 - frequencies[j] over j < i.
    """
    none_before = np.concatenate([[1.0], np.cumprod(1.0 - frequencies)[:-1]])
    first = discrete(uniforms[0], frequencies * none_before)
    masks = np.left_shift(np.int64(1), first)
    for choice, frequency in enumerate(frequencies):
        member = (choice > first) & (uniforms[1 + choice] < frequency)
        masks |= member.astype(np.int64) << choice
    return masks


def diurnal_times(times: np.ndarray, law: Diurnal) -> np.ndarray:
    """Return when arrivals of an even stream (float64[task], seconds) come under a daily rhythm.

    The rate is 1 + A sin(2 pi (t - phase) / period) times the even one; over whole periods the count is the same.
    """
    whole = np.floor(times / law.period)
    target = times / law.period - whole  # in periods, [0, 1[
    knots = np.linspace(0.0, 1.0, DIURNAL_KNOTS + 1)
    solved = np.interp(target, _elapsed(knots, law), knots)
    for _ in range(NEWTON_STEPS):
        rate = 1.0 + law.amplitude * np.sin(2 * np.pi * (solved - law.phase / law.period))
        solved -= (_elapsed(solved, law) - target) / rate
    return (whole + np.clip(solved, 0.0, 1.0)) * law.period


def _elapsed(times: np.ndarray, law: Diurnal) -> np.ndarray:
    """Return the integral of the rate from 0 to *times*, both in periods; 1 at 1."""
    phase = law.phase / law.period
    swing = np.cos(2 * np.pi * phase) - np.cos(2 * np.pi * (times - phase))
    return times + law.amplitude / (2 * np.pi) * swing
