"""A figure of the paper beside what was measured and what the generator gives."""
import msgspec

from subak.reproduce.claims import DIFFERS, HOLDS, Why, reason

NEAR = 0.1  # a figure holds within a tenth of the paper's
NEAR_SHARE = 0.05  # or, where it is a share, within 5 points


class Row(msgspec.Struct, frozen=True):
    """One claim: the paper's figure, what was measured, and what the generator gives."""

    table: str
    what: str
    paper: float | None
    measured: float | None = None
    generated: float | None = None
    why: Why | None = None  # what was measured may differ; None: that is not explained
    note: str = ""  # how it is measured

    @property
    def verdict(self) -> str | None:
        """Whether what was measured is near the paper's figure; None without one of them."""
        if self.paper is None or self.measured is None:
            return None
        return HOLDS if near(self.measured, self.paper, self.is_share) else DIFFERS

    @property
    def is_share(self) -> bool:
        """Whether its figures are shares of one."""
        return "(share" in self.what

    @property
    def reason(self) -> str:
        """Why it differs, if it does, and how it is measured."""
        return reason(self.verdict, self.why, self.note)


def near(one: float, other: float, is_share: bool = False) -> bool:
    """Whether a figure is as near another as a claim asks for."""
    return abs(one - other) <= (NEAR_SHARE if is_share else NEAR * abs(other))
