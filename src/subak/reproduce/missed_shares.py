"""Measures how far a run was from its shares, and the cost of preemption."""
import numpy as np

from subak.placement.claims import TASK_FINISHED
from subak.simulator.outcome import Outcome
from subak.workload.table import Workload

SAMPLES = 2_000  # instants at which shares are looked at, over the span of the arrivals
SLACK = 1e-6  # of a share


def wasted_share(finished: np.ndarray, lost: np.ndarray) -> float:
    """Return the run time that was lost (seconds[lost attempt]) over all spent (with seconds[finished task])."""
    spent = float(finished[np.isfinite(finished)].sum() + lost.sum())
    return float(lost.sum()) / spent if spent else 0.0


def fairness_error(outcome: Outcome, workload: Workload, shares: dict[str, float]) -> float:
    """Return half the sum over queues of |share used - share entitled|, averaged over the time of contention.

    Shares are dominant ones. Entitled is weighted max-min of what the queues want, given all that is used together; a
    time is of contention when some queue wants more than it uses. 0 without contention.
    """
    names = list(shares)
    used, wanted = _shares_over_time(outcome, workload, names)
    contended = (wanted > used + SLACK).any(axis=1)
    if not contended.any():
        return 0.0
    used, wanted = used[contended], wanted[contended]
    weight = np.array([shares[name] for name in names])
    entitled = np.array([water_fill(one, weight, total) for one, total in zip(wanted, used.sum(axis=1), strict=True)])
    return float(np.abs(used - entitled).sum(axis=1).mean() / 2)


def water_fill(wanted: np.ndarray, weight: np.ndarray, total: float) -> np.ndarray:
    """Return weighted max-min: *total* divided by *weight* (float64[queue]), nobody getting more than is wanted."""
    given = np.zeros(len(wanted))
    open_ = wanted > 0
    left = min(total, float(wanted.sum()))
    while left > 0 and open_.any():
        offer = left * weight * open_ / max(float((weight * open_).sum()), 1e-300)
        full = open_ & (offer >= wanted - given)
        if not full.any():
            return given + offer
        left -= float((wanted - given)[full].sum())
        given[full] = wanted[full]
        open_ &= ~full
    return given


def _shares_over_time(outcome: Outcome, workload: Workload, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[instant, queue]: dominant shares used, and wanted by what has arrived and not finished."""
    sim = outcome.simulation
    stage = workload.tasks["stage"].to_numpy()
    queue_of_stage = workload.jobs["queue"].gather(workload.stages["job"]).cast(str)
    queue = np.array([names.index(name) for name in queue_of_stage])[stage]
    share = (sim.tasks.request[:, sim.tasks.shape] / np.maximum(_capacity(outcome), 1)[:, None]).astype(np.float64)
    start, ready = sim.progress.start, sim.tasks.arrival
    finish = np.where(sim.claims.status == TASK_FINISHED, start + sim.tasks.run_time, np.inf)
    task, _, lost_start, lost_end = np.hstack(outcome.loop_result.losses)
    lost = task.astype(np.int64)
    ran = np.concatenate([np.flatnonzero(~np.isnan(start)), lost])
    began = np.concatenate([start[~np.isnan(start)], lost_start])
    ended = np.concatenate([finish[~np.isnan(start)], lost_end])
    placeable = np.flatnonzero(np.isfinite(finish))
    times = np.linspace(float(ready[0]), float(ready[-1]), SAMPLES)
    used = _sums(times, began, ended, share[:, ran], queue[ran], len(names))
    wanted = _sums(times, ready[placeable], finish[placeable], share[:, placeable], queue[placeable], len(names))
    return used.max(axis=0), wanted.max(axis=0)


def _capacity(outcome: Outcome) -> np.ndarray:
    """Return float64[resource]: all machines' capacity, units."""
    capacity = outcome.simulation.fleet.capacity
    return np.maximum(capacity, 0).astype(np.float64).sum(axis=1)


def _sums(times: np.ndarray, start: np.ndarray, end: np.ndarray, amount: np.ndarray, queue: np.ndarray,
          queues: int) -> np.ndarray:
    """Return float64[resource, instant, queue]: the amounts held at each time."""
    held = np.zeros((amount.shape[0], len(times), queues))
    for number in range(queues):
        mine = queue == number
        for moments, sign in ((start[mine], 1.0), (end[mine], -1.0)):
            order = np.argsort(moments, kind="stable")
            places = np.searchsorted(moments[order], times, side="right")
            for resource in range(amount.shape[0]):
                sums = np.append(0.0, np.cumsum(amount[resource, mine][order]))
                held[resource, :, number] += sign * sums[places]
    return held
