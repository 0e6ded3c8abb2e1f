"""The plain twin of measures/energy/sweep.py: every machine looked at in every span between two events."""
import math
from itertools import pairwise


def plain_watts(share, points, empty, running):
    """The power of a machine that is there; *points* are (share, watts)."""
    if not running:
        return empty
    for (one, low), (other, high) in pairwise(points):
        if share <= other:
            return low + (high - low) * (share - one) / (other - one)
    return points[-1][1]


def plain_energy(attempts, states, models, price, carbon, begin, end):
    """Return [machine]: joules, their cost and carbon (a joule being a kWh), and seconds that it was there.

    *attempts* are (machine, amount, start, end); *states* [machine] of (time, capacity, present), in order of time;
    *models* [machine] of (points, watts while empty); *price* and *carbon* of (time, value from then on).
    """
    found = []
    for machine, (points, empty) in enumerate(models):
        own = [each for each in attempts if each[0] == machine]
        times = {begin, end, *(time for each in own for time in each[2:]), *(time for time, _, _ in states[machine])}
        times |= {time for time, _ in [*price, *carbon]}
        joules = cost = mass = there = 0.0
        for since, until in pairwise(sorted(time for time in times if begin <= time <= end)):
            running = [each for each in own if each[2] <= since and each[3] >= until]
            capacity, present = next(state[1:] for state in reversed(states[machine]) if state[0] <= since)
            if not present:
                continue
            used = sum(each[1] for each in running)
            share = min(used / capacity, 1.0) if capacity else float(used > 0)
            drawn = plain_watts(share, points, empty, running) * (until - since)
            joules, there = joules + drawn, there + until - since
            cost += drawn * _at(price, since)
            mass += drawn * _at(carbon, since)
        found.append((joules, cost, mass, there))
    assert all(math.isfinite(value) for each in found for value in each)
    return found


def plain_series(points, every, end):
    """A table that begins again after every so many seconds, lap by lap; as it is where it does not."""
    if every is None:
        return points
    return [(lap * every + time, value) for lap in range(-1, math.ceil(end / every) + 1) for time, value in points]


def _at(points, time):
    return next((value for since, value in reversed(points) if since <= time), points[0][1])
