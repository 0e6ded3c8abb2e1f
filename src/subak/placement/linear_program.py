"""A linear program that grows by columns: the one place that speaks to HiGHS."""
from typing import NamedTuple

import highspy
import numpy as np

from subak.errors import RunError

TOLERANCE = 1e-9  # of both, in programs whose numbers are near 1; HiGHS takes 1e-10 at least
OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off",
    "primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE,
}


class Solution(NamedTuple):
    """An optimal vertex."""

    objective: float
    column: np.ndarray  # float64[column]
    price: np.ndarray  # float64[row], what the objective gains by a unit more of the row's bound


class Program:
    """Maximise; columns are 0 or more. Rows are made first, columns added at any time."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Make the rows, *lower* <= row <= *upper*."""
        self.solver = highspy.Highs()
        for option, value in OPTIONS.items():
            self.solver.setOptionValue(option, value)
        nothing = np.empty(0, np.int32)
        self.solver.addRows(lower.size, lower.astype(np.float64), upper.astype(np.float64), 0,
                            np.zeros(lower.size, np.int32), nothing, np.empty(0))

    def add(self, gain: np.ndarray, entries: np.ndarray) -> None:
        """Add columns that gain *gain* (float[column]) each, with *entries* (float[row, column])."""
        by_column = np.ascontiguousarray(entries.T, dtype=np.float64)
        column, row = np.nonzero(by_column)
        self.add_sparse(gain, np.searchsorted(column, np.arange(gain.size)), row, by_column[column, row])

    def add_sparse(self, gain: np.ndarray, starts: np.ndarray, row: np.ndarray, entries: np.ndarray) -> None:
        """Add columns that gain *gain* (float[column]) each; *entries* (float[entry]) are in *row* (int[entry]).

        Those of a column begin at its *starts* (int[column]).
        """
        self.solver.addCols(gain.size, -gain.astype(np.float64), np.zeros(gain.size),
                            np.full(gain.size, highspy.kHighsInf), row.size, starts.astype(np.int32),
                            row.astype(np.int32), entries)

    def solve(self) -> Solution:
        """Return an optimal vertex. Raises RunError when there is none, which the callers' programs exclude."""
        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RunError(f"linear program: HiGHS found no optimum ({self.solver.modelStatusToString(status)})")
        found = self.solver.getSolution()
        return Solution(-self.solver.getInfo().objective_function_value, np.array(found.col_value),
                        -np.array(found.row_dual))
