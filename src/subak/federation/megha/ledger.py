"""A local master's ledger: the ordered changes of its cluster, from which views are built.

The version of a cluster is the number of entries ever written. An update is a range of entries; who has seen version v
applies what follows it, so doubled, late and reordered updates do no harm. The ledger is a ring: for one who has seen
less than it still holds, the local master writes the whole state down again, behind the entry WHOLE. The ring goes over
few places at first, which stay in a cache, and over twice as many when what it would write over may yet be asked for.

  WHOLE          forget what you believed of this cluster; what follows, up to one SIZED for each machine, is all of it
  TOOK           the attempt holds its amounts on the machine (held: it waits for its gang)
  GAVE           the attempt is over, for a reason, and its amounts are free
  GONE           the attempt is over, for a reason, and holds nothing (in a whole state)
  SIZED          the machine has the capacity of a configuration, or is absent, and is held back for a global master,
                 or for nobody; all its attempts have been entered
"""
from typing import NamedTuple, TypeVar

import numpy as np

from subak.federation.counts import TOLD
from subak.federation.messages import NO_REASON, NOBODY
from subak.marks import inlined, noinline
from subak.records import Numbers

ENTRY_WHOLE, ENTRY_TOOK, ENTRY_GAVE, ENTRY_GONE, ENTRY_SIZED = range(5)
ENTRY = np.dtype([
    ("kind", np.int8),
    ("reason", np.int8),
    ("held", np.int8),  # whether the attempt waits for its gang; of ENTRY_GAVE, whether it did when it was over
    ("in_gang", np.int8),  # whether the task starts together with others
    ("preempted", TOLD),  # how often the task had been preempted
    ("round", np.int16),  # how often the task had been submitted anew after an attempt that failed
    ("code", np.int16),  # exit code
    ("machine", np.int32),
    ("task", np.int64),  # of ENTRY_SIZED: the configuration, NOBODY when the machine is absent
    ("attempt", np.int64),  # of ENTRY_SIZED: the task that the machine is held back for
    ("owner", np.int32),  # of the task: its global master; of ENTRY_SIZED: for which the machine is held back
    ("row", np.int32),  # of the task, among the open tasks of its owner
    ("shape", np.int32),
    ("queue", np.int32),
    ("heir", np.int32),  # of ENTRY_GAVE: the queue for which the attempt was preempted; NOBODY where it was not; of
    # ENTRY_SIZED: for how many whole seconds the task has been passed over that the machine is held back for
])
Number = TypeVar("Number", int, np.ndarray)  # one, or an array of many


class LedgerCounts(Numbers):
    """How far a ledger goes."""

    version: int
    whole_at: int  # the version at which the whole state was last written, or -1
    epoch: int  # of the local master that began it
    ring: int  # how many places are in use
    needed_from: int  # from which version on no entry is written over while there are other places


class Ledger(NamedTuple):
    """The last entries, in a ring."""

    entry: np.ndarray  # ENTRY[place], entry v is at place v modulo counts.ring
    counts: LedgerCounts


def build_ledger(places: int, ring: int) -> Ledger:
    """Return an empty ledger of so many places, *ring* of them in use at first: *places*, or half, or a quarter ..."""
    return Ledger(np.zeros(places, ENTRY), LedgerCounts(whole_at=-1, ring=ring))


@inlined
def ring_place(ledger: Ledger, version: Number) -> Number:
    """Return at which place the entry of a version is, or those of int64[version] are."""
    return version % ledger.counts.ring


@inlined
def enter(ledger: Ledger, kind: int, machine: int, task: int, attempt: int) -> np.void:
    """Write an entry, and return it for the fields beyond these."""
    if ledger.counts.version - ledger.counts.needed_from == ledger.counts.ring:
        widen(ledger)
    entry = ledger.entry[ring_place(ledger, ledger.counts.version)]
    ledger.counts.version += 1
    entry["kind"], entry["reason"], entry["held"], entry["in_gang"], entry["preempted"] = kind, NO_REASON, 0, 0, 0
    entry["machine"], entry["task"], entry["attempt"] = machine, task, attempt
    entry["owner"], entry["row"], entry["shape"], entry["queue"] = NOBODY, NOBODY, NOBODY, NOBODY
    entry["round"], entry["code"], entry["heir"] = 0, 0, NOBODY
    return entry


