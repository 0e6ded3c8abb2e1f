"""Summarises LoTES's plans for summary.json, including those that failed."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from subak.measures.runs import PlanFacts

if TYPE_CHECKING:  # scipy and HiGHS, which plans are made with, take a while to load
    from subak.placement.lotes.plan import Plan


def plan_facts(plans: Sequence[Plan], missed: Sequence[str] = ()) -> PlanFacts | None:
    """Return what the first plan of a run promised, what all of them took, and how many there could not be.

    *missed* says of each of the latter why. None for a run that goes by no plans.
    """
    why = _by_rule(missed)
    if not plans:
        return PlanFacts(plans=0, missed=why) if why else None
    first = plans[0]
    return PlanFacts(
        classes=first.classes.share.size, configurations=first.configurations.machines.size,
        bins=len(first.assignment.bins), rate_pooled=first.allocation.rate, rate=first.assignment.rate,
        rate_rounded=first.assignment.rate_rounded, plans=len(plans),
        seconds=sum(sum(plan.seconds.values()) for plan in plans), notes=first.notes, missed=why,
    )


def missed_words(label: str, plan: PlanFacts) -> str:
    """Say how many plans of a run could not be made, and why; nothing where all could."""
    if not plan.missed:
        return ""
    count = sum(plan.missed.values())
    tried = plan.plans + count
    why = "; ".join(f"{reason}{_times(often)}" for reason, often in plan.missed.items())
    return (f"{label}: of {tried:,} plans {count:,} could not be made during the run, and what was planned before went "
            f"on: {why}")


def _times(often: int) -> str:
    return "" if often == 1 else f" (the first of {often:,})"


def _by_rule(missed: Sequence[str]) -> dict[str, int]:
    """Return how often each rule was broken, by what was said of it first: the next ones differ in their numbers."""
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for why in missed:
        said = first.setdefault(why.partition(":")[0], why)
        count[said] = count.get(said, 0) + 1
    return count
