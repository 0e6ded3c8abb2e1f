"""The records of attempts on disk, appended, from which the ledger is restored."""
from msgspec import Struct

from subak.live.agent.attempts.attempt import Ending, Fence, Key


class Seen(Struct, frozen=True, tag=1, array_like=True):
    """The latest incarnation and epoch, and which starts of it were seen: the highest, and a bit for each of 64."""

    incarnation: int
    epoch: int
    top: int
    bits: int


class Started(Struct, frozen=True, tag=2, array_like=True):
    """The attempt may have begun."""

    key: Key
    fence: Fence


class Ended(Struct, frozen=True, tag=3, array_like=True):
    """No process of the attempt is left; *fence* is None for one that was ended before any start of it was seen."""

    key: Key
    fence: Fence | None
    ending: Ending


class Forgotten(Struct, frozen=True, tag=4, array_like=True):
    """The attempt's end is noted elsewhere."""

    key: Key


class Life(Struct, frozen=True, tag=5, array_like=True):
    """An agent began to work, on the *boot* that Linux names so."""

    boot: str


Record = Seen | Started | Ended | Forgotten | Life
SYNCED = Ended, Life  # what must outlive the machine; of the others it is enough that they outlive the agent: after a
# loss of power nothing runs, and the worker's next incarnation obeys no order that was given to a former one
