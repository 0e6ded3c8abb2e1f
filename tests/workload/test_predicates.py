"""A predicate on one machine is what it is on a whole fleet."""
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from subak.workload.constraints import satisfied
from subak.workload.predicates import OPERATORS, Constraint, is_met

texts = st.one_of(st.sampled_from(["", "a", "7", "7.0", "-1", "1e3", " 7", "7 ", "1_0", "inf", "nan", ".5", "5."]),
                  st.floats(-10, 10).map(str), st.integers(-10, 10).map(str), st.text("0123456789.eE+-_ a", max_size=5))


@given(st.sampled_from(OPERATORS), st.integers(-10, 10).map(str), st.none() | texts)
def test_one_machine_and_a_fleet_agree(operator, value, text):
    constraint = Constraint("x", operator, value)
    attributes = {} if text is None else {"x": text}
    assert is_met(constraint, attributes) == satisfied(constraint, pl.Series([text], dtype=pl.String))[0]
