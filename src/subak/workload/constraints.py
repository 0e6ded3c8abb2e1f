"""Placement constraints: predicates on machine attributes, evaluated to one truth value a machine."""
import msgspec
import numpy as np
import polars as pl

OPERATORS = ("=", "!=", "<", ">", "<=", ">=")
CONSTRAINT_TYPE = pl.Struct({"attribute": pl.String, "operator": pl.String, "value": pl.String})


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


def satisfied(constraint: Constraint, values: pl.Series) -> np.ndarray:
    """Return bool[machine]: where *values* (string[machine], null where absent) meets the constraint."""
    text = values.fill_null("")
    if constraint.operator == "=":
        return (text == constraint.value).to_numpy()
    if constraint.operator == "!=":
        return (text != constraint.value).to_numpy()
    number = text.cast(pl.Float64, strict=False).fill_null(0.0).to_numpy()
    bound = float(constraint.value)
    compare = {"<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal}
    return compare[constraint.operator](number, bound)
