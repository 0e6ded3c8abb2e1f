"""Finds bins, sets of jobs that together fit a machine (LoTES section 4.2): all, or the most valuable.

A bin is how many jobs of each class it has; it is dominated if one job more of any class still fits. Requests are the
classes' means in fine units, as whole numbers, so that whether a bin fits is exact.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined

LISTING_BEGINS, LISTING_GOES_ON, ALL_LISTED = 0, 1, 2  # how far a listing is
VISITS_AT_ONCE = 1 << 19  # bins looked at in a call of the kernel, between which Ctrl-C is heard
FINE_UNITS = 1 << 20  # fine units in a unit
LEAF_VISITS = 100  # bins looked at for each that may be listed: most of those looked at are dominated


class Machine(NamedTuple):
    """One machine of a configuration and the classes it may serve, with room to search in."""

    request: np.ndarray  # int64[class, resource], fine units, the largest class first
    left: np.ndarray  # int64[class + 1, resource], fine units: row 0 is the capacity, row k what classes below k leave
    jobs: np.ndarray  # int64[class], of the bin looked at
    classes: np.ndarray  # int64[class], whom the rows stand for


def build_machine(capacity: np.ndarray, request: np.ndarray, classes: np.ndarray) -> Machine:
    """Return a machine of *capacity* (int64[resource], fine units) for *classes*; *request* is int64[resource, class].

    Largest first, as the paper advises, by the dominant resource. Every class has to fit and to ask for something.
    """
    share = (request[:, classes] / np.maximum(capacity, 1)[:, None]).max(axis=0)
    ordered = classes[np.argsort(-share, kind="stable")]
    left = np.zeros((ordered.size + 1, capacity.size), np.int64)
    left[0] = capacity
    return Machine(np.ascontiguousarray(request[:, ordered].T), left, np.zeros(ordered.size, np.int64), ordered)


def all_bins(machine: Machine, most: int) -> np.ndarray | None:
    """Return int32[bin, class] in the order of ``machine.classes``, or None if there are more than *most*."""
    bins, progress = np.zeros((VISITS_AT_ONCE >> 4, machine.jobs.size), np.int32), np.array([LISTING_BEGINS])
    listed, found = [bins[:0]], 0
    for _ in range(-(-LEAF_VISITS * most // VISITS_AT_ONCE)):
        count = list_bins(machine, bins, progress, VISITS_AT_ONCE)
        listed.append(bins[:count].copy())
        found += count
        if found > most:
            return None
        if progress[0] == ALL_LISTED:
            return np.concatenate(listed)
    return None


@inlined
def most_that_fit(machine: Machine, row: int) -> int:
    """Return how many jobs of the class in *row* fit what those before it leave."""
    most = -1
    for resource in range(machine.request.shape[1]):
        asked = machine.request[row, resource]
        if asked > 0 and (most < 0 or machine.left[row, resource] // asked < most):
            most = machine.left[row, resource] // asked
    return most


@inlined
def fill(machine: Machine, first: int) -> None:
    """Fill the bin greedily with the classes from row *first* on."""
    for row in range(first, machine.jobs.size):
        most = most_that_fit(machine, row)
        machine.jobs[row] = most
        for resource in range(machine.request.shape[1]):
            machine.left[row + 1, resource] = machine.left[row, resource] - most * machine.request[row, resource]


@inlined
def take_one_out(machine: Machine, row: int) -> None:
    """Take a job of the class in *row* out of the bin; the classes after it are not counted yet."""
    machine.jobs[row] -= 1
    for resource in range(machine.request.shape[1]):
        machine.left[row + 1, resource] += machine.request[row, resource]


@inlined
def is_dominated(machine: Machine) -> bool:
    """Whether a job more of any class fits."""
    last = machine.jobs.size
    for row in range(last):
        fits = True
        for resource in range(machine.request.shape[1]):
            fits = fits and machine.request[row, resource] <= machine.left[last, resource]
        if fits:
            return True
    return False


@kernel
def list_bins(machine: Machine, bins: np.ndarray, progress: np.ndarray, visits_max: int) -> int:
    """Go on listing non-dominated bins into *bins* (int32[bin, class]), until that is full or *visits_max* were seen.

    Returns how many there are in it; *progress* (int64[1]) says how far the listing is.

    Algorithm 1: fill greedily, take the last job out that has a class after it, fill again. As printed it also keeps
    bins that are dominated, such as one job of each class in Figure 5; here they are left out.
    """
    found = 0
    if progress[0] == LISTING_BEGINS:
        fill(machine, 0)
        progress[0] = LISTING_GOES_ON
    for _ in range(visits_max):
        if found == bins.shape[0]:
            return found
        if not is_dominated(machine):
            for each in range(machine.jobs.size):
                bins[found, each] = machine.jobs[each]
            found += 1
        row = machine.jobs.size - 2  # fewer of the last class would be dominated
        while row >= 0 and machine.jobs[row] == 0:
            row -= 1
        if row < 0:
            progress[0] = ALL_LISTED
            return found
        take_one_out(machine, row)
        fill(machine, row + 1)
    return found


# The most valuable bin: the pricing problem of column generation


class Pricing(NamedTuple):
    """A machine whose classes are in order of value for what they ask, and bounds on what the later ones can add."""

    machine: Machine
    value: np.ndarray  # float64[class], of a job
    density: np.ndarray  # float64[class + 1, resource], most value for a fine unit among the classes from a row on
    best: np.ndarray  # int64[class], the most valuable bin so far


def most_valuable_bin(capacity: np.ndarray, request: np.ndarray, classes: np.ndarray,
                      value: np.ndarray, nodes_max: int) -> tuple[np.ndarray, bool]:
    """Return int64[class] (over all classes) of the largest sum of *value* (float64[class]), and whether it surely is.

    It is not certain when the search was cut at *nodes_max* bins. *classes* are those that the machine may serve.
    """
    valuable = classes[value[classes] > 0]
    bin_ = np.zeros(value.size, np.int64)
    if not valuable.size:
        return bin_, True
    capacity, request = _with_mixtures(capacity, request[:, valuable])
    share = (request / np.maximum(capacity, 1)[:, None]).max(axis=0)
    order = np.argsort(-value[valuable] / share, kind="stable")
    pricing = _pricing(capacity, request[:, order], value[valuable][order], valuable[order])
    proved = search_most_valuable(pricing, nodes_max)
    bin_[pricing.machine.classes] = pricing.best
    return bin_, bool(proved)


def _with_mixtures(capacity: np.ndarray, request: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add mixtures of resources as resources: they exclude no bin that fits, and bound the others more tightly."""
    shares = np.diag(0.5 / np.maximum(capacity, 1)) + 0.5 / np.maximum(capacity, 1)[None, :] / capacity.size
    mixtures = np.vstack([shares, 1.0 / np.maximum(capacity, 1)])  # [mixture, resource]
    asked, held = mixtures @ request * 2.0**40, mixtures @ capacity * 2.0**40  # of about 2**40 for a whole machine
    return (np.append(capacity, np.ceil(held * (1 + 1e-12)).astype(np.int64)),
            np.vstack([request, np.floor(asked * (1 - 1e-12)).astype(np.int64)]))


