"""Records the timeline: amounts in use and waiting per interval, integrated exactly."""
import numpy as np

from subak.fleet.feasible import shape_fits
from subak.marks import inlined, noinline
from subak.simulator.engine.state import (
    FIRST_RESOURCE,
    LOOP_DONE,
    LOOP_TIMELINE_FULL,
    LOOP_UNREAD,
    PER_RESOURCE,
    TIMELINE_RUNNING_MEAN,
    TIMELINE_WAITING_MAX,
    TIMELINE_WAITING_MEAN,
    Simulation,
)

NO_SHAPE = -1


@inlined
def pass_time(sim: Simulation, time: float) -> bool:
    """Account for the time up to *time*, or as far as the timeline has room; return whether it was enough."""
    if time < sim.clock.boundary:
        integrate(sim, time)
        return True
    room = sim.record.rows.shape[0] - sim.counts.rows_closed - 1
    if (time - sim.clock.boundary) / sim.clock.interval < room:
        account(sim, time)
        return True
    if room > 0:
        account(sim, sim.clock.boundary + (room - 1) * sim.clock.interval)
    return False


@noinline
def account(sim: Simulation, time: float) -> None:
    """Integrate up to *time*, closing every interval that ends on the way."""
    close_until(sim, time)
    integrate(sim, time)


@noinline
def close_until(sim: Simulation, time: float) -> None:
    """Close every interval that ends up to *time*, as far as the timeline has room."""
    while sim.clock.boundary <= time and sim.counts.rows_closed < sim.record.rows.shape[0]:
        integrate(sim, sim.clock.boundary)
        close_interval(sim)


@inlined
def integrate(sim: Simulation, time: float) -> None:
    """Add what held since the last event."""
    span = time - sim.clock.accounted
    if span <= 0.0:
        return
    sim.clock.accounted = time
    current = sim.record.current
    current[TIMELINE_WAITING_MEAN] += span * sim.counts.waiting_now
    current[TIMELINE_WAITING_MAX] = max(current[TIMELINE_WAITING_MAX], sim.counts.waiting_now)
    current[TIMELINE_RUNNING_MEAN] += span * sim.counts.running_now
    for resource in range(sim.fleet.used.size):
        column = FIRST_RESOURCE + PER_RESOURCE * resource
        current[column] += span * sim.fleet.used[resource]
        current[column + 1] += span * sim.fleet.present[resource]


@noinline
def close_interval(sim: Simulation) -> None:
    """Write the open interval down as one row of sums, and open the next."""
    strand(sim)
    row = sim.counts.rows_closed
    for column in range(sim.record.current.size):
        sim.record.rows[row, column] = sim.record.current[column]
        sim.record.current[column] = 0.0
    sim.counts.rows_closed += 1
    sim.counts.intervals += 1
    sim.clock.boundary = (sim.counts.intervals + 1) * sim.clock.interval


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
    if sim.counts.waiting_now == 0:
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
    unread = sim.clock.unread_from
    if unread < np.inf and unread <= time and unread <= sim.clock.until:
        return LOOP_UNREAD
    goes_on = time < np.inf or unread < np.inf or sim.counts.running_now > 0 or sim.counts.waiting_now > 0
    end = sim.clock.until if goes_on and sim.clock.until < np.inf else sim.clock.now
    if not pass_time(sim, end):
        return LOOP_TIMELINE_FULL
    if end > sim.counts.intervals * sim.clock.interval or sim.counts.rows_closed == 0:
        close_interval(sim)
        return LOOP_DONE
    for column in range(sim.record.current.size):  # what happened at the very end belongs to the last interval
        sim.record.rows[sim.counts.rows_closed - 1, column] += sim.record.current[column]
    return LOOP_DONE
