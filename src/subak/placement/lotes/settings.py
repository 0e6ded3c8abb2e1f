"""The settings of LoTES's plan and dispatcher."""
from typing import Annotated

import msgspec

from subak.errors import InputError
from subak.quantities import Seconds
from subak.settings import EVERY, Between, Setting, one_of, refuse_values

CLASSES_MAX = 64
REPLAN_MIN_S = 1.0  # a plan looks at all tasks of its window
BINS = ("auto", "all", "generated")
PAIRS = ("allocation", "all")
CHOICES = ("roulette", "deficit")
SCALINGS = ("deviation", "capacity")
MIXES = ("known", "last", "average")
FALLBACKS = ("all", "devoted")
ORDERS = ("fifo", "smallest", "least-work")


class LotesSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The settings of plan and dispatcher; times are in seconds."""

    classes: Annotated[int, Setting(
        "Clusters of requests (the paper's 4); 0: as many as the criterion of classes.py finds.",
        users=EVERY, rule=Between(0, CLASSES_MAX))] = 4
    window_start: Annotated[Seconds, Setting(
        "Where the window of arrivals begins, after the first arrival.", users=EVERY, rule=Between(0))] = 0.0
    window_seconds: Annotated[Seconds, Setting(
        "Of arrivals that classes are made of: the first day (section 5.1).", users=EVERY,
        rule=Between(0, above=True))] = 86_400.0
    scaling: Annotated[str, Setting(
        "Of requests: by their standard deviation, or the largest machine's capacity.",
        users=EVERY, rule=one_of(SCALINGS))] = "deviation"
    standing: Annotated[bool, Setting(
        "Whether tasks that were there when a trace began count as arrivals.", users=EVERY)] = False
    pairs: Annotated[str, Setting(
        "Classes in a bin: those allotted to the configuration (the paper), or all it may run.",
        users=EVERY, rule=one_of(PAIRS))] = "allocation"
    bins: Annotated[str, Setting(
        "All: the non-dominated ones, listed; generated: only those that pay; auto: all, up to bins_max.",
        users=EVERY, rule=one_of(BINS))] = "auto"
    bins_max: Annotated[int, Setting(
        "Listed over all configurations.", users=EVERY, rule=Between(1, 10_000_000))] = 50_000
    constraint_sets_max: Annotated[int, Setting(
        "Most frequent ones that are told apart; the others are taken together.", users=EVERY, rule=Between(0, 16))] = 8
    seed: Annotated[int, Setting("Of where clusters begin.", users=EVERY, rule=Between(0, 2**31 - 1))] = 1
    choice: Annotated[str, Setting(
        "Of a configuration for a task: the roulette wheel (the paper), or by deficit.",
        users=EVERY, rule=one_of(CHOICES))] = "roulette"
    order: Annotated[str, Setting(
        "Of arrivals at once and of queues: fifo (the paper), the smallest or least-work first.",
        users=EVERY, rule=one_of(ORDERS))] = "fifo"
    fallback: Annotated[str, Setting(
        "Where an arriving task may go too: all configurations (the paper), or those devoted.",
        users=EVERY, rule=one_of(FALLBACKS))] = "all"
    sampled: Annotated[int, Setting(
        "Machines of the configuration that are looked at; 0: all of them.", users=EVERY,
        rule=Between(0, 1_000_000))] = 0
    replan_seconds: Annotated[Seconds, Setting(
        "Between plans made during a run; 0: the first one stays.", users=EVERY, rule=Between(0))] = 0.0
    replan_window: Annotated[Seconds, Setting(
        "Seconds of arrivals that a later plan is made of, those just before it.",
        users=EVERY, rule=Between(0, above=True))] = 86_400.0
    mix: Annotated[str, Setting(
        "Of the first window (the paper), of the last, or the average of all that have passed.",
        users=EVERY, rule=one_of(MIXES))] = "known"
    local: Annotated[bool, Setting(
        "Whether plans count with the fleet's speeds, as those of machines near a task's data.", users=EVERY)] = False
    usage: Annotated[float, Setting(
        "Share of its request that a task uses in the mean over its life: bins are made for it.",
        users=EVERY, rule=Between(0, 1, above=True))] = 1.0

    def __post_init__(self) -> None:
        """Refuse what no plan could be made with."""
        refuse_values(self)
        if 0 < self.replan_seconds < REPLAN_MIN_S:
            raise InputError(f"replan_seconds: must be 0 (never) or {REPLAN_MIN_S:g} and more, "
                             f"not {self.replan_seconds:g}")
        if self.mix != "known" and not self.replan_seconds:
            raise InputError(f"mix: {self.mix} goes with plans during a run, so that replan_seconds must be more than "
                             "0")
