"""Estimates the laws of the Google-like model by maximum likelihood, with 95 % intervals.

Intervals come from the observed information: the curvature of the log-likelihood where it is highest.
"""
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
import scipy  # its parts load when they are first used

from subak.errors import InputError
from subak.workload.google_like.parameters import Makespans

Z = 1.959963984540054  # a normal variable lies within -Z and Z with probability 0.95
LOG_STEP = 1e-3  # censored log times are rounded to this, so that millions become some thousands with weights
SHAPE_MIN, SHAPE_MAX = 1.01, 1000.0  # of the Pareto law of gaps: its mean is infinite at 1, and 1000 is exponential


class Estimate(msgspec.Struct, frozen=True):
    """A fitted number with its 95 % confidence interval; None where none is known."""

    value: float
    low: float | None = None
    high: float | None = None

    def covers(self, truth: float) -> bool:
        """Return whether *truth* lies in the interval."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high


class LogNormal(msgspec.Struct, frozen=True):
    """A log-normal law as the paper names it (mass, disparity) and as textbooks do (mu, sigma), with intervals."""

    mu: Estimate
    sigma: Estimate
    mass: Estimate  # seconds
    disparity: Estimate

    @property
    def makespans(self) -> Makespans:
        """The two numbers that the generator takes."""
        return Makespans(self.mass.value, self.disparity.value)


class Ended(NamedTuple):
    """All that the likelihood needs of the logarithms of the run times that ended."""

    size: int
    mean: float
    variance: float  # with the divisor *size*


class Weighted(NamedTuple):
    """Logarithms of the times at which tasks were last seen running, equal ones counted."""

    logs: np.ndarray  # float64[value]
    weights: np.ndarray  # float64[value], how many tasks


class Peak(NamedTuple):
    """Where a likelihood is highest, and the covariance there."""

    at: np.ndarray
    covariance: np.ndarray


def ended(run_times: np.ndarray, what: str) -> Ended:
    """Return the sums of positive *run_times*, float64[task], seconds. Raises InputError unless two of them differ."""
    logs = np.log(run_times)
    if len(logs) < 2 or logs.max() - logs.min() < 1e-9:
        value = f"all {len(logs)} are {run_times[0]:g} s" if len(logs) else "none has one"
        raise InputError(f"{what}: disparity (mean / median) must exceed 1, so run times must be positive and differ; "
                         f"{value}")
    return Ended(len(logs), float(logs.mean()), float(logs.var()))


def last_seen(run_times: np.ndarray) -> Weighted:
    """Return the logarithms of positive censored *run_times*, float64[task], seconds, with how often each occurs."""
    logs, counts = np.unique(np.round(np.log(run_times) / LOG_STEP), return_counts=True)
    return Weighted(logs * LOG_STEP, counts.astype(np.float64))


def fit_log_normal(seen: Ended, running: Weighted) -> LogNormal:
    """Return the log-normal law of run times of which some were last seen *running*: right-censored."""
    if not len(running.logs):  # closed form; the information of ln sigma is 2 a task
        sigma = seen.variance**0.5
        covariance = np.diag([seen.variance / seen.size, 0.5 / seen.size])
        return _log_normal(Peak(np.array([seen.mean, np.log(sigma)]), covariance))

    def loss(theta: np.ndarray) -> float:
        survival = scipy.special.log_ndtr(-_standard(running.logs, theta[0], theta[1]))
        return _ended_loss(seen, theta[0], theta[1]) - float(running.weights @ survival)

    return _log_normal(_peak(loss, np.array([seen.mean, 0.5 * np.log(seen.variance)])))


def fit_two_log_normals(first: Ended, second: Ended, running: Weighted) -> tuple[Estimate, LogNormal, LogNormal]:
    """Return the share of the *first* kind and both laws, where nobody knows the kind of what is still *running*.

    A task that ended says its kind; one still running is of either: share * S1 + (1 - share) * S2.
    """
    def loss(theta: np.ndarray) -> float:
        own = (scipy.special.log_expit(theta[4]), scipy.special.log_expit(-theta[4]))
        survival = np.logaddexp(own[0] + scipy.special.log_ndtr(-_standard(running.logs, theta[0], theta[1])),
                                own[1] + scipy.special.log_ndtr(-_standard(running.logs, theta[2], theta[3])))
        return (_ended_loss(first, theta[0], theta[1]) + _ended_loss(second, theta[2], theta[3])
                - first.size * own[0] - second.size * own[1] - float(running.weights @ survival))

    start = np.array([first.mean, 0.5 * np.log(first.variance), second.mean, 0.5 * np.log(second.variance),
                      np.log(first.size / second.size)])
    peak = _peak(loss, start)
    spread = Z * float(peak.covariance[4, 4]) ** 0.5
    low, middle, high = scipy.special.expit(peak.at[4] + np.array([-spread, 0.0, spread])).tolist()
    laws = [_log_normal(Peak(peak.at[part], peak.covariance[part, part])) for part in (slice(0, 2), slice(2, 4))]
    return Estimate(middle, low, high), laws[0], laws[1]


def _standard(logs: np.ndarray, mu: float, log_sigma: float) -> np.ndarray:
    return (logs - mu) / np.exp(log_sigma)


def _ended_loss(seen: Ended, mu: float, log_sigma: float) -> float:
    squares = seen.variance + (seen.mean - mu) ** 2
    return float(seen.size * (log_sigma + 0.5 * squares * np.exp(-2 * log_sigma)))


def _log_normal(peak: Peak) -> LogNormal:
    """Turn mu and ln sigma with their covariance into the four numbers; intervals lie where their law is positive."""
    mu, log_sigma = peak.at.tolist()
    spread_mu, spread_sigma = (Z * np.sqrt(np.diag(peak.covariance))).tolist()
    sigmas = np.exp(log_sigma + np.array([0.0, -spread_sigma, spread_sigma]))
    square = sigmas[0] ** 2
    slope = np.array([1.0, square])  # of ln mass = mu + sigma^2 / 2 by mu and by ln sigma
    spread_mass = Z * float(slope @ peak.covariance @ slope) ** 0.5
    masses = np.exp(mu + square / 2 + np.array([0.0, -spread_mass, spread_mass]))
    return LogNormal(Estimate(mu, mu - spread_mu, mu + spread_mu), Estimate(*sigmas.tolist()),
                     Estimate(*masses.tolist()), Estimate(*np.exp(sigmas**2 / 2).tolist()))


def _peak(loss: Callable[[np.ndarray], float], start: np.ndarray) -> Peak:
    """Minimise *loss* from *start*; the inverse of its curvature there is the covariance."""
    scale = max(abs(loss(start)), 1.0)
    found = scipy.optimize.minimize(lambda theta: loss(theta) / scale, start, method="Nelder-Mead",
                                    options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000})
    return Peak(found.x, np.linalg.inv(_curvature(loss, found.x)))


def _curvature(loss: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Return the matrix of second derivatives by central differences."""
    size = len(at)
    steps = np.eye(size) * step
    matrix = np.empty((size, size))
    for row in range(size):
        for column in range(row + 1):
            corners = [loss(at + first * steps[row] + second * steps[column]) * first * second
                       for first in (1, -1) for second in (1, -1)]
            matrix[row, column] = matrix[column, row] = sum(corners) / (4 * step * step)
    return matrix


