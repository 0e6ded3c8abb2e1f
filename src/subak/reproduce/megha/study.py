"""The size, inputs and measures of the Megha experiments."""
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.queues.tree import TreeFile
from subak.reproduce import workloads as made
from subak.reproduce.claims import Notify
from subak.reproduce.federated_runs import Run, federated_run
from subak.workload.table import Workload

Made = TypeVar("Made")


class Scale(NamedTuple):
    """How large the experiments are."""

    workers: int = 10_000
    central_workers: tuple[int, ...] = (10_000, 20_000)
    sizes: tuple[int, ...] = (1_000, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000)
    masters_workers: int = 30_000
    masters: tuple[tuple[int, int], ...] = ((5, 5), (5, 10), (5, 20), (10, 5), (10, 10), (10, 20), (20, 5), (20, 10),
                                            (20, 20), (40, 10))  # global, local
    fair_workers: tuple[int, ...] = (200, 500, 1_500)
    fair_peaks: tuple[float, float] = (300.0, 1_000.0)  # machines that google_19-like tasks want at the worst instant
    google: int = made.GOOGLE_COUNT
    alibaba: int = made.ALIBABA_COUNT
    cloudera: int = made.CLOUDERA_COUNT
    steady_workers: int = 2_000
    steady: int = 200_000
    large_workers: int = 50_000
    large: int = 1_000_000
    prototype_seconds: float = 120.0  # over which tasks are submitted to the live federation
    seeds: int = 10  # that each figure of the paper is measured with


QUICK = Scale(1_000, (1_000, 2_000), (200, 1_000, 5_000), 3_000,
              ((5, 5), (5, 10), (10, 5), (10, 10), (20, 10)), (40, 100, 300), (60.0, 200.0), 910, 1_600, 1_018,
              200, 8_000, 1_000, 10_000, 20.0, 3)


class Study:
    """The inputs of all experiments, and the runs that several figures share."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, google: Workload | None = None,
                 google_fleet: Fleet | None = None, alibaba: Path | None = None) -> None:
        self.scale, self.seed, self.notify = scale, seed, notify
        self.google = made.shipped_google() if google is None else google
        self.google_fleet, self.alibaba = google_fleet, alibaba
        self.kept: dict[str, Any] = {}

    def again(self, seed: int) -> "Study":
        """Return the same study with another seed."""
        def notify(label: str, part: float) -> None:
            self.notify(f"{label}, seed {seed}", part)
        return Study(self.scale, seed, notify, self.google, self.google_fleet, self.alibaba)

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what *make* makes, made once."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def run(self, label: str, workload: Workload, fleet: Fleet, scheduler: str, settings: Federation,
            queues: TreeFile | None = None) -> Run:
        """Simulate, and measure; *queues* has the weights of fair turns."""
        return federated_run(label, workload, fleet, scheduler, settings, self.seed, self.notify, queues)
