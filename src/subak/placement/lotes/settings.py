"""The settings of LoTES's plan and dispatcher."""
import math

import msgspec

from subak.errors import InputError
from subak.quantities import Seconds

CLASSES_MAX = 64
REPLAN_MIN_S = 1.0  # a plan looks at all tasks of its window
BINS = ("auto", "all", "generated")
PAIRS = ("allocation", "all")
CHOICES = ("roulette", "deficit")
SCALINGS = ("deviation", "capacity")
MIXES = ("known", "last", "average")
FALLBACKS = ("all", "devoted")
ORDERS = ("fifo", "smallest", "least-work")
BOUNDS: dict[str, tuple[float, float]] = {
    "classes": (0, CLASSES_MAX), "window_start": (0, math.inf), "window_seconds": (0, math.inf),
    "bins_max": (1, 10_000_000), "constraint_sets_max": (0, 16), "seed": (0, 2**31 - 1), "sampled": (0, 1_000_000),
    "replan_seconds": (0, math.inf), "replan_window": (0, math.inf), "usage": (0, 1),
}


class LotesSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The settings of plan and dispatcher; times are in seconds."""

    classes: int = 4  # clusters of requests (the paper's 4); 0: as many as the criterion of classes.py finds
    window_start: Seconds = 0.0  # after the first arrival
    window_seconds: Seconds = 86_400.0  # of arrivals that classes are made of: the first day (section 5.1)
    scaling: str = "deviation"  # of requests: by their standard deviation, or the largest machine's "capacity"
    standing: bool = False  # whether tasks that were there when a trace began count as arrivals
    pairs: str = "allocation"  # classes in a bin: those allotted to the configuration (the paper), or "all" it may run
    bins: str = "auto"  # "all" non-dominated ones listed, only those "generated" as they pay, or all up to bins_max
    bins_max: int = 50_000  # listed over all configurations
    constraint_sets_max: int = 8  # most frequent ones that are told apart; the others are taken together
    seed: int = 1  # of where clusters begin
    choice: str = "roulette"  # of a configuration for a task: the "roulette" wheel (the paper), or by "deficit"
    order: str = "fifo"  # of arrivals at once and of queues: "fifo" (the paper), the "smallest" or "least-work" first
    fallback: str = "all"  # where an arriving task may go too: "all" configurations (the paper), or those "devoted"
    sampled: int = 0  # machines of the configuration that are looked at; 0: all of them
    replan_seconds: Seconds = 0.0  # between plans made during a run; 0: the first one stays
    replan_window: Seconds = 86_400.0  # seconds of arrivals that a later plan is made of, those just before it
    mix: str = "known"  # of the first window (the paper), of the "last", or the "average" of all that have passed
    local: bool = False  # whether plans count with the fleet's speeds, as those of machines near a task's data
    usage: float = 1.0  # share of its request that a task uses in the mean over its life: bins are made for it

    def __post_init__(self) -> None:
        """Refuse what no plan could be made with."""
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"{name}: must be from {least:g} to {most:g}, not {value:g}")
        if 0 < self.replan_seconds < REPLAN_MIN_S:
            raise InputError(f"replan_seconds: must be 0 (never) or {REPLAN_MIN_S:g} and more, "
                             f"not {self.replan_seconds:g}")
        for name in ("window_seconds", "replan_window", "usage"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}: must be more than 0, not {getattr(self, name):g}")
        for name, words in (("bins", BINS), ("pairs", PAIRS), ("scaling", SCALINGS), ("choice", CHOICES),
                            ("mix", MIXES), ("fallback", FALLBACKS), ("order", ORDERS)):
            if getattr(self, name) not in words:
                raise InputError(f"{name}: must be one of {', '.join(words)}, not {getattr(self, name)!r}")
        if self.mix != "known" and not self.replan_seconds:
            raise InputError(f"mix: {self.mix} goes with plans during a run, so that replan_seconds must be more than "
                             "0")
