"""Measures what Slurm calls a job: tasks that start together count once, each other task by itself.

An element of an array is a job of Slurm's, and so are all nodes of a job; our jobs are whole arrays, our tasks single
nodes. The wait of tasks that start together is from the instant the last of them is ready to the instant all of them
have started; a scheduler that starts them apart is measured by the last one.
"""
import numpy as np
import polars as pl


def slurm_waits(tasks: pl.DataFrame, gangs: np.ndarray, wait: str) -> pl.Series:
    """Return the wait of each Slurm job, seconds; null where one of its tasks has none in the column *wait*.

    *tasks* have the columns stage and ready, too, which are read only where *gangs*, bool[stage], has any.
    """
    if not gangs.any():
        return tasks[wait]
    together = pl.Series(gangs).gather(tasks["stage"])
    known, after = pl.col(wait).is_not_null().all(), pl.col("ready").max() - pl.col("ready")
    once = tasks.filter(together).group_by("stage", maintain_order=True).agg(
        pl.when(known).then((pl.col(wait) - after).max()).alias(wait))
    return pl.concat([tasks.filter(~together)[wait], once[wait]])
