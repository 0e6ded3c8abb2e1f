"""Turns a simulation into a row of a table, and sets two beside each other."""
from subak.reproduce.lotes.measured import Run
from subak.reproduce.lotes.workload import HOUR_S


def row(name: str, run: Run) -> dict[str, object]:
    """Return what every table past the paper says of a scheduler."""
    return {"scheduler": name, "mean wait (s)": run.mean,
            "mean, by what tasks ask for (s)": run.weighted, "later intervals (s)": run.later,
            "99 % (s)": run.quantile["p99"], "over 1 h (share)": run.longer_than(HOUR_S),
            "waited (share)": float(run.tail[0]), "never started": run.unstarted, "tasks a second": run.rate}


def ratio(run: Run, plain: Run) -> float:
    """Return the mean wait time of one by that of another."""
    return run.mean / plain.mean if plain.mean > 0 else float("nan")
