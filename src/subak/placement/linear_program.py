"""Solves linear programs that grow by columns, with HiGHS.

HiGHS runs in a thread beside the caller's, which waits in Python and so hears Ctrl-C and SIGTERM; HiGHS asks after each
iteration whether it is to stop, and what was heard goes on to the caller when it has.
"""
import threading
from typing import NamedTuple

import highspy
import numpy as np

from subak.errors import RunError

TOLERANCE = 1e-9  # of both, in programs whose numbers are near 1; HiGHS takes 1e-10 at least
OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off",
    "primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE,
}
PRIMAL = 4  # HiGHS's number for the primal simplex method
UNLIMITED = (1 << 31) - 1  # iterations


class Solution(NamedTuple):
    """An optimal vertex, or where the iterations allowed ended."""

    objective: float
    column: np.ndarray  # float64[column]
    price: np.ndarray  # float64[row], what the objective gains by a unit more of the row's bound
    feasible: bool  # whether the columns' values fit the rows, as an optimum's do
    iterations: int  # that it took


class Work:
    """How much may still be spent."""

    def __init__(self, left: float) -> None:
        self.left = left

    def spend(self, amount: float) -> bool:
        """Spend *amount*, if so much is left; return whether it was."""
        if amount <= self.left:
            self.left -= amount
            return True
        return False


class Program:
    """Maximise; columns are 0 or more. Rows are made first, columns added at any time."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray, primal: bool = False) -> None:
        """Make the rows, *lower* <= row <= *upper*; *primal*: after columns were added it goes on from the last vertex.

        That is quicker where an optimum is one of many, and ends at another of them.
        """
        self.solver = highspy.Highs()
        for option, value in OPTIONS.items():
            self.solver.setOptionValue(option, value)
        self.primal, self.solved = primal, False
        nothing = np.empty(0, np.int32)
        self.solver.addRows(lower.size, lower.astype(np.float64), upper.astype(np.float64), 0,
                            np.zeros(lower.size, np.int32), nothing, np.empty(0))

    def add(self, gain: np.ndarray, row: np.ndarray, entries: np.ndarray) -> None:
        """Add columns that gain *gain* (float[column]) each, with *entries* (float[entry, column]) but those of 0.

        Each is in its *row* (int[entry, column]).
        """
        column, entry = np.nonzero(entries.T)
        self.add_sparse(gain, np.searchsorted(column, np.arange(gain.size)), row[entry, column], entries[entry, column])

    def add_sparse(self, gain: np.ndarray, starts: np.ndarray, row: np.ndarray, entries: np.ndarray) -> None:
        """Add columns that gain *gain* (float[column]) each; *entries* (float[entry]) are in *row* (int[entry]).

        Those of a column begin at its *starts* (int[column]).
        """
        self.solver.addCols(gain.size, -gain.astype(np.float64), np.zeros(gain.size),
                            np.full(gain.size, highspy.kHighsInf), row.size, starts.astype(np.int32),
                            row.astype(np.int32), entries)

    def solve(self, iterations_max: int = UNLIMITED) -> Solution:
        """Return an optimal vertex, or where *iterations_max* ended.

        Raises RunError when HiGHS finds neither, which the callers' programs exclude but for numbers far apart.
        """
        self.solver.setOptionValue("simplex_iteration_limit", min(iterations_max, UNLIMITED))
        if self.primal and self.solved:
            self.solver.setOptionValue("simplex_strategy", PRIMAL)
        _run(self.solver)
        self.solved = True
        status = self.solver.getModelStatus()
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kIterationLimit):
            raise RunError(f"linear program: HiGHS found no optimum ({self.solver.modelStatusToString(status)})")
        found, info = self.solver.getSolution(), self.solver.getInfo()
        return Solution(-info.objective_function_value, np.array(found.col_value), -np.array(found.row_dual),
                        info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible,
                        info.simplex_iteration_count)


def _run(solver: highspy.Highs) -> None:
    """Run *solver*; an exception that a signal raises meanwhile stops it, and is raised when it has stopped."""
    stop, ended = threading.Event(), threading.Event()

    def ask(_kind: object, _text: str, _said: object, answer: highspy.cb.HighsCallbackInput, _data: object) -> None:
        answer.user_interrupt = stop.is_set()

    def work() -> None:
        try:
            solver.run()
        finally:
            ended.set()

    solver.setCallback(ask, None)
    solver.startCallback(highspy.cb.HighsCallbackType.kCallbackSimplexInterrupt)
    threading.Thread(target=work, daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        stop.set()
        ended.wait()
        raise
    finally:
        solver.setCallback(None, None)