def fit_gap_shape(gaps: np.ndarray) -> Estimate:
    """Return the shape of the Pareto law of positive *gaps* that has their mean, as the generator draws it.

    The law is scipy's lomax(shape, scale=(shape - 1) * mean). Its mean is held at the sample's, which keeps the rate
    even where no Pareto law is right. The shape is kept within SHAPE_MIN and SHAPE_MAX; at an end it has no interval.
    """
    mean = float(gaps.mean())
    found = scipy.optimize.minimize_scalar(
        lambda log_surplus: _gap_loss(gaps, 1 + np.exp(log_surplus), mean), method="bounded",
        bounds=(np.log(SHAPE_MIN - 1), np.log(SHAPE_MAX - 1)), options={"xatol": 1e-7})
    shape = 1 + float(np.exp(found.x))
    if not 1.002 * SHAPE_MIN < shape < 0.98 * SHAPE_MAX:
        return Estimate(SHAPE_MIN if shape < 2 else SHAPE_MAX)
    spread = _shape_spread(gaps, shape, mean)
    low, high = 1 + (shape - 1) * np.exp(np.array([-spread, spread]))
    return Estimate(shape, float(low), float(high))


def _gap_loss(gaps: np.ndarray, shape: float, mean: float) -> float:
    """Return minus the mean log-likelihood of a gap."""
    scale = (shape - 1) * mean
    return float(np.log(scale) - np.log(shape) + (shape + 1) * np.log1p(gaps / scale).mean())


