"""Loads the workloads and fleets of a study once per process."""
from collections.abc import Callable
from typing import Any

import msgspec

from subak.experiment.inputs import load_fleet, load_workload, of_seed
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures.window import Window
from subak.simulator.settings import RunSettings
from subak.workload.redraws import NONE
from subak.workload.table import Workload

# What neither is read by nor drawn by. A field that is missing in one of these only makes for reading too often.
LATER = {"schedulers", "seeds", "federation", "lotes", "objectives", "faults", "failures", "energy", "check_policy",
         "answer_timeout", "parameters", "queues", *RunSettings.__struct_fields__}
OF_FLEETS = {"fleet", "fleet_digest", "machines", "capacity", "scale", "remove", "add_machines"}
OF_DRAWS = {"resample", "load", "measure_from", "measure_until"}
FLEETS_KEPT = 16  # they are small beside workloads


class Kept:
    """The workload of the last runs, as it is and as it was drawn, and fleets: more than one would find no room."""

    def __init__(self) -> None:
        self.workloads: dict[bytes, Workload] = {}
        self.drawn: dict[bytes, tuple[Workload, Window]] = {}
        self.fleets: dict[bytes, Fleet] = {}

    def inputs(self, scenario: Scenario) -> tuple[Workload, Fleet]:
        """Return workload and fleet of a scenario. Raises InputError as `load_inputs` does."""
        workload = _kept(self.workloads, _key(scenario, LATER | OF_FLEETS | OF_DRAWS), lambda: load_workload(scenario))
        fleet = _kept(self.fleets, _key(scenario, LATER | OF_DRAWS), lambda: load_fleet(scenario, workload),
                      FLEETS_KEPT)
        return workload, fleet

    def of_run(self, scenario: Scenario) -> tuple[tuple[Workload, Fleet], Window]:
        """Return what the one run of a scenario is simulated on, and its window."""
        inputs = self.inputs(scenario)

        def draw() -> tuple[Workload, Window]:
            _, (drawn, _), window = of_seed(scenario, scenario.seeds[0], inputs)
            return drawn, window

        workload, window = _kept(self.drawn, drawn_key(scenario), draw)
        return (workload, inputs[1]), window


def drawn_key(scenario: Scenario) -> bytes:
    """Return what scenarios of one run have in common whose workloads are drawn alike."""
    seed = [] if scenario.resample == NONE else scenario.seeds
    return _key(scenario, LATER | OF_FLEETS) + msgspec.msgpack.encode(seed)


def _key(scenario: Scenario, without: set[str]) -> bytes:
    values = {name: value for name, value in msgspec.structs.asdict(scenario).items() if name not in without}
    return msgspec.msgpack.encode(values, order="deterministic")


def _kept(known: dict[bytes, Any], key: bytes, make: Callable[[], Any], most: int = 1) -> Any:
    if key not in known:
        while len(known) >= most:
            del known[next(iter(known))]  # before: there may be no room for both
        known[key] = make()
    return known[key]
