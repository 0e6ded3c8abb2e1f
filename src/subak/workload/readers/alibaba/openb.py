"""openb, Alibaba's GPU cluster of 2023 (cluster-trace-gpu-v2023): a list of pods and, beside it, a list of nodes.

- A pod is a job of one task. It asks for num_gpu times gpu_milli: 1 GPU of 460 milli is 0.46 GPUs.
- A node's GPUs are one pool: that a part must come from one GPU, and whole GPUs from unbroken ones, is not modelled.
- gpu_spec names the GPU models that a pod may run on. One, X, is the constraint gpu_model = X. Several, X|Y, are the
  constraint "gpu_model of X|Y" = yes, an attribute that the nodes of either model have.
- A pod runs from scheduled_time to deletion_time. One that was never scheduled has no run time, and is dropped.
- A pod that still ran when it was deleted did not end by itself: it is a SERVICE; at the last instant of the list, one
  whose end is unknown.
"""
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.resources import AMOUNT_MAX, Resource
from subak.tables import ColumnType, Provenance
from subak.workload.readers.conversion import Account, Conversion, Reader, account_of, kept_load, notes
from subak.workload.readers.files.stream import (
    Advance,
    Block,
    blocks,
    csv_rows,
    parts,
    refuse_lines,
    refuse_missing,
    refuse_negative,
)
from subak.workload.readers.options import Options
from subak.workload.readers.rows import NEVER_STARTED, OUTSIDE, ZERO_REQUEST, workload_of_rows
from subak.workload.readers.rulings import KEPT, Ruling, ruling, with_ruling
from subak.workload.table import OUTCOMES

MILLI = 1e-3
RESOURCES = (Resource("cpu", MILLI, "cores"), Resource("memory", 1.0, "MiB"), Resource("gpu", MILLI, "GPUs"))
ORIGIN = "Alibaba Cluster Trace Program, cluster-trace-gpu-v2023 (openb); Weng et al., USENIX ATC 2023"
LICENCE = "no licence stated"
PODS, NODES = "openb_pod_list", "openb_node_list"
GPU_MODEL = "gpu_model"
# Larger is more important: who is evicted last in Kubernetes, with Alibaba's latency-sensitive before burstable
PRIORITIES = {"BE": 0, "Burstable": 1, "LS": 2, "Guaranteed": 3}
OUTCOME_NAMES = {"Succeeded": "FINISH", "Failed": "FAIL", "Running": "KILL"}

POD_COLUMNS: dict[str, ColumnType] = {
    "name": pl.String, "cpu_milli": pl.Float64, "memory_mib": pl.Float64, "num_gpu": pl.Int64, "gpu_milli": pl.Float64,
    "gpu_spec": pl.String, "qos": pl.String, "pod_phase": pl.String, "creation_time": pl.Float64,
    "deletion_time": pl.Float64, "scheduled_time": pl.Float64,
}
NODE_COLUMNS: dict[str, ColumnType] = {
    "sn": pl.String, "cpu_milli": pl.Float64, "memory_mib": pl.Float64, "gpu": pl.Int64, "model": pl.String,
}


class Files(NamedTuple):
    """The list of pods, and the list of nodes if there is one."""

    pods: Path
    nodes: Path | None


