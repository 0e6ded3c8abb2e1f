"""Declares a setting once: help, form, values, and which schedulers use it.

A field of a struct is a setting where its type is `Annotated[TYPE, Setting(...)]`. The scenario file, the command line,
the keywords of Python, the refusals and the reference follow from it.
"""
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, TypeVar, get_args, get_type_hints

import msgspec

from subak.errors import InputError
from subak.json_type import Json

# headings of the help
INPUT, TIME, FAIR = "What is scheduled on what", "Time", "Fair shares"
FEDERATED, OUTPUT = "A federation", "What is kept"
HEADINGS = INPUT, TIME, FEDERATED, FAIR  # of scenarios, in their order; settings without a heading come last
# what stands for a value in the help
DURATION = "DURATION"  # such as 90, 30min or 1-02:30:00
WHEN = "WHEN"  # such as 2d, or a date where the workload knows which day its time 0 is
FILE = "FILE.toml"

Rule = Callable[..., str]  # of a value: which rule it breaks, as in "from 0 to 1"; an empty text where it breaks none
T = TypeVar("T", bound=msgspec.Struct)


class Named(Protocol):
    """A scheduler, of which this module needs the name."""

    @property
    def name(self) -> str:
        """Its name."""


class Users(NamedTuple):
    """Which schedulers use a setting.

    A setting of how to decide is for those runs of a comparison that use it, and one must. One of what happens, which
    the runs would otherwise not have in common, is for *all* or refused.
    """

    why_not: Callable[..., str]  # of a scheduler: an empty text where it uses the setting
    need: str = ""  # what none of the schedulers has, where all could be without it
    all: bool = False


EVERY = Users(lambda _: "", all=True)
NOBODY = Users(lambda _: "does not use it, nor does any other scheduler: its declaration names none", all=True)


@dataclass(frozen=True)
class Setting:
    """What a setting says beside its name, type and default."""

    help: str
    form: str = ""  # what stands for its value, such as N, SHARE or a|b; empty: it is no option of a command
    heading: str | None = None  # in the help
    users: Users = NOBODY
    rule: Rule | None = None
    option: str = ""  # the option's name, where it is not the setting's
    show_default: bool = False  # in the help, which otherwise says what the default means
    draws: Callable[..., bool] | None = None  # whether runs with this value depend on the seed
    is_path: bool = False  # a file or folder; in a scenario file it is relative to that
    keyword: bool = True  # of `subak.run` and `subak.compare`


@cache
def declared(kind: type[msgspec.Struct]) -> dict[str, Setting]:
    """Return what the fields of a struct declare, in their order; a field that declares nothing is no setting."""
    found: dict[str, Setting] = {}
    for base in reversed(kind.__mro__):  # a class may narrow the type of a setting that it inherits
        for name, hint in get_type_hints(base, include_extras=True).items():
            for each in getattr(hint, "__metadata__", ()):
                if isinstance(each, Setting):
                    found[name] = each
    return {name: found[name] for name in kind.__struct_fields__ if name in found}


@cache
def usual(kind: type[msgspec.Struct]) -> dict[str, object]:
    """Return the defaults of a struct's fields, those without one left out."""
    return {each.name: each.default if each.default is not msgspec.NODEFAULT else each.default_factory()
            for each in msgspec.structs.fields(kind)
            if each.default is not msgspec.NODEFAULT or each.default_factory is not msgspec.NODEFAULT}


def changed_settings(settings: msgspec.Struct) -> dict[str, object]:
    """Return the settings that differ from their defaults, or have none, in their order."""
    values, defaults = {name: getattr(settings, name) for name in declared(type(settings))}, usual(type(settings))
    return {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}


def refuse_values(settings: msgspec.Struct) -> None:
    """Raise InputError, with the setting's name, for a value that breaks its rule."""
    for name, setting in declared(type(settings)).items():
        if setting.rule is not None:
            value = getattr(settings, name)
            broken = setting.rule(value)
            if broken:
                raise InputError(f"{name}: must be {broken}, not {value_words(value)}")


def refuse_unused(settings: msgspec.Struct, schedulers: Iterable[Named], prefix: str = "") -> None:
    """Raise InputError for a setting off its default that these schedulers do not use; *prefix* goes before its name.

    *schedulers* are looked at where there is such a setting that not every scheduler uses.
    """
    known = declared(type(settings))
    for name in changed_settings(settings):
        users = known[name].users
        if users is EVERY:
            continue
        schedulers = list(schedulers)
        why = [users.why_not(scheduler) for scheduler in schedulers]
        if users.all:
            first = next((each for each in zip(schedulers, why, strict=True) if each[1]), None)
            if first is not None:
                raise InputError(f"{prefix}{name}: {first[0].name} {first[1]}")
        elif all(why):
            names = ", ".join(scheduler.name for scheduler in schedulers)
            raise InputError(f"{prefix}{name}: none of the schedulers {names} {users.need}")


def used_by(settings: msgspec.Struct, scheduler: Named) -> dict[str, Json]:
    """Return the settings off their defaults, without those that a scheduler does not use."""
    known = declared(type(settings))
    return {name: value for name, value in changed_settings(settings).items()
            if known[name].users is EVERY or not known[name].users.why_not(scheduler)}


def value_words(value: object) -> str:
    """Return a value as a refusal shows it."""
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else repr(value)


def kind_of(struct: type[msgspec.Struct], name: str) -> object:
    """Return the type of a field, without what is annotated to it, and without None."""
    hint = get_type_hints(struct)[name]
    members = [each for each in get_args(hint) if each is not type(None)]
    return members[0] if type(None) in get_args(hint) and len(members) == 1 else hint


# -- rules -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Between:
    """The rule of values from *least* to *most*, and no NaN; what is said is the end that was passed."""

    least: float
    most: float = math.inf
    above: bool = False  # whether the least itself is too little

    def __call__(self, value: float) -> str:
        """Return which end the value has passed, in words."""
        if math.isnan(value) or value < self.least or (self.above and value == self.least):
            return f"more than {self.least:g}" if self.above else f"{self.least:g} or more"
        return f"at most {self.most:,}" if value > self.most else ""


def where(holds: Callable[..., bool], words: str) -> Rule:
    """Allow values for which something holds, which *words* say; None is the default and breaks nothing."""
    return lambda value: "" if value is None or holds(value) else words


def one_of(words: Collection[str]) -> Rule:
    """Allow some words."""
    return where(lambda value: value in words, f"one of {', '.join(words)}")