@noinline
def widen(ledger: Ledger) -> None:
    """Use twice the places, where there are so many: an entry stays where it is, or goes by as many as there were."""
    ring, version = ledger.counts.ring, ledger.counts.version
    if ring < ledger.entry.size:
        for each in range(version - ring, version):
            ledger.entry[each % (2 * ring)] = ledger.entry[each % ring]
        ledger.counts.ring = 2 * ring


@inlined
def may_write_over_more(ledger: Ledger) -> bool:
    """Whether it is worth finding out what nobody will ask for any more."""
    counts = ledger.counts
    return bool(counts.ring < ledger.entry.size and 2 * (counts.version - counts.needed_from) > counts.ring)


@inlined
def reaches_back_to(ledger: Ledger, version: int) -> bool:
    """Whether everything since *version* is still there, with half of all places to spare for what is on its way."""
    return bool(version >= 0 and ledger.counts.version - version <= min(ledger.entry.size // 2, ledger.counts.ring))


@inlined
def still_holds(ledger: Ledger, epoch: int, version: int) -> bool:
    """Whether it is the ledger of an epoch, and the entry that follows *version* has not been overwritten."""
    return bool(
        ledger.counts.epoch == epoch and version >= 0 and ledger.counts.version - version <= ledger.counts.ring)


@inlined
def behind(ledger: Ledger, place: int) -> int:
    """Return the place behind one: a step instead of a division."""
    return place + 1 if place + 1 < ledger.counts.ring else 0


def names_shape(ledger: Ledger, shape: int) -> bool:
    """Whether what views are built from names a shape: entries from the last whole state on, or all there are."""
    last = ledger.counts.version
    first = max(ledger.counts.whole_at, last - ledger.counts.ring, 0)
    return bool((ledger.entry["shape"][ring_place(ledger, np.arange(first, last))] == shape).any())


# -- a copy at a receiver: what messages brought of a sender's ledger --------------------------------------------------


def entries_between(ledger: Ledger, first: int, last: int) -> np.ndarray:
    """Return ENTRY[place], entries *first* to *last* - 1, which must be there."""
    return ledger.entry[ring_place(ledger, np.arange(first, last))]


def carried(ledger: Ledger, epoch: int, first: int, last: int) -> np.ndarray:
    """Return ENTRY[place], entries *first* to *last* - 1 as a message takes them along; none where they are gone."""
    if not still_holds(ledger, epoch, first):
        return ledger.entry[:0].copy()
    return entries_between(ledger, first, last)


def bring(copy: Ledger, epoch: int, first: int, entries: np.ndarray) -> None:
    """Write what a message brought into the receiver's copy of its sender's ledger, before the message is handled.

    A copy may have gaps: a message's own entries are in it, and no others are read for it. What is older than the ring
    goes back is left out.
    """
    if epoch < copy.counts.epoch:
        return
    if epoch > copy.counts.epoch:
        copy.counts.epoch, copy.counts.version = epoch, 0
    last = first + len(entries)
    copy.counts.version = max(copy.counts.version, last)
    start = max(first, copy.counts.version - copy.entry.size)
    if start < last:
        copy.entry[np.arange(start, last) % copy.entry.size] = entries[start - first :]


__all__ = [
    "ENTRY", "ENTRY_GAVE", "ENTRY_GONE", "ENTRY_SIZED", "ENTRY_TOOK", "ENTRY_WHOLE", "NOBODY",
    "Ledger", "bring", "build_ledger", "carried", "enter", "entries_between", "ring_place",
]