def files(source: Path) -> list[Path]:
    """Return the one list of pods and the list of nodes beside it. Raises InputError unless there is one of pods."""
    return [path for path in _files(source) if path is not None]


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read pods and nodes. Raises InputError naming the file and the line of the first mistake."""
    paths = _files(source)
    tables = [_checked_pods(*each) for each in _rows(paths.pods, POD_COLUMNS, advance)]
    pods = _with_rulings(pl.concat(tables), options)
    all_kept, loads = kept_load(pods, paths.pods, "pods", RESOURCES, options)
    kept = all_kept.sort("creation_time", maintain_order=True)
    nodes = None if paths.nodes is None else _nodes(paths.nodes, advance)
    accounts: tuple[Account, ...] = (account_of("pods", pods),)
    if nodes is not None:
        accounts += (account_of("nodes", nodes),)
    remarks = _remarks(pods, kept, nodes)
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance(paths.pods.name.split(".")[0], f"file {paths.pods.name}: {ORIGIN}", LICENCE,
                            notes(accounts, remarks, chosen))
    rows, constraints = _row_table(kept, pods)
    workload = workload_of_rows(rows, RESOURCES, provenance, constraints)
    fleet = None if nodes is None else _fleet(nodes.filter(ruling=KEPT), kept, provenance)
    return Conversion(workload, fleet, accounts, remarks, loads=loads)


READER = Reader("pods and nodes of Alibaba's GPU cluster of 2023: a folder with one openb_pod_list*.csv, or that file; "
                "openb_node_list*.csv beside it is the fleet", files, read,
                frozenset({"arrival_min", "arrival_end", "max_lost"}))


# Rows


def _files(source: Path) -> Files:
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    beside = parts(source if source.is_dir() else source.parent)
    pods = [source] if source.is_file() else [path for path in beside if path.name.startswith(PODS)]
    if len(pods) != 1:
        raise InputError(f"{source}: needs one file {PODS}*.csv, plain, gz or xz; it has {len(pods)}"
                         + (", name one of them" if pods else ""))
    nodes = [path for path in beside if path.name.startswith(NODES)]
    whole = [path for path in nodes if path.name.startswith(f"{NODES}_all")]
    return Files(pods[0], next(iter([*whole, *nodes]), None))


def _rows(path: Path, columns: dict[str, ColumnType], advance: Advance) -> Iterator[tuple[pl.DataFrame, Block]]:
    """Yield the rows below the header, block by block."""
    empty = True
    for block in blocks(path, advance):
        rest = block
        if block.line == 1:
            head, _, text = block.text.partition(b"\n")
            if head.decode(errors="replace").split(",") != list(columns):
                raise InputError(f"{path}, line 1: must be the header {','.join(columns)}")
            rest = Block(path, 2, text)
        if rest.text:
            empty = False
            yield csv_rows(rest, columns), rest
    if empty:
        raise InputError(f"{path}: has no rows")


def _checked_pods(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    amounts = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    refuse_missing(table, block, "name", *amounts, "qos", "pod_phase", "creation_time")
    refuse_negative(table, block, *amounts, "creation_time", "deletion_time", "scheduled_time")
    refuse_lines(table, pl.col("gpu_milli") > 1000, block, "gpu_milli must be at most 1000", "gpu_milli")
    refuse_lines(table, ~pl.col("qos").is_in(list(PRIORITIES)), block, f"qos must be one of {', '.join(PRIORITIES)}",
                 "qos")
    refuse_lines(table, ~pl.col("pod_phase").is_in([*OUTCOME_NAMES, "Pending"]), block,
                 f"pod_phase must be one of {', '.join(OUTCOME_NAMES)}, Pending", "pod_phase")
    refuse_lines(table, pl.col("gpu_spec").str.contains(r"^\||\|\||\|$"), block,
                 "gpu_spec must be names of GPU models with | between them", "gpu_spec")
    _refuse_amounts(table, block, ("cpu_milli", "memory_mib", "num_gpu"))
    models = pl.col("gpu_spec").str.split("|").list.unique().list.sort()
    return table.with_columns(models=models, gpu=pl.col("num_gpu") * pl.col("gpu_milli") * MILLI)


def _refuse_amounts(table: pl.DataFrame, block: Block, names: tuple[str, ...]) -> None:
    for name in names:
        most = AMOUNT_MAX * MILLI if name in ("num_gpu", "gpu") else AMOUNT_MAX
        refuse_lines(table, pl.col(name) > most, block, f"{name} must be at most {most:.10g}", name)


def _with_rulings(pods: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add `ruling`, why a pod is kept or dropped; the first rule that holds counts."""
    created, scheduled, deleted = (pl.col(f"{name}_time") for name in ("creation", "scheduled", "deletion"))
    nothing = (pl.col("cpu_milli") == 0) & (pl.col("memory_mib") == 0) & (pl.col("gpu") == 0)
    timed = pods.with_columns(run_time=deleted - scheduled, cpu=pl.col("cpu_milli") * MILLI, memory="memory_mib")
    return with_ruling(timed, [
        Ruling(~pl.col("name").is_first_distinct(), "pod seen before", load=False),
        Ruling(scheduled.is_null(), NEVER_STARTED, load=False),
        Ruling(deleted.is_null(), "deletion time unknown"),
        Ruling(deleted < scheduled, "deleted before it was scheduled"),
        Ruling(nothing, ZERO_REQUEST, load=False),
        Ruling((created < options.arrival_min) | (created >= options.arrival_end), OUTSIDE, load=False),
    ])


def _nodes(path: Path, advance: Advance) -> pl.DataFrame:
    nodes = pl.concat([_checked_nodes(*each) for each in _rows(path, NODE_COLUMNS, advance)])
    return nodes.with_columns(ruling=ruling([(~pl.col("sn").is_first_distinct(), "node seen before")]))


