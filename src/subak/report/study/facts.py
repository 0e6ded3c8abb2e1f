"""Finds the best points of a study, and those that no other beats in two measures."""
from typing import NamedTuple

import numpy as np

from subak.measures.intervals import NOT_COMPARED, Difference, difference, holm
from subak.report.study.results import Results, of_seeds


class Best(NamedTuple):
    """The best point by a measure, and the one that comes next."""

    measure: str
    point: int
    value: float
    interval: tuple[float, float] | None  # 95 %, of the value
    rival: int | None  # the next best; None where there is none
    difference: Difference  # of the rival from it, judged together with all other points by Holm's rule


def means(results: Results, measure: str) -> np.ndarray:
    """Return float64[point]: the mean over the seeds, or the value on the trace; nan where a seed has no value."""
    return np.array([of_seeds(values, results.redrawn([point]))[0]
                     for point, values in enumerate(results.values[measure])])


def best_by(results: Results, measure: str) -> Best | None:
    """Return the best point by a measure; None where no value is better than another, or there is none."""
    less = results.columns[measure].less_is_better
    value = means(results, measure)
    if less is None or not np.isfinite(value).any():
        return None
    order = np.argsort(np.where(np.isfinite(value), value if less else -value, np.inf), kind="stable")
    order = order[np.isfinite(value[order])]
    point, rival = int(order[0]), int(order[1]) if order.size > 1 else None
    seeds = results.values[measure]
    others = holm([difference(seeds[each], seeds[point], results.redrawn([point, each])) for each in order[1:]])
    return Best(measure, point, *of_seeds(seeds[point], results.redrawn([point])), rival,
                others[0] if others else NOT_COMPARED)


def front(results: Results, one: str, other: str) -> list[int]:
    """Return the points than which no other is at least as good in two measures and better in one, best by *one* first.

    Of points that are alike in both, all are there.
    """
    value = np.column_stack([_cost(results, one), _cost(results, other)])
    finite = np.flatnonzero(np.isfinite(value).all(axis=1))
    found: list[int] = []
    for point in finite[np.lexsort((value[finite, 1], value[finite, 0]))]:
        if not found or value[point, 1] < value[found[-1], 1] or np.array_equal(value[point], value[found[-1]]):
            found.append(int(point))
    return found


def _cost(results: Results, measure: str) -> np.ndarray:
    """Return float64[point], of which less is better."""
    value = means(results, measure)
    return -value if results.columns[measure].less_is_better is False else value


class Group(NamedTuple):
    """Points that are drawn as one: the means over them, seed by seed."""

    name: str  # of the line
    place: tuple[int, ...]  # on the settings that are drawn
    value: float
    interval: tuple[float, float] | None


def grouped(results: Results, measure: str, drawn: tuple[int, ...], lines: tuple[int, ...]) -> list[Group]:
    """Return the mean of a measure, and its interval, by place on the *drawn* settings, and on those that make *lines*.

    Over the other settings it is the mean.
    """
    keys = [tuple(row) for row in results.places[:, [*drawn, *lines]].tolist()]
    found = []
    for key in dict.fromkeys(keys):
        points = [number for number, each in enumerate(keys) if each == key]
        seeds, redrawn = results.values[measure][points].mean(axis=0), results.redrawn(points)
        known = np.isfinite(seeds)  # those with which all of the points have a value
        if redrawn is not None:
            redrawn = redrawn._replace(seeds=tuple(np.array(redrawn.seeds)[known].tolist()))
        name = ", ".join(results.settings[setting].names[place]
                         for setting, place in zip(lines, key[len(drawn):], strict=True))
        if known.any():
            found.append(Group(name, key[:len(drawn)], *of_seeds(seeds[known], redrawn)))
    return found
