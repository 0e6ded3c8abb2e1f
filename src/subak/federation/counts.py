"""Counters that saturate at the largest number, so that none wraps around.

Two kinds: what is compared with a limit of up to 32,767 is an int32 (attempts that failed or were lost: the first count
above the limit must fit). What is only told is an int16, of which 32,767 means so many or more (refusals, repartitions,
preemptions).
"""

from typing import SupportsInt

import numpy as np

from subak.marks import inlined

COMPARED, TOLD = np.int32, np.int16
COMPARED_MAX, TOLD_MAX = int(np.iinfo(COMPARED).max), int(np.iinfo(TOLD).max)


@inlined
def compared(count: SupportsInt, more: SupportsInt) -> int:
    """Return the sum of two counts that is kept as COMPARED."""
    return min(int(count) + int(more), COMPARED_MAX)


@inlined
def told(count: SupportsInt, more: SupportsInt) -> int:
    """Return the sum of two counts that is kept as TOLD."""
    return min(int(count) + int(more), TOLD_MAX)
