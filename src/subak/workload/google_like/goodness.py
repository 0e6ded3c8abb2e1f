"""Measures goodness of fit: the Kolmogorov-Smirnov distance of each law from the data.

The paper compares two laws of makespans; here are five. Its Pareto law starts at the least makespan (type I: with the
trace's mean logarithm that gives its 0.113 and 0.073); the one that starts at 0 (type II, Lomax) is the gaps' law.
"""
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import numpy as np
import scipy  # its parts load when they are first used

LEVELS = {"median": 0.5, "p90": 0.9, "p99": 0.99}
CURVE_LEVELS = (*(step / 200 for step in range(200)), 0.998, 0.999, 0.9995, 0.9999, 1.0)
VALUES_SEEN_MAX = 20_000  # the slow fits (Weibull, gamma, Pareto II) see this many values, evenly spaced by rank


class Numbers(msgspec.Struct, frozen=True):
    """A distribution in a few numbers; None where a law has no such number (an infinite mean)."""

    mean: float | None
    median: float
    p90: float
    p99: float
    most: float  # of n values; of a law, what one of n draws exceeds on average


class Shaped(Protocol):
    """A family of laws of scipy.stats."""

    name: str
    shapes: str | None  # its parameters but for place and scale, separated by commas


class FrozenLaw(Protocol):
    """A law of scipy.stats with its parameters."""

    dist: Shaped
    args: tuple[float, ...]
    kwds: dict[str, float]

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Return the share that is at most x."""

    def sf(self, x: np.ndarray) -> np.ndarray:
        """Return the share that is more than x."""

    def ppf(self, q: float) -> float:
        """Return what a share of q is at most."""

    def isf(self, q: float) -> float:
        """Return what a share of q is more than."""

    def mean(self) -> float:
        """Return the mean."""


class Law(msgspec.Struct, frozen=True):
    """A fitted law beside the data."""

    name: str
    family: str  # its name in scipy.stats
    parameters: dict[str, float]  # as scipy.stats takes them
    distance: float  # Kolmogorov-Smirnov
    numbers: Numbers

    @property
    def frozen(self) -> FrozenLaw:
        """The law as scipy.stats has it."""
        return getattr(scipy.stats, self.family)(**self.parameters)


class Comparison(msgspec.Struct, frozen=True):
    """Data against laws; the laws are in order of their distance."""

    name: str
    count: int
    data: Numbers
    laws: tuple[Law, ...]
    values: tuple[float, ...]  # at CURVE_LEVELS, for charts

    def law(self, name: str) -> Law:
        """Return the law of that name."""
        return next(law for law in self.laws if law.name == name)


def compare(name: str, values: np.ndarray, extra: Mapping[str, FrozenLaw] | None = None) -> Comparison:
    """Compare positive *values* with the five laws, and with *extra* frozen laws of scipy.stats by name.

    *values*: float64[value], seconds, in any order.
    """
    values = np.sort(values)
    thin = thinned(values)
    frozen = {title: fit(values if title in QUICK else thin) for title, fit in FITS.items()} | dict(extra or {})
    laws = [Law(title, law.dist.name, _parameters(law), distance(values, law), _law_numbers(law, len(values)))
            for title, law in frozen.items()]
    ranked = tuple(sorted(laws, key=lambda law: law.distance))
    curve = np.quantile(values, CURVE_LEVELS, method="inverted_cdf").tolist()
    return Comparison(name, len(values), data_numbers(values), ranked, tuple(curve))


def distance(ordered: np.ndarray, law: FrozenLaw) -> float:
    """Return the largest difference of the distribution functions of *ordered* data and a *law*, ties counted once.

    *ordered*: float64[value], ascending. It is the distance of Kolmogorov and Smirnov, from 0 to 1.
    """
    places, first = np.unique(ordered, return_index=True)
    share = law.cdf(places)
    below, upto = first / len(ordered), np.append(first[1:], len(ordered)) / len(ordered)
    return float(max(np.abs(share - below).max(), np.abs(share - upto).max()))


def thinned(ordered: np.ndarray, count: int = VALUES_SEEN_MAX) -> np.ndarray:
    """Return at most *count* of *ordered*, float64[value], evenly spaced by rank: equal data give equal values."""
    if len(ordered) <= count:
        return ordered
    places = ((np.arange(count) + 0.5) * (len(ordered) / count)).astype(np.int64)
    return ordered[places]


def data_numbers(values: np.ndarray) -> Numbers:
    """Return a sample, float64[value], in numbers of its unit."""
    median, p90, p99 = np.quantile(values, list(LEVELS.values())).tolist()
    return Numbers(float(values.mean()), median, p90, p99, float(values.max()))


def _law_numbers(law: FrozenLaw, count: int) -> Numbers:
    mean = float(law.mean())
    median, p90, p99 = (float(law.ppf(level)) for level in LEVELS.values())
    return Numbers(mean if np.isfinite(mean) else None, median, p90, p99, float(law.isf(1 / (count + 1))))


def _parameters(law: FrozenLaw) -> dict[str, float]:
    names = [*(law.dist.shapes.split(", ") if law.dist.shapes else []), "loc", "scale"]
    chosen = dict(zip(names, law.args, strict=False)) | law.kwds
    return {name: float(value) for name, value in chosen.items()}


def log_normal(values: np.ndarray) -> FrozenLaw:
    """Return the log-normal law of greatest likelihood for float64[value]: mu and sigma are those of the logarithms."""
    logs = np.log(values)
    return scipy.stats.lognorm(s=float(logs.std()), loc=0.0, scale=float(np.exp(logs.mean())))


def pareto_from_least(values: np.ndarray) -> FrozenLaw:
    """Return the Pareto law (type I) that starts at the least of float64[value], as the paper fits it."""
    least = float(values.min())
    return scipy.stats.pareto(b=float(1 / np.log(values / least).mean()), loc=0.0, scale=least)


def pareto_from_zero(values: np.ndarray) -> FrozenLaw:
    """Return the Pareto law that starts at 0 (type II, Lomax) for float64[value].

    Its likelihood is maximised over the scale alone.
    """
    middle = float(np.log(values).mean())
    found = scipy.optimize.minimize_scalar(lambda log_scale: _lomax_loss(values, log_scale), method="bounded",
                                           bounds=(middle - 15, middle + 15), options={"xatol": 1e-6})
    scale = float(np.exp(found.x))
    return scipy.stats.lomax(c=float(1 / np.log1p(values / scale).mean()), loc=0.0, scale=scale)


def _lomax_loss(values: np.ndarray, log_scale: float) -> float:
    inverse = float(np.log1p(values / np.exp(log_scale)).mean())
    return log_scale + np.log(inverse) + inverse


def weibull(values: np.ndarray) -> FrozenLaw:
    """Return the Weibull law of greatest likelihood for float64[value].

    Its shape k solves mean(x^k ln x) / mean(x^k) - 1 / k = mean(ln x).
    """
    logs = np.log(values)
    top, middle = float(logs.max()), float(logs.mean())

    def surplus(shape: float) -> float:
        weights = np.exp(shape * (logs - top))
        return float(weights @ logs / weights.sum()) - 1 / shape - middle

    high = 1.0
    while surplus(high) < 0:
        high *= 2
    shape = float(scipy.optimize.brentq(surplus, 1e-4, high))
    scale = np.exp(top) * float(np.exp(shape * (logs - top)).mean()) ** (1 / shape)
    return scipy.stats.weibull_min(c=shape, loc=0.0, scale=float(scale))


def gamma(values: np.ndarray) -> FrozenLaw:
    """Return the gamma law of greatest likelihood for float64[value], by scipy."""
    shape, loc, scale = scipy.stats.gamma.fit(values, floc=0.0)
    return scipy.stats.gamma(a=float(shape), loc=loc, scale=float(scale))


FITS: dict[str, Callable[[np.ndarray], Any]] = {
    "log-normal": log_normal,
    "Weibull": weibull,
    "gamma": gamma,
    "Pareto from 0": pareto_from_zero,
    "Pareto from the least": pareto_from_least,
}
QUICK = ("log-normal", "Pareto from the least")  # closed forms, which see all values
