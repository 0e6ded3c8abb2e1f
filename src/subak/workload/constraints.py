"""Evaluates placement constraints over a fleet: one truth value per machine."""
import numpy as np
import polars as pl

from subak.workload.predicates import Constraint

CONSTRAINT_TYPE = pl.Struct({"attribute": pl.String, "operator": pl.String, "value": pl.String})


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
