"""Lays out LoTES's bins for the machines of a run."""
import numpy as np

from subak.federation.megha.global_master.placement import Bins
from subak.fleet.shapes import Shapes, find_shapes
from subak.fleet.state import BLOCK
from subak.fleet.table import Fleet
from subak.placement.lotes.plan import NO_BIN, Plan, make_plan
from subak.simulator.engine.setup import NO_ROW
from subak.workload.table import Workload


def target_bins(plan: Plan, order: np.ndarray) -> np.ndarray:
    """Return int32[class, place], what the bins of the machines in *order* hold; the last class has none.

    *order* is int32[place], rows of the fleet or NO_ROW, which has no bin.
    """
    target = np.zeros((plan.routes.shape[1] + 1, order.size), np.int32)
    bin_ = np.where(order == NO_ROW, NO_BIN, plan.bin_of_machine[order])
    target[:-1, bin_ != NO_BIN] = plan.assignment.bins[bin_[bin_ != NO_BIN]].T
    return target


def classes_with_homes(plan: Plan, shapes: Shapes) -> np.ndarray:
    """Return int32[shape], the class of each; one that no machine devoted to its class could hold is of the last."""
    of_shape = plan.class_of(shapes)
    devoted = plan.routes.T[of_shape] > 0  # [shape, configuration]
    group = plan.configurations.groups(shapes)
    holds = (shapes.request.T[:, None, :] <= plan.configurations.capacity.T[None]).all(axis=2)
    has_home = (devoted & holds & plan.configurations.meets.T[group]).any(axis=1)
    return np.where(has_home, of_shape, plan.routes.shape[1]).astype(np.int32)


def planned_bins(workload: Workload, fleet: Fleet, order: np.ndarray) -> Bins:
    """Return the bins of a federation's machines in *order*, whole blocks; nothing runs."""
    plan = make_plan(workload, fleet)
    target = target_bins(plan, order).astype(np.int16)
    assert target.shape[1] % BLOCK == 0
    return Bins(target, classes_with_homes(plan, find_shapes(workload)), np.zeros_like(target))
