"""Draws a scoreboard of a paper's claims and their verdicts."""
from collections.abc import Sequence
from typing import NamedTuple

from subak.reproduce.claims import DIFFERS, HOLDS, UNDECIDED

STYLES = {HOLDS: "green", DIFFERS: "bold red", UNDECIDED: "yellow", None: "dim"}
VERDICT_WIDTH, CLAIM_WIDTH = 10, 100  # characters
TITLES = ["Figure", "Verdict", "Claim", "Measured", "Rule", "Why it differs, or how it is measured"]


class Board(NamedTuple):
    """A paper's claims that have a verdict; rows are cells under TITLES."""

    name: str  # of its folder
    title: str
    score: str
    rows: Sequence[tuple[str, str | None, str, str, str, str]]
