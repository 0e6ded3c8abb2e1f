"""The machines to choose from: one kind, a mix from a file, or the fleet's own; each may have a price."""
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from subak.errors import InputError
from subak.experiment.inputs import load_checked, load_inputs
from subak.experiment.scenario import Scenario
from subak.fleet.edits import mixed, resized, rows_in_mix
from subak.fleet.table import Fleet
from subak.quantities import Amount, amount_text
from subak.simulator.engine.setup import Terms, machine_order, prepare
from subak.toml_files import read_toml
from subak.workload.table import Workload

PART_COUNT_MAX = 100_000  # machines of a part of a mix
SEVERAL = 2
QUEUES_SAID_MAX = 3  # of tasks that can never run


class Part(msgspec.Struct, forbid_unknown_fields=True):
    """Machines of a mix that are alike."""

    count: int
    capacity: dict[str, Amount]
    price: float | None = None  # of one of them


class Mix(msgspec.Struct, forbid_unknown_fields=True):
    """A file for --mix: `[[machines]]` with count, capacity and price, whose proportions are kept."""

    machines: list[Part]

    def __post_init__(self) -> None:
        """Refuse what is no mix."""
        if not self.machines:
            raise InputError("mix: needs at least one [[machines]] with count and capacity")
        for part in self.machines:
            if not 1 <= part.count <= PART_COUNT_MAX:
                raise InputError(f"mix: count must be from 1 to {PART_COUNT_MAX:,}, not {part.count:,}")
            if part.price is not None:
                refuse_price(part.price)
        if len({part.price is None for part in self.machines}) > 1:
            raise InputError("mix: either all machines have a price, or none")


class Kind(msgspec.Struct):
    """Alike machines."""

    capacity: dict[str, Amount]
    price: float | None = None  # of one of them


class Question(msgspec.Struct):
    """What is to be sized: a scenario, and the machines that may serve it; where none are named, its fleet's mix."""

    scenario: Scenario
    kinds: list[Kind] = []
    mixes: list[str] = []  # files
    usual_seeds: bool = False  # nobody asked for any


@dataclass(frozen=True)
class Candidate:
    """Machines of one mix, of which there may be any number."""

    name: str
    fleet: Fleet  # the mix
    prices: np.ndarray | None  # float64[machine], of those of the mix
    of_fleet: bool = False  # nobody named these machines
    kinds: tuple[str, ...] = ()  # of each machine of the mix, where it was named

    def machines(self, count: int) -> Fleet:
        """Return so many of them."""
        return resized(self.fleet, count)

    def parts(self, count: int) -> tuple[tuple[str, int], ...]:
        """Return how many there are of each kind among so many of them; nothing where all are of one kind."""
        if self.of_fleet or len(set(self.kinds)) < SEVERAL:
            return ()
        kinds, counts = np.unique(np.array(self.kinds)[rows_in_mix(self.fleet, count)], return_counts=True)
        return tuple((str(kind), int(many)) for kind, many in zip(kinds, counts, strict=True))

    def price(self, count: int) -> float | None:
        """Return what so many of them cost."""
        return None if self.prices is None else float(self.prices[rows_in_mix(self.fleet, count)].sum())


def refuse_price(price: float) -> None:
    """Raise InputError for what is no price."""
    if not 0 <= price < float("inf"):
        raise InputError(f"price: must be a number, 0 or more, not {price:g}")


def load_question(question: Question) -> tuple[Workload, list[Candidate]]:
    """Read what a question names, and note the digests in its scenario.

    Raises InputError for files that break a rule, and for prices of some machines only.
    """
    read = [(Path(name), read_toml(Path(name), Mix)) for name in question.mixes]
    scenario = question.scenario
    if not question.kinds and not read:
        workload, fleet = load_inputs(scenario)
        return workload, [Candidate(f"the mix of {fleet.provenance.name}", fleet, None, of_fleet=True)]
    workload = load_checked(scenario)
    candidates = [*(_candidate(None, [Part(1, kind.capacity, kind.price)], workload) for kind in question.kinds),
                  *(_candidate(path, mix.machines, workload) for path, mix in read)]
    if len({candidate.prices is None for candidate in candidates}) > 1:
        raise InputError("price: either all machines have one, or none")
    return workload, candidates


def _candidate(path: Path | None, parts: list[Part], workload: Workload) -> Candidate:
    """Return the candidate of a kind, or of a file with a mix."""
    by = "--kind" if path is None else str(path)
    try:
        fleet = mixed([(part.count, part.capacity) for part in parts], workload.resources, workload.asked,
                      by if path is None else f"{by}: capacity")
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(by) else f"{by}: {error}") from None
    counts = [part.count for part in parts]
    known = [part.price for part in parts if part.price is not None]
    prices = np.repeat(known, counts) if known else None
    names = [",".join(f"{resource}={amount_text(amount)}" for resource, amount in part.capacity.items())
             for part in parts]
    kinds = tuple(name for name, count in zip(names, counts, strict=True) for _ in range(count))
    return Candidate(names[0] if path is None else f"the mix {path.stem}", fleet, prices, kinds=kinds)


def hopeless(workload: Workload, candidate: Candidate) -> str:
    """Return why tasks can never run on any number of a candidate's machines, and how many; empty if all can."""
    prepared = prepare(workload, candidate.fleet, machine_order(candidate.fleet, "given"),
                       Terms(interval=1.0))
    reasons = prepared.reason_of_shape
    tasks = np.bincount(prepared.simulation.tasks.shape, minlength=len(reasons))
    found = [shape for shape, reason in enumerate(reasons) if reason]
    if not found:
        return ""
    most = max(found, key=lambda shape: tasks[shape])
    stages = workload.stages["job"].to_numpy()[np.isin(prepared.shapes.of_stage, found)]
    first = workload.jobs["queue"].str.split("/").list.first()
    theirs = first.gather(np.unique(stages)).unique().sort()
    others = first.filter(~first.is_in(theirs.implode())).mode().sort()
    apart = "" if len(theirs) > QUEUES_SAID_MAX or others.is_empty() else (
        f" (all in {' and '.join(theirs)}: --only-queue {others[0]} leaves them out, and they are sized apart)")
    return f"{sum(tasks[shape] for shape in found):,} tasks can never run: one {reasons[most]}{apart}"
