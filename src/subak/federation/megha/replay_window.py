"""The replay window of a sender: its highest number, and a bit for each of the 64 up to it (RFC 4303).

So a doubled request is recognised, an overtaken one is still taken, and one that comes very late is refused.
"""
import numpy as np

from subak.fleet.state import NO_BITS, ONE
from subak.marks import inlined

WINDOW = 64


@inlined
def is_new(window: np.void, number: int) -> bool:
    """Note a number in a sender's window, a row with `top` and `bits`; return whether it is seen for the first time."""
    behind = window["top"] - number
    if behind >= WINDOW:
        return False
    if behind >= 0:
        bit = ONE << np.uint64(behind)
        new: bool = window["bits"] & bit == NO_BITS
        window["bits"] |= bit
        return new
    ahead = -behind
    window["bits"] = (window["bits"] << np.uint64(ahead) if ahead < WINDOW else NO_BITS) | ONE
    window["top"] = number
    return True