def _shape_spread(gaps: np.ndarray, shape: float, mean: float) -> float:
    """Return the half width of the interval of ln(shape - 1).

    Where I is the information of (ln(shape - 1), ln mean) of a gap, the variance is 1 / (n I11), and what the mean's
    own variance adds, (I12 / I11)^2 var(ln mean): the mean estimates itself whatever the shape, so the two errors are
    uncorrelated.
    """
    def loss(theta: np.ndarray) -> float:
        return _gap_loss(gaps, 1 + float(np.exp(theta[0])), float(np.exp(theta[1])))

    information = _curvature(loss, np.array([np.log(shape - 1), np.log(mean)]))
    variance = shape / (shape - 2) if shape > 2.1 else float(gaps.var()) / mean**2  # the sample's own is often low
    mean_variance = variance / len(gaps)
    own = 1 / (len(gaps) * information[0, 0])
    return Z * float(own + (information[0, 1] / information[0, 0]) ** 2 * mean_variance) ** 0.5


def mean_of(values: np.ndarray) -> Estimate:
    """Return the mean of float64[value] with the interval of the central limit theorem."""
    mean, spread = float(values.mean()), Z * float(values.std()) / len(values) ** 0.5
    return Estimate(mean, mean - spread, mean + spread)


def ratio_of(parts: np.ndarray, wholes: np.ndarray) -> Estimate:
    """Return sum of *parts* / sum of *wholes*, float64[job] both: what tasks of one job share counts once."""
    ratio, total = float(parts.sum() / wholes.sum()), float(wholes.sum())
    spread = Z * float(((parts - ratio * wholes) ** 2).sum()) ** 0.5 / total
    return Estimate(ratio, ratio - spread, ratio + spread)


def share_of(count: int, total: int) -> Estimate:
    """Return a share with Wilson's interval, which stays within 0 and 1."""
    share, weight = count / total, Z * Z / total
    centre, spread = share + weight / 2, Z * (share * (1 - share) / total + weight / (4 * total)) ** 0.5
    return Estimate(share, max(0.0, (centre - spread) / (1 + weight)), min(1.0, (centre + spread) / (1 + weight)))


def fit_truncated_exponential(values: np.ndarray) -> Estimate:
    """Return the rate of an exponential law truncated to ]0, 1] for float64[value] in it.

    Its mean is 1 / rate - 1 / (e^rate - 1).
    """
    mean = min(max(float(values.mean()), 2e-3), 0.499)  # at 1/2 the law is uniform, above it none of this kind

    def surplus(rate: float) -> float:
        return 1 / rate - 1 / np.expm1(rate) - mean

    rate = float(scipy.optimize.brentq(surplus, 1e-3, 700.0))
    information = 1 / rate**2 - 1 / (4 * np.sinh(rate / 2) ** 2)
    spread = Z / float(len(values) * information) ** 0.5
    return Estimate(rate, rate - spread, rate + spread)


def fit_zipf(counts: np.ndarray) -> Estimate:
    """Return the exponent of Zipf's law of *counts*, [rank], whose ranks are by size.

    It is slightly steeper than the ranks' own.
    """
    logs, sizes = np.log(np.arange(1, len(counts) + 1)), np.sort(counts)[::-1].astype(np.float64)
    total, seen = sizes.sum(), float(sizes @ logs / sizes.sum())

    def moments(exponent: float) -> tuple[float, float]:
        weights = np.exp(-exponent * logs)
        weights /= weights.sum()
        mean = float(weights @ logs)
        return mean, float(weights @ logs**2) - mean * mean

    if len(counts) < 2 or moments(0.0)[0] <= seen:
        return Estimate(0.0)
    exponent = float(scipy.optimize.brentq(lambda each: moments(each)[0] - seen, 0.0, 50.0))
    spread = Z / float(total * moments(exponent)[1]) ** 0.5
    return Estimate(exponent, exponent - spread, exponent + spread)
