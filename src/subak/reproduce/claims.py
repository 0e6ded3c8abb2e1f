"""A paper's claims: bounds on named numbers that are measured here, and the verdicts on them."""
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.report.number_text import NOTHING, number_text, seconds_text, share_text

Notify = Callable[[str, float], None]  # what is being simulated, and which part of its tasks have arrived


HOLDS, DIFFERS, UNDECIDED = "holds", "differs", "undecided"
UNEXPLAINED = "not explained"
ABOVE_0 = frozenset({"s", "times", "slots", "bins", "classes", "of 10"})  # units of which there is no 0
NOTHING_MEASURED = "nothing was measured"
NO_DIFFERENCE = "no difference was measured"
DIRECTIONS = ((1.0, None), (None, 1.0))  # bounds of a ratio that is said to rise, or to fall
OF_SEVERAL = ": "  # in the name of a number of which there are several


class Interval(NamedTuple):
    """A measured number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class Evidence(NamedTuple):
    """Bounds on a number of a figure, within which it shows a reason."""

    figure: str
    number: str
    least: float | None = None
    most: float | None = None


class Why(NamedTuple):
    """Why a number is out of a claim's bounds, and the run, ablation or arithmetic that shows it.

    It is said where all *evidence* holds. What is put together with numbers at hand, which show it, needs none.
    """

    text: str
    shown: str
    evidence: tuple[Evidence, ...] = ()


class Claim(NamedTuple):
    """A claim about one number of a figure."""

    figure: str
    number: str  # its name among the figure's numbers
    says: str
    least: float | None = None
    most: float | None = None
    unit: str = "times"  # s, times, share, slots
    why: Why | None = None  # the measured number may be out of the bounds; None: that is not explained
    note: str = ""  # how it is measured, or how words became bounds
    caveat: Why | None = None  # what limits the number, whatever the verdict; said where its evidence holds


class Figure(NamedTuple):
    """Measurements: a table for people, named numbers for the claims."""

    key: str
    title: str
    table: pl.DataFrame
    numbers: Mapping[str, float | Interval]
    notes: tuple[str, ...] = ()
    points: pl.DataFrame | None = None  # what is drawn, where that is not the table


class Row(msgspec.Struct, frozen=True):
    """A claim beside what was measured."""

    figure: str
    claim: str
    rule: str  # the bounds in words; empty: the paper gives nothing to compare with
    measured: str
    verdict: str | None  # HOLDS, DIFFERS, UNDECIDED: the interval reaches over a bound; None without a rule or a number
    reason: str


class Reproduction(NamedTuple):
    """Everything that was measured."""

    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def title_of(figure: Figure) -> str:
    """Return what a figure is called."""
    return f"Fig. {figure.key}: {figure.title}" if figure.key.isdigit() else figure.title


def choose_figures(only: str | None, known: Collection[str], default: Collection[str]) -> list[str]:
    """Return the keys of the figures that are wanted, in the order known. Raises InputError for an unknown one."""
    if only is None:
        return list(default)
    keys = [key.strip() for key in only.split(",") if key.strip()]
    if not keys or not set(keys) <= set(known):
        raise InputError(f"--only: must name figures among {', '.join(known)}, not {only!r}")
    return [key for key in known if key in keys]


def judge_all(claims: Iterable[Claim], figures: Iterable[Figure]) -> tuple[Row, ...]:
    """Return the claims about the figures that were measured."""
    by_key = {figure.key: figure for figure in figures}
    return tuple(judge(claim, by_key) for claim in claims if claim.figure in by_key)


def judge(claim: Claim, figures: Mapping[str, Figure]) -> Row:
    """Return a claim beside the number it is about, of the *figures* that were measured, by key."""
    value, low, high = _interval(figures[claim.figure].numbers[claim.number])
    verdict = None if np.isnan(value) else verdict_of(claim.least, claim.most, low, high)
    note = claim.note
    if verdict == HOLDS and value <= 0.0 and claim.unit in ABOVE_0:
        verdict, note = UNDECIDED, NOTHING_MEASURED
    if verdict == HOLDS and low == high == 1.0 and (claim.least, claim.most) in DIRECTIONS:
        verdict, note = UNDECIDED, NO_DIFFERENCE
    if claim.caveat is not None and all(_shows(each, figures) for each in claim.caveat.evidence):
        note = "; ".join(filter(None, (note, f"{claim.caveat.text} ({claim.caveat.shown})")))
    return Row(claim.figure, claim.says, rule(claim), _measured(value, low, high, claim.unit), verdict,
               reason(verdict, claim.why, note, figures))


def reason(verdict: str | None, why: Why | None, note: str, figures: Mapping[str, Figure] | None = None) -> str:
    """Return what is said of a number: why it is out of its bounds, if it is, and how it is measured.

    A reason that *figures* do not show is none; one whose figure was not measured is still to be looked for.
    """
    return "; ".join(filter(None, (_said(why, figures or {}) if verdict == DIFFERS else "", note)))


def _said(why: Why | None, figures: Mapping[str, Figure]) -> str:
    if why is None:
        return UNEXPLAINED
    missing = dict.fromkeys(each.figure for each in why.evidence if each.figure not in figures)
    if missing:
        return f"{UNEXPLAINED} by what was run here; --only {','.join(missing)} looks for a reason"
    return f"{why.text} ({why.shown})" if all(_shows(each, figures) for each in why.evidence) else UNEXPLAINED


def _shows(of: Evidence, figures: Mapping[str, Figure]) -> bool:
    if of.figure not in figures:
        return False
    _, low, high = _interval(figures[of.figure].numbers.get(of.number, float("nan")))
    return verdict_of(of.least, of.most, low, high) == HOLDS


def _interval(number: float | Interval) -> Interval:
    return number if isinstance(number, Interval) else Interval(number, number, number)


def over_seeds(figures: Sequence[Figure]) -> Figure:
    """Return one figure of what it is with each seed: the table of the first, numbers with intervals over the seeds.

    Of numbers "name: which of them" the least is the number "name".
    """
    numbers = {name: typical([_interval(each.numbers[name]).value for each in figures]) for name in figures[0].numbers}
    for name in {name.partition(OF_SEVERAL)[0] for name in numbers if OF_SEVERAL in name}:
        numbers[name] = min(number for each, number in numbers.items() if each.startswith(name + OF_SEVERAL))
    return figures[0]._replace(numbers=numbers)


def typical(values: Sequence[float]) -> Interval:
    """Return the number of a typical seed from those of several, with its 95 % interval: Student's t of their logs.

    Where one is not above 0: of the values themselves. Of one seed, or where one is unknown, there is no interval.
    """
    of = np.asarray(values, np.float64)
    if of.size == 1 or np.isnan(of).any() or np.ptp(of) == 0.0:
        return Interval(float(of.mean()), *(float(of.mean()),) * 2)
    from scipy.stats import t as student  # noqa: PLC0415  (takes a while to load)

    above = bool((of > 0.0).all())
    of = np.log(of) if above else of
    half = float(student.ppf(0.975, of.size - 1) * of.std(ddof=1) / np.sqrt(of.size))
    ends = (of.mean(), of.mean() - half, of.mean() + half)
    return Interval(*(float(np.exp(end) if above else end) for end in ends))


def verdict_of(least: float | None, most: float | None, low: float, high: float) -> str | None:
    """Return whether an interval is within bounds, reaches over one, or is outside; None without a bound."""
    if least is None and most is None:
        return None
    least, most = -np.inf if least is None else least, np.inf if most is None else most
    if np.isnan(low) or np.isnan(high):
        return UNDECIDED
    if least <= low and high <= most:
        return HOLDS
    return DIFFERS if high < least or low > most else UNDECIDED


def rule(claim: Claim) -> str:
    """Return the bounds of a claim in words."""
    least, most = (None if bound is None else amount(bound, claim.unit) for bound in (claim.least, claim.most))
    if least and most:
        return f"{least} to {most}"
    return f"at least {least}" if least else f"at most {most}" if most else ""


def _measured(value: float, low: float, high: float, unit: str) -> str:
    if np.isnan(value):
        return NOTHING
    ends = "" if low == high or np.isnan(low) else f" ({amount(low, unit)} to {amount(high, unit)})"
    return amount(value, unit) + ends


def amount(value: float, unit: str) -> str:
    """Return a number of a claim in words."""
    if unit == "s":
        return seconds_text(value)
    return share_text(value) if unit == "share" else f"{number_text(value)} {unit}".strip()


def score(found: Iterable[str | None]) -> str:
    """Return how many claims hold, in words, from their verdicts."""
    verdicts = [verdict for verdict in found if verdict]
    others = [f"{count} {words}" for count, words in (
        (verdicts.count(DIFFERS), "differ"), (verdicts.count(UNDECIDED), "cannot be told")) if count]
    return ", ".join([f"{verdicts.count(HOLDS)} of {len(verdicts)} claims hold", *others])
