"""A figure of the paper beside the measured and the generated one."""
import msgspec

from subak.reproduce.claims import Why, reason, verdict_of

NEAR = 0.1  # a figure holds within a tenth of the paper's; a share, of what is left to 1, too, where that is less


class Row(msgspec.Struct, frozen=True):
    """One claim: the paper's figure, what was measured, and what the generator gives."""

    table: str
    what: str
    paper: float | None
    measured: float | None = None
    generated: float | None = None
    why: Why | None = None  # what was measured may differ; None: that is not explained
    note: str = ""  # how it is measured
    error: float = 0.0  # half of the 95 % interval of what was measured, by jobs, where that is known

    @property
    def verdict(self) -> str | None:
        """Whether what was measured is near the paper's figure; None without one of them."""
        if self.paper is None or self.measured is None:
            return None
        near_it = room(self.paper, self.is_share)
        return verdict_of(self.paper - near_it, self.paper + near_it, self.measured - self.error,
                          self.measured + self.error)

    @property
    def is_share(self) -> bool:
        """Whether its figures are shares of one."""
        return "(share" in self.what

    @property
    def reason(self) -> str:
        """Why it differs, if it does, and how it is measured."""
        return reason(self.verdict, self.why, self.note)


def near(one: float, other: float) -> bool:
    """Whether a figure is as near another as a claim asks for."""
    return abs(one - other) <= room(other)


def room(figure: float, is_share: bool = False) -> float:
    """Return how far from the paper's figure one holds: so that nothing holds where nothing was measured."""
    return NEAR * (min(figure, 1.0 - figure) if is_share else abs(figure))
