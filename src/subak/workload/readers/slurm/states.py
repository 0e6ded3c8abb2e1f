"""Maps Slurm's job states (sacct's JOB STATE CODES) to outcomes."""
import polars as pl

from subak.workload.table import OUTCOMES

# Ended by the system at its limit, or by somebody: KILL, as it did not end by itself
STATES = {
    "COMPLETED": "FINISH", "FAILED": "FAIL", "OUT_OF_MEMORY": "FAIL", "LAUNCH_FAILED": "FAIL", "BOOT_FAIL": "LOST",
    "NODE_FAIL": "LOST", "CANCELLED": "KILL", "TIMEOUT": "KILL", "DEADLINE": "KILL", "REVOKED": "KILL",
    "PREEMPTED": "EVICT", "REQUEUED": "EVICT", "REQUEUE_FED": "EVICT", "REQUEUE_HOLD": "EVICT",
    "SPECIAL_EXIT": "EVICT", "RUNNING": "CENSORED", "SUSPENDED": "CENSORED", "COMPLETING": "CENSORED",
    "RESIZING": "CENSORED", "STAGE_OUT": "CENSORED", "SIGNALING": "CENSORED", "STOPPED": "CENSORED",
    "PENDING": "", "CONFIGURING": "", "RECONFIG_FAIL": "LOST", "RESV_DEL_HOLD": "",
}


def state_word(text: pl.Expr) -> pl.Expr:
    """Return the state of a field such as `CANCELLED by 1000`."""
    return text.str.extract(r"^([A-Z_]+)")


def is_no_state(text: pl.Expr) -> pl.Expr:
    """Return whether a field is given, and no state."""
    return text.is_not_null() & ~state_word(text).is_in(list(STATES)).fill_null(False)


def outcome_of(state: pl.Expr) -> pl.Expr:
    """Return the outcome of a state; null where it never ran, or is none that is known."""
    word = state.replace_strict(STATES, default=None, return_dtype=pl.String)
    return pl.when(word != "").then(word).cast(OUTCOMES)
