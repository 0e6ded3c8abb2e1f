"""Johnson's order of jobs, as HMHS generalises it to jobs of many tasks (HMHS 3.1, equations 1 and 4).

A job's maps count as one operation and its reduces as another, each as long as all its tasks one after the other on a
machine of mean speed. With one task a stage and one machine for each, this is Johnson's rule, which is optimal there.
"""
import numpy as np

from subak.fleet.shapes import Shapes, holding_machines
from subak.fleet.speeds import stage_groups, stage_shuffle
from subak.fleet.table import Fleet
from subak.workload.maps_and_reduces import reduce_stages
from subak.workload.table import Workload


def priorities(map_seconds: np.ndarray, reduce_seconds: np.ndarray) -> np.ndarray:
    """Return float64[job], Pri of equation (4): the least goes first.

    A job without maps comes first (-inf), one with maps but without reduces last (inf).
    """
    with np.errstate(divide="ignore"):
        return np.where(map_seconds > reduce_seconds, 1.0, -1.0) / np.minimum(map_seconds, reduce_seconds)


def places(priority: np.ndarray, descending: bool = False) -> np.ndarray:
    """Return int64[job]: each job's place when jobs go by *priority* (float64[job]), ties by number."""
    order = np.argsort(-priority if descending else priority, kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return place


def job_priorities(workload: Workload, fleet: Fleet, shapes: Shapes, expected: np.ndarray) -> np.ndarray:
    """Return float64[job], Pri of each job from *expected* (float64[task], seconds).

    Stages behind the first ones of a job count as its reduces, so the order is defined for any workload.
    """
    job, is_reduce = workload.stages["job"].to_numpy(), reduce_stages(workload)
    seconds = stage_seconds(workload, fleet, shapes, expected)
    by_kind = [np.bincount(job[kind], weights=seconds[kind], minlength=len(workload.jobs))
               for kind in (~is_reduce, is_reduce)]
    return priorities(*by_kind)


def stage_seconds(workload: Workload, fleet: Fleet, shapes: Shapes, expected: np.ndarray) -> np.ndarray:
    """Return float64[stage]: equation (1), all its tasks one after the other on a machine of mean speed.

    The mean is over the machines that can hold its tasks; the copying of inputs, where there is any, is added.
    """
    stage, count = workload.tasks["stage"].to_numpy(), len(workload.stages)
    total = np.bincount(stage, weights=expected, minlength=count)
    tasks = np.bincount(stage, minlength=count)
    return total * _mean_factors(workload, fleet, shapes) + tasks * stage_shuffle(workload)


def _mean_factors(workload: Workload, fleet: Fleet, shapes: Shapes) -> np.ndarray:
    """Return float64[stage]: the mean speed factor over the machines that can hold the stage's tasks; 1 for none."""
    mean = np.ones(len(workload.stages))
    if not len(fleet.speeds):
        return mean
    group = stage_groups(workload, fleet)
    for shape, machines in enumerate(holding_machines(shapes, fleet)):
        if machines.any():
            of_shape = shapes.of_stage == shape
            mean[of_shape] = (fleet.speeds @ machines / machines.sum())[group[of_shape]]
    return mean


def johnson_ranks(workload: Workload, fleet: Fleet, shapes: Shapes, expected: np.ndarray,
                  descending: bool) -> np.ndarray:
    """Return float64[task]: the place of the task's job in Johnson's order, or in the order of *descending* Pri."""
    place = places(job_priorities(workload, fleet, shapes, expected), descending)
    job = workload.stages["job"].to_numpy()[workload.tasks["stage"].to_numpy()]
    return place[job].astype(np.float64)