def _checked_nodes(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    refuse_missing(table, block, "sn", "cpu_milli", "memory_mib", "gpu")
    refuse_negative(table, block, "cpu_milli", "memory_mib", "gpu")
    _refuse_amounts(table, block, ("cpu_milli", "memory_mib", "gpu"))
    return table


def _remarks(pods: pl.DataFrame, kept: pl.DataFrame, nodes: pl.DataFrame | None) -> dict[str, int | float | str]:
    part = (pl.col("gpu") > 0) & (pl.col("gpu_milli") < 1000)
    running = kept.filter(pod_phase="Running")
    counts = {
        "pods that ask for GPUs": kept.filter(pl.col("gpu") > 0).height,
        "pods that ask for a part of a GPU (a node's GPUs are one pool)": kept.filter(part).height,
        "pods whose num_gpu and gpu_milli disagree on whether they need GPUs (they get none)": kept.filter(
            (pl.col("num_gpu") > 0) != (pl.col("gpu_milli") > 0)).height,
        "pods that name GPU models": kept["models"].drop_nulls().len(),
        "pods that name several GPU models": kept.filter(pl.col("models").list.len() > 1).height,
        "pods that still ran when they were deleted": len(running),
        "pods that waited before they were scheduled": kept.filter(
            pl.col("scheduled_time") > pl.col("creation_time")).height,
        "pods with run time 0": kept.filter(pl.col("scheduled_time") == pl.col("deletion_time")).height,
    }
    fleet: dict[str, int | float | str] = {} if nodes is not None else {
        "fleet": f"none written: there is no {NODES}*.csv beside the pods"}
    return {name: count for name, count in counts.items() if count} | fleet


# Tables


def _row_table(kept: pl.DataFrame, pods: pl.DataFrame) -> tuple[pl.DataFrame, list[list[dict[str, str]]]]:
    """Return ROW_COLUMNS and the sets of constraints."""
    end = pods["deletion_time"].max()
    running = pl.col("pod_phase") == "Running"
    censored = running & (pl.col("deletion_time") == end)
    named = pl.col("pod_phase").replace_strict(OUTCOME_NAMES, default=None, return_dtype=pl.String)
    sets = kept["models"].drop_nulls().unique(maintain_order=True).to_list()
    places = {"|".join(models): place for place, models in enumerate(sets)}
    rows = kept.select(
        job="name", arrival="creation_time", run_time=pl.col("deletion_time") - pl.col("scheduled_time"),
        kind=pl.when(running).then(pl.lit("SERVICE")).otherwise(pl.lit("TASK")),
        priority=pl.col("qos").replace_strict(PRIORITIES, return_dtype=pl.Int32),
        outcome=pl.when(censored).then(pl.lit("CENSORED")).otherwise(named).cast(OUTCOMES),
        recorded_start=pl.max_horizontal("creation_time", "scheduled_time"),
        constraint_set=pl.col("models").list.join("|").replace_strict(places, default=None, return_dtype=pl.Int64),
        cpu=pl.col("cpu_milli") * MILLI, memory="memory_mib", gpu="gpu")
    return rows, [[_constraint(models)] for models in sets]


def _constraint(models: list[str]) -> dict[str, str]:
    """Return the constraint to nodes of any of the *models*."""
    if len(models) == 1:
        return {"attribute": GPU_MODEL, "operator": "=", "value": models[0]}
    return {"attribute": _alternatives(models), "operator": "=", "value": "yes"}


def _alternatives(models: list[str]) -> str:
    return f"{GPU_MODEL} of {'|'.join(models)}"


def _fleet(nodes: pl.DataFrame, kept: pl.DataFrame, provenance: Provenance) -> Fleet:
    machines = nodes.select(machine="sn", cluster=pl.lit("0"), cpu=pl.col("cpu_milli") * MILLI, memory="memory_mib",
                            gpu=pl.col("gpu").cast(pl.Float64))
    of_nodes = nodes.with_row_index("machine").drop_nulls("model").select("machine", "model")
    attributes = [of_nodes.select("machine", attribute=pl.lit(GPU_MODEL), value="model")]
    sets = kept.filter(pl.col("models").list.len() > 1)["models"].unique(maintain_order=True)
    for models in sets.to_list():
        able = of_nodes.filter(pl.col("model").is_in(models))
        attributes.append(able.select("machine", attribute=pl.lit(_alternatives(models)), value=pl.lit("yes")))
    return make_fleet(machines, RESOURCES, pl.concat(attributes).sort("machine", "attribute"), provenance=provenance)
