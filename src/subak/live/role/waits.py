"""Durations counted by ranges, as histograms of Prometheus want them."""
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

TASK_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
COMMIT_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Waits:
    """Durations, each counted in the first range whose end it does not exceed."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """*bounds*: the ends of all ranges but the last, in seconds."""
        self.bounds, self.sum = bounds, 0.0
        self.counts = [0] * (len(bounds) + 1)

    def note(self, seconds: float) -> None:
        """Count a duration; none counts as negative, whatever clocks say."""
        seconds = max(seconds, 0.0)
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many were not longer than each bound, and how many there were."""
        ends = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(ends, map(float, accumulate(self.counts)), strict=True))
