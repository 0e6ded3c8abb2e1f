"""Declares the tunable parameters of central schedulers and of policies in files.

The ranges are those in which a better value is worth looking for, narrower than what is allowed: what a federation or
LoTES refuses is said in their settings.
"""
from typing import NamedTuple

from subak.errors import InputError
from subak.placement.lotes.settings import CHOICES, PAIRS, SCALINGS

Value = float | int | str


class Parameter(NamedTuple):
    """A number from `least` to `most`, whole if `least` is, or one of `words`."""

    name: str
    least: float = 0.0
    most: float = 0.0
    log: bool = False  # whether it is looked for by orders of magnitude
    words: tuple[Value, ...] = ()
    default: Value | None = None  # of a policy's; of others it is their setting's

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number."""
        return not self.words and isinstance(self.least, int)

    def holds(self, value: object) -> bool:
        """Whether a value is one of its own."""
        if self.words:
            return value in self.words
        if not isinstance(value, int | float) or (self.is_whole and value != int(value)):
            return False
        return self.least <= value <= self.most

    @property
    def text(self) -> str:
        """What it may be, in words."""
        if self.words:
            return ", ".join(map(str, self.words))
        return f"{self.least:g} to {self.most:g}" + (" (log)" if self.log else "")


LOTES_PARAMETERS = (
    Parameter("classes", 1, 12), Parameter("scaling", words=SCALINGS), Parameter("pairs", words=PAIRS),
    Parameter("choice", words=CHOICES), Parameter("sampled", 0, 128),
    Parameter("replan_seconds", words=(0.0, 3600.0, 21_600.0, 86_400.0)),
)


def refuse_parameter(parameter: Parameter) -> None:
    """Raise InputError for a parameter of a policy that could not be looked for."""
    name, least, most = parameter.name, parameter.least, parameter.most
    if not name.isidentifier():
        raise InputError(f"parameter: the name must be one of letters, digits and _, not {name!r:.100}")
    if not least < most < float("inf") or least == float("-inf"):
        raise InputError(f"parameter {name}: must be from one number to a larger one, not from {least!r} to {most!r}")
    if parameter.log and not least > 0:
        raise InputError(f"parameter {name}: with log=True it must be more than 0, not from {least!r}")
    if not parameter.holds(parameter.default):
        raise InputError(f"parameter {name}: the default must be from {least:g} to {most:g}"
                         f"{' and whole' if parameter.is_whole else ''}, not {parameter.default!r:.100}")
