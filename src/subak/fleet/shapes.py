"""Numbers the shapes of tasks: distinct pairs of a request and a set of constraints."""
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl

from subak.fleet.table import Fleet
from subak.workload.constraints import satisfied
from subak.workload.predicates import Constraint
from subak.workload.table import Workload


@dataclass(frozen=True)
class Shapes:
    """The distinct (request, constraints) of a workload's stages."""

    of_stage: np.ndarray  # int32[stage]
    request: np.ndarray  # int32[resource, shape], units
    constraint_set: np.ndarray  # int32[shape]
    sets: list[tuple[Constraint, ...]]  # set 0 is the empty one
    speed_group: np.ndarray  # int32[shape], row of the fleet's speeds, 0 where that tells no shapes apart


def find_shapes(workload: Workload, by_speed: bool = False) -> Shapes:
    """Return the distinct (request, constraint set) pairs of the stages, in order of first appearance.

    *by_speed*: stages of different speed groups have different shapes.
    """
    groups = workload.stages.get_column("speed_group", default=None) if by_speed else None
    names = [resource.name for resource in workload.resources] + ["speed_group"] * (groups is not None)
    texts = workload.stages.select(
        *names, pl.col("constraints").list.eval(pl.element().struct.json_encode()).list.sort().list.join("\n")
        .fill_null("").alias("constraints")
    )
    distinct = texts.unique(maintain_order=True).with_row_index("shape")
    of_stage = texts.join(distinct, on=[*names, "constraints"], how="left", maintain_order="left")["shape"]
    set_texts = ["", *[text for text in distinct["constraints"].unique(maintain_order=True) if text]]
    set_of_text = {text: number for number, text in enumerate(set_texts)}
    told = np.zeros(len(distinct), np.int32) if groups is None else distinct["speed_group"].to_numpy().astype(np.int32)
    return Shapes(
        of_stage.to_numpy().astype(np.int32),
        np.ascontiguousarray(
            np.vstack([distinct[each.name].to_numpy() for each in workload.resources]).astype(np.int32)),
        np.array([set_of_text[text] for text in distinct["constraints"]], np.int32),
        [_constraints(text) for text in set_texts],
        told,
    )


def _constraints(text: str) -> tuple[Constraint, ...]:
    rows = (msgspec.json.decode(line) for line in text.split("\n") if line)
    return tuple(Constraint(row["attribute"], row["operator"], row["value"] or "") for row in rows)


def truth_of_sets(sets: list[tuple[Constraint, ...]], fleet: Fleet) -> np.ndarray:
    """Return bool[constraint_set, machine]: which machines meet every constraint of a set."""
    truth = np.ones((len(sets), len(fleet.machines)), bool)
    known: dict[Constraint, np.ndarray] = {}
    for row, constraints in enumerate(sets):
        for constraint in constraints:
            if constraint not in known:
                known[constraint] = satisfied(constraint, fleet.attribute(constraint.attribute))
            truth[row] &= known[constraint]
    return truth


def holding_machines(shapes: Shapes, fleet: Fleet) -> np.ndarray:
    """Return bool[shape, machine]: which machines meet a shape's constraints and, idle as of time 0, hold its request.

    A machine that joins later counts with the capacity it then has at first.
    """
    meets = truth_of_sets(shapes.sets, fleet)
    capacity = fleet.capacity
    return np.array([
        meets[shapes.constraint_set[shape]] & (capacity >= shapes.request[:, shape, None]).all(axis=0)
        for shape in range(shapes.request.shape[1])
    ])
