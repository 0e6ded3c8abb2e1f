"""A local master's ledger: every change of its cluster, in order; what global masters build their views from.

The version of a cluster is the number of entries ever written. An update is a range of entries; who has seen version v
applies what follows it, so doubled, late and reordered updates do no harm. The ledger is a ring: for one who has seen
less than it still holds, the local master writes the whole state down again, behind the entry WHOLE.

  WHOLE          forget what you believed of this cluster; what follows, up to one SIZED for each machine, is all of it
  TOOK           the attempt holds its amounts on the machine (held: it waits for its gang)
  GAVE           the attempt is over, for a reason, and its amounts are free
  GONE           the attempt is over, for a reason, and holds nothing (in a whole state)
  SIZED          the machine has the capacity of a configuration, or is absent; all its attempts have been entered
"""
from typing import NamedTuple

import numpy as np

from subak.federation.messages import NO_REASON, NOBODY
from subak.kernel import inlined

ENTRY_WHOLE, ENTRY_TOOK, ENTRY_GAVE, ENTRY_GONE, ENTRY_SIZED = range(5)
ENTRY = np.dtype([
    ("kind", np.int8), ("reason", np.int8),
    ("held", np.int8),  # whether the attempt waits for its gang
    ("preempted", np.int16),  # how often the task had been preempted
    ("machine", np.int32),
    ("task", np.int32),  # of ENTRY_SIZED: the configuration, NOBODY when the machine is absent
    ("owner", np.int32), ("attempt", np.int64),
])
VERSION, WHOLE_AT = range(2)  # of `size`


class Ledger(NamedTuple):
    """The last entries, in a ring."""

    entry: np.ndarray  # ENTRY[place], entry v is at place v modulo the size
    size: np.ndarray  # int64[2]: VERSION, and WHOLE_AT, the version at which the whole state was last written


@inlined
def enter(ledger: Ledger, kind: int, machine: int, task: int, attempt: int, owner: int) -> np.void:
    """Write an entry, and return it for its reason."""
    entry = ledger.entry[ledger.size[VERSION] % ledger.entry.size]
    ledger.size[VERSION] += 1
    entry["kind"], entry["reason"], entry["held"] = kind, NO_REASON, 0
    entry["preempted"] = 0
    entry["machine"], entry["task"], entry["owner"], entry["attempt"] = machine, task, owner, attempt
    return entry


@inlined
def reaches_back_to(ledger: Ledger, version: int) -> bool:
    """Whether everything since *version* is still there, with half of the ring to spare for what is on its way."""
    return bool(version >= 0 and ledger.size[VERSION] - version <= ledger.entry.size // 2)


@inlined
def still_holds(ledger: Ledger, version: int) -> bool:
    """Whether the entry that follows *version* has not been overwritten."""
    return bool(version >= 0 and ledger.size[VERSION] - version <= ledger.entry.size)


__all__ = [
    "ENTRY", "ENTRY_GAVE", "ENTRY_GONE", "ENTRY_SIZED", "ENTRY_TOOK", "ENTRY_WHOLE", "NOBODY", "VERSION", "WHOLE_AT",
    "Ledger", "enter",
]
