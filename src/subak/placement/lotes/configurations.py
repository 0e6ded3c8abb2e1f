"""Groups machines into configurations: alike in capacity and in the constraints they meet.

In the paper a configuration is a capacity. With constraints, machines of one capacity may serve different tasks: so the
most frequent sets of constraints are told apart, and a configuration meets each of them everywhere or nowhere. The
other sets are one group, which a configuration is said to meet if any of its machines meets any of them.

Where plans count with speeds, as those of machines that are near a task's data or far from them, machines of one
configuration are as fast, and there is a group for each set of constraints and speed group.
"""
from typing import NamedTuple

import numpy as np

from subak.errors import InputError
from subak.fleet.shapes import Shapes, truth_of_sets
from subak.fleet.table import Fleet

NO_CONFIGURATION = -1  # of a machine that is not there when the plan is made, unlike all that are


class Configurations(NamedTuple):
    """Configurations, the one with the most machines first, and groups of sets of constraints."""

    capacity: np.ndarray  # int64[resource, configuration], units of one machine
    machines: np.ndarray  # int64[configuration], that are there at time 0
    of_machine: np.ndarray  # int32[machine], NO_CONFIGURATION for some
    group_of_set: np.ndarray  # int32[constraint_set]
    meets: np.ndarray  # bool[configuration, group]
    names: tuple[str, ...]  # of each group, its constraints in words
    factor: np.ndarray  # float64[configuration, group], of run times: V_ij of hmhs 2.1
    speeds: int  # speed groups: a set's groups follow each other

    def groups(self, shapes: Shapes) -> np.ndarray:
        """Return int32[shape], the group of each."""
        group: np.ndarray = self.group_of_set[shapes.constraint_set] * self.speeds + shapes.speed_group
        return group.astype(np.int32)


def find_configurations(fleet: Fleet, shapes: Shapes, tasks: np.ndarray, sets_max: int,
                        local: bool = False) -> Configurations:
    """Return the configurations for *shapes* of which int64[shape] *tasks* are known; *local*: speeds count.

    Raises InputError when no machine is there at time 0.
    """
    present = fleet.machines["present"].to_numpy()
    if not present.any():
        raise InputError("fleet: no machine is there at time 0, so that there is nothing to plan with")
    truth = truth_of_sets(shapes.sets, fleet)
    weight = np.bincount(shapes.constraint_set, weights=tasks, minlength=len(shapes.sets))
    group_of_set, names, pooled = _groups(truth, weight, shapes, sets_max)
    meets = np.array([truth[group_of_set == group].any(axis=0) for group in range(len(names))])  # [group, machine]
    told_apart = meets[:-1] if pooled else meets
    speeds = fleet.speeds if local and len(fleet.speeds) else np.ones((1, len(present)))
    _, which = np.unique(np.vstack([fleet.capacity, told_apart, speeds]), axis=1, return_inverse=True)
    which = which.reshape(-1)
    count = np.bincount(which[present], minlength=which.max() + 1)
    order = np.argsort(-count, kind="stable")
    order = order[count[order] > 0]
    place = np.full(count.size, NO_CONFIGURATION, np.int32)
    place[order] = np.arange(order.size)
    of_machine = place[which]
    first = np.array([np.flatnonzero(of_machine == each)[0] for each in range(order.size)])
    met = np.array([meets[:, (of_machine == each) & present].any(axis=1) for each in range(order.size)])
    count_of_speeds = len(speeds)
    return Configurations(
        fleet.capacity[:, first].astype(np.int64), count[order], of_machine, group_of_set,
        np.repeat(met, count_of_speeds, axis=1), _with_speeds(names, count_of_speeds),
        np.tile(speeds[:, first].T, len(names)), count_of_speeds)


def _with_speeds(names: tuple[str, ...], speeds: int) -> tuple[str, ...]:
    if speeds == 1:
        return names
    return tuple(f"{name}, speed group {number}" for name in names for number in range(speeds))


def with_machines(known: Configurations, present: np.ndarray) -> Configurations:
    """Return the same configurations with the machines that are *present* (bool[machine]); some may have none."""
    of_present = known.of_machine[present & (known.of_machine != NO_CONFIGURATION)]
    return known._replace(machines=np.bincount(of_present, minlength=known.machines.size))


def _groups(truth: np.ndarray, weight: np.ndarray, shapes: Shapes,
            sets_max: int) -> tuple[np.ndarray, tuple[str, ...], bool]:
    """Return int32[constraint_set], the group of each, what the groups are called, and whether the last is a pool.

    Sets that the same machines meet are one group; group 0 is that of the empty set.
    """
    _, same = np.unique(truth, axis=0, return_inverse=True)
    same = same.reshape(-1)
    total = np.bincount(same, weights=weight)
    others = [each for each in np.argsort(-total, kind="stable") if each != same[0]]
    told_apart = [same[0], *others[:sets_max]]
    pooled = len(others) > sets_max
    group = np.full(total.size, len(told_apart), np.int32)
    group[told_apart] = np.arange(len(told_apart))
    names = ["no constraint that matters"]
    for each in told_apart[1:]:
        chosen = max(np.flatnonzero(same == each), key=lambda row: weight[row])
        names.append(" and ".join(map(str, shapes.sets[chosen])))
    return group[same], (*names, *["other constraints"] * pooled), pooled
