"""Predicates on machine attributes for one machine; constraints.py evaluates them over a fleet."""
import operator
import re

import msgspec

OPERATORS = ("=", "!=", "<", ">", "<=", ">=")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)
COMPARISONS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


class Constraint(msgspec.Struct, frozen=True, order=True):
    """A predicate on one attribute, such as ``platform = x`` or ``kernel >= 3``.

    As in the Google 2011 trace (format document, task constraints): ``=`` with an empty value asks that the
    attribute is absent, ``!=`` with an empty value that it is present, and for an order an absent or
    non-numeric attribute counts as 0.
    """

    attribute: str
    operator: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.attribute} {self.operator} {self.value or '(none)'}"


def is_met(constraint: Constraint, attributes: dict[str, str]) -> bool:
    """Return whether a machine with *attributes* meets the constraint."""
    text = attributes.get(constraint.attribute, "")
    if constraint.operator in ("=", "!="):
        return (text == constraint.value) == (constraint.operator == "=")
    number = float(text) if NUMBER.fullmatch(text) else 0.0
    return COMPARISONS[constraint.operator](number, float(constraint.value))
