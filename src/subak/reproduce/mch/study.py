"""The size and common parts of the MCH experiments."""
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from subak.reproduce import workloads as made
from subak.reproduce.claims import Notify
from subak.workload.table import Workload

Made = TypeVar("Made")


class Scale(NamedTuple):
    """How large the experiments are."""

    capacity: int = 200  # Fig. 4
    tasks: int = 2_000
    levels: tuple[int, ...] = (2, 3, 4, 5)  # Fig. 5
    jobs: tuple[int, ...] = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
    seconds_max: float = 3.0  # an order that took longer for a point gets no larger one
    tree_levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9, 10)  # past the paper
    tree_decisions: int = 100_000
    large_queues: int = 1_000
    large_jobs: int = 100_000
    workers: int = 2_000  # of the federation
    steady: int = 200_000
    heartbeats: tuple[float, ...] = (1.0, 10.0, 60.0)
    masters: tuple[int, ...] = (1, 3, 10)
    loads: tuple[float, ...] = (0.8, 0.95, 0.99)


QUICK = Scale(jobs=(100, 200, 500, 1_000, 2_000, 5_000), seconds_max=0.3, tree_levels=(2, 3, 4, 5), large_jobs=10_000,
              tree_decisions=10_000, workers=200, steady=8_000)


class Bench:
    """The inputs of all experiments, and what several figures share."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, google: Workload | None = None) -> None:
        self.scale, self.seed, self.notify = scale, seed, notify
        self.google = made.shipped_google() if google is None else google
        self.kept: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what *make* makes, made once."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]
