"""A figure of the paper beside what was measured and what the generator gives."""
import msgspec

from subak.reproduce.claims import DIFFERS, HOLDS

NEAR = 0.1  # a figure holds within a tenth of the paper's
NEAR_SHARE = 0.05  # or, where it is a share, within 5 points


class Row(msgspec.Struct, frozen=True):
    """One claim: the paper's figure, what was measured, what the generator gives, and why they differ."""

    table: str
    what: str
    paper: float | None
    measured: float | None = None
    generated: float | None = None
    reason: str = ""

    @property
    def verdict(self) -> str | None:
        """Whether what was measured is near the paper's figure; None without one of them."""
        if self.paper is None or self.measured is None:
            return None
        room = NEAR_SHARE if self.is_share else NEAR * abs(self.paper)
        return HOLDS if abs(self.measured - self.paper) <= room else DIFFERS

    @property
    def is_share(self) -> bool:
        """Whether its figures are shares of one."""
        return "(share" in self.what
