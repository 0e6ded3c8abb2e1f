"""Parses dependencies in Alibaba's task names: R3_1_2 is task 3, which waits for 1 and 2.

Only the numbers count, not the letters (Alibaba, trace_2018.md, 2.3). A name whose first part has no number, such as
task_Nzg3, waits for nothing. A number that two tasks of a job have means both.
"""
import polars as pl

OPAQUE = "task_"  # how the names of tasks outside a DAG begin


def dependencies(stages: pl.DataFrame) -> tuple[pl.Series, dict[str, int]]:
    """Return list[stage] of the stages that each waits for, and remarks, from *stages*' columns job and name.

    Left out, and counted, is what cannot be waited for: absent tasks, the task itself, cycles.
    """
    parts = pl.col("name").str.split("_")
    named = stages.select("job", "name").with_row_index("stage").with_columns(
        number=parts.list.first().str.extract(r"^[A-Za-z]+(\d+)$").cast(pl.Int64, strict=False))
    numbered = named.filter(pl.col("number").is_not_null())
    asked = (
        numbered.with_columns(part=parts.list.slice(1)).explode("part").drop_nulls("part")
        .with_columns(wanted=pl.col("part").cast(pl.Int64, strict=False))
    )
    wanted = asked.drop_nulls("wanted").unique(["stage", "wanted"], maintain_order=True)
    strangers = wanted.filter(pl.col("wanted") != pl.col("number"))
    numbers = numbered.select("job", wanted="number", parent="stage")
    found = strangers.join(numbers, on=["job", "wanted"], how="left", maintain_order="left_right")
    edges, cyclic = _acyclic(found.drop_nulls("parent").select("stage", "parent"))
    remarks = {
        "dependencies": len(edges),
        "dependencies that a name gives twice (once counts)": asked["wanted"].count() - len(wanted),
        "dependencies on a task that is not there or not kept (left out)": found["parent"].null_count(),
        "dependencies of a task on itself (left out)": len(wanted) - len(strangers),
        "dependencies in or between cycles (left out)": cyclic,
        "tasks outside a DAG (task_...)": named.filter(pl.col("name").str.starts_with(OPAQUE)).height,
        "tasks whose name gives no number (they wait for nothing)": named.filter(
            pl.col("number").is_null() & ~pl.col("name").str.starts_with(OPAQUE)).height,
        "parts of names that are no number (ignored)": len(asked) - len(asked.drop_nulls("wanted")),
    }
    return _lists(edges, len(stages)), remarks


def _acyclic(edges: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the edges without those that remain when what waits for nothing, or nothing waits for, is peeled off."""
    core = edges
    while not core.is_empty():
        inner = (core.join(core.select(parent="stage"), on="parent", how="semi")
                 .join(core.select(stage="parent"), on="stage", how="semi"))
        if len(inner) == len(core):
            break
        core = inner
    return edges.join(core, on=["stage", "parent"], how="anti", maintain_order="left"), len(core)


def _lists(edges: pl.DataFrame, count: int) -> pl.Series:
    """Return list[stage] of its parents, in order."""
    lists = edges.sort("stage", "parent").group_by("stage", maintain_order=True).agg("parent")
    rows = pl.DataFrame({"stage": pl.int_range(count, eager=True, dtype=pl.UInt32)})
    filled = rows.join(lists, on="stage", how="left", maintain_order="left")
    return filled["parent"].fill_null([]).alias("depends_on")
