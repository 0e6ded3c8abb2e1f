"""Holds what is planned to fail: how attempts end early, and what users do then.

What is planned depends on the task alone, not on where and when it runs, so that schedulers can be compared on it.
"""
from typing import NamedTuple

import numpy as np

NEVER = np.inf
ALWAYS = 2**15 - 1  # attempts: more than anybody tries
KILLED = -1  # in place of an exit code: its user kills the attempt, and the task is CANCELLED


class Planned(NamedTuple):
    """What befalls tasks; arrays are empty where all finish."""

    fails: np.ndarray  # int16[task], attempts that fail, counted from its first
    after: np.ndarray  # float64[task], seconds of running after which these fail; NEVER: they do not end by themselves
    code: np.ndarray  # int16[task], the exit code of these; or KILLED
    cancel_at: np.ndarray  # float64[task], seconds: when its user cancels it; NEVER


def nothing_planned() -> Planned:
    """Return that every task finishes."""
    return Planned(np.zeros(0, np.int16), np.zeros(0), np.zeros(0, np.int16), np.zeros(0))
