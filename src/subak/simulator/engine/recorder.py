"""Records the timeline: amounts in use and waiting per interval, integrated exactly."""
import numpy as np

from subak.fleet.feasible import shape_fits
from subak.marks import inlined, noinline
from subak.simulator.engine.state import (
    ACCOUNTED,
    BOUNDARY,
    FIRST_RESOURCE,
    INTERVAL,
    INTERVALS,
    LOOP_DONE,
    LOOP_TIMELINE_FULL,
    LOOP_UNREAD,
    NOW,
    PER_RESOURCE,
    ROWS_CLOSED,
    RUNNING_NOW,
    TIMELINE_RUNNING_MEAN,
    TIMELINE_WAITING_MAX,
    TIMELINE_WAITING_MEAN,
    UNREAD_FROM,
    UNTIL,
    WAITING_NOW,
    Simulation,
)

NO_SHAPE = -1


@inlined
def pass_time(sim: Simulation, time: float) -> bool:
    """Account for the time up to *time*, or as far as the timeline has room; return whether it was enough."""
    if time < sim.clock[BOUNDARY]:
        integrate(sim, time)
        return True
    room = sim.record.rows.shape[0] - sim.counts[ROWS_CLOSED] - 1
    if (time - sim.clock[BOUNDARY]) / sim.clock[INTERVAL] < room:
        account(sim, time)
        return True
    if room > 0:
        account(sim, sim.clock[BOUNDARY] + (room - 1) * sim.clock[INTERVAL])
    return False


@noinline
def account(sim: Simulation, time: float) -> None:
    """Integrate up to *time*, closing every interval that ends on the way."""
    close_until(sim, time)
    integrate(sim, time)


@noinline
def close_until(sim: Simulation, time: float) -> None:
    """Close every interval that ends up to *time*, as far as the timeline has room."""
    while sim.clock[BOUNDARY] <= time and sim.counts[ROWS_CLOSED] < sim.record.rows.shape[0]:
        integrate(sim, sim.clock[BOUNDARY])
        close_interval(sim)


@inlined
def integrate(sim: Simulation, time: float) -> None:
    """Add what held since the last event."""
    span = time - sim.clock[ACCOUNTED]
    if span <= 0.0:
        return
    sim.clock[ACCOUNTED] = time
    current = sim.record.current
    current[TIMELINE_WAITING_MEAN] += span * sim.counts[WAITING_NOW]
    current[TIMELINE_WAITING_MAX] = max(current[TIMELINE_WAITING_MAX], sim.counts[WAITING_NOW])
    current[TIMELINE_RUNNING_MEAN] += span * sim.counts[RUNNING_NOW]
    for resource in range(sim.fleet.used.size):
        column = FIRST_RESOURCE + PER_RESOURCE * resource
        current[column] += span * sim.fleet.used[resource]
        current[column + 1] += span * sim.fleet.present[resource]


@noinline
def close_interval(sim: Simulation) -> None:
    """Write the open interval down as one row of sums, and open the next."""
    strand(sim)
    row = sim.counts[ROWS_CLOSED]
    for column in range(sim.record.current.size):
        sim.record.rows[row, column] = sim.record.current[column]
        sim.record.current[column] = 0.0
    sim.counts[ROWS_CLOSED] += 1
    sim.counts[INTERVALS] += 1
    sim.clock[BOUNDARY] = (sim.counts[INTERVALS] + 1) * sim.clock[INTERVAL]


@inlined
def smallest_waiting(sim: Simulation) -> int:
    """Return the smallest shape that some task waits with, or NO_SHAPE."""
    for shape in sim.record.shape_by_size:
        if sim.record.waiting_by_shape[shape] > 0:
            return int(shape)
    return NO_SHAPE


@inlined
def strand(sim: Simulation) -> None:
    """Note what is free on machines where even the smallest waiting task does not fit."""
    if sim.counts[WAITING_NOW] == 0:
        return
    shape = smallest_waiting(sim)
    for machine in range(sim.fleet.machines):
        if not shape_fits(sim.fleet, sim.tasks, shape, machine):
            for resource in range(sim.fleet.used.size):
                column = FIRST_RESOURCE + PER_RESOURCE * resource + 2
                sim.record.current[column] += max(sim.fleet.free[resource, machine], 0)


@noinline
def finish(sim: Simulation, time: float) -> int:
    """Close the last interval: where the run was told to stop if anything goes on until then, else at the last event.

    *time* is the next event's. Where tasks that arrive by then have no rows yet, nothing is closed.
    """
    unread = sim.clock[UNREAD_FROM]
    if unread < np.inf and unread <= time and unread <= sim.clock[UNTIL]:
        return LOOP_UNREAD
    goes_on = time < np.inf or unread < np.inf or sim.counts[RUNNING_NOW] > 0 or sim.counts[WAITING_NOW] > 0
    end = sim.clock[UNTIL] if goes_on and sim.clock[UNTIL] < np.inf else sim.clock[NOW]
    if not pass_time(sim, end):
        return LOOP_TIMELINE_FULL
    if end > sim.counts[INTERVALS] * sim.clock[INTERVAL] or sim.counts[ROWS_CLOSED] == 0:
        close_interval(sim)
        return LOOP_DONE
    for column in range(sim.record.current.size):  # what happened at the very end belongs to the last interval
        sim.record.rows[sim.counts[ROWS_CLOSED] - 1, column] += sim.record.current[column]
    return LOOP_DONE
