"""Estimates percentiles of long streams: DDSketch, with bins that widen with the value.

A percentile is then within ACCURACY of the exact one, as a share of it; counts, means and the largest value are exact.
Source: Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees", VLDB
2019. The library adds one value at a time, so values are put into its bins here, a column at a time.
"""
import math

import numpy as np
import polars as pl
from ddsketch import DDSketch
from ddsketch.mapping import LogarithmicMapping

from subak.measures.of_run import LEVELS
from subak.measures.runs import Spread

ACCURACY = 0.005
LEAST, MOST = 1e-7, 1e14  # values that are told apart; what is less counts as zero, what is more as the most
MAPPING = LogarithmicMapping(ACCURACY)
BIN_FIRST, BIN_LAST = MAPPING.key(LEAST), MAPPING.key(MOST)
ZERO = 0  # the column of what counts as zero; behind it, a bin each


class Sketches:
    """Spreads of values, 0 or more, of several groups, which are numbered from 0 on."""

    def __init__(self) -> None:
        self.bins = np.zeros((0, BIN_LAST - BIN_FIRST + 2), np.int64)  # [group, bin]
        self.rows, self.values = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.total, self.largest = np.zeros(0), np.zeros(0)

    def add(self, group: np.ndarray, values: np.ndarray, groups: int) -> None:
        """Add rows: int64[row] of *groups* that there are by now, and float64[row], nan for one without a value."""
        self._grow(groups)
        self.rows += np.bincount(group, minlength=groups)
        known = ~np.isnan(values)
        group, values = group[known], values[known]
        self.values += np.bincount(group, minlength=groups)
        np.add.at(self.total, group, values)  # in their order, so that the sum is the same however rows come
        np.maximum.at(self.largest, group, values)
        np.add.at(self.bins.reshape(-1), group * self.bins.shape[1] + bins_of(values), 1)

    def _grow(self, groups: int) -> None:
        more = groups - self.rows.size
        if more > 0:
            self.bins = np.pad(self.bins, ((0, more), (0, 0)))
            self.rows, self.values = np.pad(self.rows, (0, more)), np.pad(self.values, (0, more))
            self.total, self.largest = np.pad(self.total, (0, more)), np.pad(self.largest, (0, more))

    def spread(self, *groups: int) -> Spread:
        """Return the spread of some groups together."""
        which = list(groups)
        values = int(self.values[which].sum())
        if not values:
            return Spread()
        sketch = self._sketch(which)
        median, p90, p95, p99, p999 = (_at(sketch, math.ceil(level * values) - 1) for level in LEVELS)
        mean, largest = float(self.total[which].sum()) / values, float(self.largest[which].max())
        return Spread(mean, median, p90, p99, p999, largest, p95)

    def quantile(self, group: int, level: float) -> float | None:
        """Return about what polars calls the higher quantile of a group, None where it has no values."""
        values = int(self.values[group])
        return _at(self._sketch([group]), math.ceil(level * (values - 1))) if values else None

    def means(self) -> pl.Series:
        """Return the mean of each group, null where it has no values."""
        return pl.Series(np.divide(self.total, self.values, out=np.full(self.total.size, np.nan),
                                   where=self.values > 0)).fill_nan(None)

    def _sketch(self, groups: list[int]) -> DDSketch:
        sketch, counts = DDSketch(ACCURACY), self.bins[groups].sum(axis=0)
        for place in np.flatnonzero(counts).tolist():
            sketch.add(0.0 if place == ZERO else MAPPING.value(BIN_FIRST + place - 1), int(counts[place]))
        return sketch


def bins_of(values: np.ndarray) -> np.ndarray:
    """Return int64[value]: the columns of their bins."""
    there = np.maximum(values, LEAST)
    place = np.ceil(np.log(np.minimum(there, MOST)) / math.log(MAPPING.gamma)).astype(np.int64)
    return np.where(values < LEAST, ZERO, np.clip(place - BIN_FIRST, 0, BIN_LAST - BIN_FIRST) + 1)


def _at(sketch: DDSketch, rank: int) -> float:
    """Return about the value that so many others do not exceed."""
    share = min((rank + 0.5) / (sketch.count - 1), 1.0) if sketch.count > 1 else 0.0  # the half outlives the rounding
    return float(sketch.get_quantile_value(share) or 0.0)
