"""Records which tasks of a run with planned failures were given up, and why."""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.federation.megha.jobs import OUTCOME_FAILED, OUTCOME_FINISHED, OUTCOMES
from subak.federation.messages import HAS_FAILED, LOST_TOO_OFTEN, RAN_TOO_LONG, REASONS, STAGE_FAILED, WAITED_TOO_LONG
from subak.placement.claims import STATUSES, TASK_GIVEN_UP
from subak.simulator.engine.columns import coded, numbers
from subak.simulator.outcome import Outcome

STAGE_GIVEN_UP = REASONS[STAGE_FAILED]
TRIED_AGAIN = "its attempt failed or ran for too long, and it waits to be tried again"
STATUSES_USUAL = tuple(name for name in STATUSES if name != STATUSES[TASK_GIVEN_UP])  # without a plan of failures


def endings_of(outcome: Outcome) -> np.ndarray | None:
    """Return ENDING[task] of a run that had a plan of failures, None of any other."""
    if outcome.federated is None or outcome.simulation.cut.size == 0:
        return None
    return np.asarray(outcome.federated.roles.jobs.ending)


def possible_statuses(outcome: Outcome) -> tuple[str, ...]:
    """Return how tasks of a run may stand."""
    return STATUSES_USUAL if endings_of(outcome) is None else STATUSES


def ending_columns(outcome: Outcome) -> list[pl.Series]:
    """Return how each task ended, the exit code of its last attempt, and how many failed or ran too long."""
    ending = endings_of(outcome)
    if ending is None:
        return []
    has_code = np.isin(ending["outcome"], (OUTCOME_FINISHED, OUTCOME_FAILED))
    return [
        coded(ending["outcome"].astype(np.int64) - 1, OUTCOMES[1:], "outcome"),
        numbers("exit_code", ending["code"].astype(np.float64), has_code).cast(pl.Int16),
        pl.Series("attempts_failed", ending["failed"].astype(np.int32)),
    ]


class _End(NamedTuple):
    """What tells why a task was given up: its ENDING, its TERMS."""

    reason: float
    failed: float
    code: float
    wait_max: float
    run_max: float
    losses_max: float


def why_given_up(outcome: Outcome, tasks: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return int64[task], places in the reasons that are returned beside it, for *tasks* that were given up."""
    ending = endings_of(outcome)
    assert ending is not None and outcome.federated is not None
    of_ending = (ending[name][tasks].astype(np.float64) for name in ("reason", "failed", "code"))
    of_terms = (outcome.federated.roles.jobs.terms[name][tasks] for name in ("wait_max", "run_max", "losses_max"))
    distinct, place = np.unique(np.stack([*of_ending, *of_terms]), axis=1, return_inverse=True)
    return place.reshape(-1), [_why(_End(*each)) for each in distinct.T.tolist()]


def _why(end: _End) -> str:
    """Say why a task was given up."""
    last = "its attempt" if end.failed <= 1 else f"none of its {end.failed:g} attempts finished; the last"
    words = {
        HAS_FAILED: f"{last} failed with exit code {end.code:g}",
        RAN_TOO_LONG: f"{last} ran for longer than it may ({end.run_max:g} s)",
        WAITED_TOO_LONG: f"{REASONS[WAITED_TOO_LONG]} ({end.wait_max:g} s)",
        LOST_TOO_OFTEN: f"{REASONS[LOST_TOO_OFTEN]} ({end.losses_max:g} times)",
    }
    return words.get(int(end.reason), REASONS[int(end.reason)])