def _pricing(capacity: np.ndarray, request: np.ndarray, value: np.ndarray, classes: np.ndarray) -> Pricing:
    left = np.zeros((classes.size + 1, capacity.size), np.int64)
    left[0] = capacity
    machine = Machine(np.ascontiguousarray(request.T), left, np.zeros(classes.size, np.int64), classes)
    by_unit = np.divide(value[:, None], machine.request, out=np.full(machine.request.shape, np.inf),
                        where=machine.request > 0)
    density = np.vstack([np.maximum.accumulate(by_unit[::-1])[::-1], np.zeros(capacity.size)])
    return Pricing(machine, value, density, np.zeros(classes.size, np.int64))


@inlined
def value_before(pricing: Pricing, row: int) -> float:
    """Return the value of the jobs of the classes before *row*."""
    total = 0.0
    for each in range(row):
        total += pricing.machine.jobs[each] * pricing.value[each]
    return total


@inlined
def can_add(pricing: Pricing, row: int) -> float:
    """Return a bound on the value that the classes from *row* on can add to what those before it leave."""
    least = np.inf
    for resource in range(pricing.density.shape[1]):
        density = pricing.density[row, resource]
        if density < np.inf and density * pricing.machine.left[row, resource] < least:
            least = density * pricing.machine.left[row, resource]
    return least


@kernel
def search_most_valuable(pricing: Pricing, nodes_max: int) -> bool:
    """Find the most valuable bin by branch and bound; return whether the search came to its end."""
    machine, highest = pricing.machine, -1.0
    last = machine.jobs.size
    fill(machine, 0)
    for _ in range(nodes_max):
        value = value_before(pricing, last)
        if value > highest:
            highest = value
            for each in range(last):
                pricing.best[each] = machine.jobs[each]
        row = last - 2
        while row >= 0:
            if machine.jobs[row] > 0:
                take_one_out(machine, row)
                if value_before(pricing, row + 1) + can_add(pricing, row + 1) > highest * (1 + 1e-12):
                    break
            else:
                row -= 1
        if row < 0:
            return True
        fill(machine, row + 1)
    return False
