"""Reads machines in words, as options and scenarios give them: `200:cpu=0.5,memory=0.5`, `30%`."""
import math
import re
from typing import NamedTuple

from subak.errors import InputError
from subak.quantities import Amount
from subak.resources import parse_amounts

MACHINES_MAX = 10_000_000  # of a fleet; more would not fit in memory
AMOUNT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(%?)\s*", re.ASCII)


class Machines(NamedTuple):
    """So many machines, or that share of them, of a capacity."""

    amount: float  # of machines; where `share`, of one
    share: bool
    capacity: dict[str, Amount]  # of machines to remove, what they are told by


def read_added(text: str) -> Machines:
    """Read N:RESOURCE=AMOUNT,... Raises InputError for another form."""
    number, _, kind = text.partition(":")
    found = AMOUNT.fullmatch(number)
    if found is None or found[2] or "." in found[1] or not 1 <= int(found[1]) <= MACHINES_MAX:
        raise InputError(f"add_machines: must be N:RESOURCE=AMOUNT,... with N from 1 to {MACHINES_MAX:,}, such as "
                         f"200:cpu=0.5,memory=0.5, not {text!r}")
    return Machines(float(found[1]), False, read_capacity(kind, "add_machines"))


def read_removed(text: str) -> Machines:
    """Read N or P%, with :RESOURCE=AMOUNT,... behind it or not. Raises InputError for another form."""
    number, colon, kind = text.partition(":")
    found = AMOUNT.fullmatch(number)
    amount, share = (float(found[1]), bool(found[2])) if found else (0.0, False)
    if amount <= 0 or (share and amount > 100) or (not share and amount != int(amount)):
        raise InputError("remove: must be a number of machines or a share of them, such as 100, 30% or 100:cpu=0.5, "
                         f"not {text!r}")
    return Machines(amount / 100.0 if share else amount, share, read_capacity(kind, "remove") if colon else {})


def read_capacity(text: str, option: str) -> dict[str, Amount]:
    """Read RESOURCE=AMOUNT,... Raises InputError, naming *option*, for another form, and for no finite amounts."""
    amounts = parse_amounts([text], option)
    for name, amount in amounts.items():
        if not isinstance(amount, str) and not 0 <= amount < math.inf:
            raise InputError(f"{option}: {name} must be a number, 0 or more, not {amount:g}")
    return amounts


def refuse_scale(factor: float) -> None:
    """Raise InputError for a factor that no number of machines can be multiplied by."""
    if not 0 < factor < math.inf:
        raise InputError(f"scale: must be a number above 0, such as 1.5, not {factor:g}")
