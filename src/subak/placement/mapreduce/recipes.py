"""The plans by name: how maps are dispatched, in which order they run, how reduces are dispatched."""
from dataclasses import dataclass

import msgspec

from subak.errors import InputError

MIN_MIN, MAX_MIN, SUFFERAGE, RANK, JOB_ORDER = "min-min", "max-min", "sufferage", "rank", "job-order"
ASSIGNED, JOHNSON, REVERSED = "assigned", "johnson", "johnson-reversed"
SEARCH_SECONDS_MAX, SEARCH_MOVES_MAX = 86_400, 1_000_000_000


@dataclass(frozen=True)
class Recipe:
    """A way to plan."""

    summary: str
    maps: str = MIN_MIN  # dispatcher
    sequence: str = ASSIGNED  # of the maps of a machine: as they were assigned, or by their job's Pri
    reduces: str = MIN_MIN  # dispatcher
    searches: bool = False  # whether a search improves it


RECIPES = {
    "hmhs": Recipe("Min-Min for maps, each machine's by Johnson's rule, Dynamic-Min-Min for reduces (HMHS).",
                   sequence=JOHNSON),
    "r-hmhs": Recipe("HMHS with the maps of each machine in the reverse order (R-HMHS).", sequence=REVERSED),
    "hmhs-search": Recipe("HMHS, improved by a search: `search_seconds`, or as many moves as `search_moves` says.",
                          sequence=JOHNSON, searches=True),
    "min-min": Recipe("Min-Min for maps alone, in its own order; reduces job by job, to machines as they are free.",
                      reduces=JOB_ORDER),
    "dynamic-min-min": Recipe("Dynamic-Min-Min for reduces alone; maps job by job, to machines as they are free.",
                              maps=JOB_ORDER),
    "max-min": Recipe("The job whose best completion is the latest goes next, maps and reduces (Max-Min).",
                      MAX_MIN, ASSIGNED, MAX_MIN),
    "sufferage": Recipe("The job that would suffer most without its best machine goes next (Sufferage).",
                        SUFFERAGE, ASSIGNED, SUFFERAGE),
    "heft": Recipe("The job with the longest way still to go for a task goes next, to its best machine (as in HEFT).",
                   RANK, ASSIGNED, RANK),
}


class SearchSettings(msgspec.Struct, frozen=True):
    """How long to search: *moves* of the second stage, or as many as *seconds* allow where it is None."""

    seconds: float = 1.0
    moves: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= SEARCH_SECONDS_MAX:
            raise InputError(f"search_seconds: must be from 0 to {SEARCH_SECONDS_MAX:,}, not {self.seconds:g}")
        if self.moves is not None and not 0 <= self.moves <= SEARCH_MOVES_MAX:
            raise InputError(f"search_moves: must be from 0 to {SEARCH_MOVES_MAX:,}, not {self.moves:,}")
