"""Reads what Slurm's jobs ask for and hold: TRES, or the older columns.

TRES (cpu=4,mem=16G,node=1,gres/gpu=2) are of the whole job. Without them, CPUs are those of AllocCPUS, NCPUS or
ReqCPUS; ReqMem is of each node where it ends with n (4Gn), of each CPU where it ends with c (2Gc), else of the job;
ReqGRES and AllocGRES (gpu:2, gpu:volta:2) are of each node.
"""
import polars as pl

from subak.workload.readers.files.faults import Faults
from subak.workload.readers.files.times import number
from subak.workload.readers.options import Amounts
from subak.workload.readers.started import limit

ALLOCATED = ("AllocTRES", "AllocCPUS", "AllocGRES", "AllocNodes")
REQUESTED = ("ReqTRES", "ReqCPUS", "ReqGRES", "ReqNodes")
CPUS = ("AllocTRES", "ReqTRES", "AllocCPUS", "NCPUS", "ReqCPUS")  # one of them must be there
COLUMNS = (*ALLOCATED, *REQUESTED, "ReqMem", "NNodes", "NCPUS", "NTasks")
MEMORY, TYPED_GPUS = r"(?:^|,)mem=([0-9.]+)([A-Za-z]*)", r"gres/gpu:[^=,]+=(\d+)"
OLD_MEMORY, GRES = r"^([0-9.]+)([KMGTP]?)B?([nc]?)$", r"^(?:gres[/:])?gpu(?::[^:,()]+)*?:(\d+)(?:\([^)]*\))?"
LETTERS = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}  # MiB
NAMES = ("cpu", "memory", "gpu", "node")


def held(texts: pl.DataFrame, faults: Faults, amounts: Amounts) -> pl.DataFrame:
    """Return `count`, and what each of so many tasks asks for (cpu, memory, gpu), as was *amounts*, else the other.

    Beside them `asks`, whether anything is said; `allocated`, whether it is what the job held; `more`, whether it held
    more than it asked for; `others`, the names of TRES that are not modelled. Faults are noted.
    """
    told = texts.select(
        "line", *CPUS[:2], "ReqMem",
        **{f"{name} {side}": value for side, found in (("a", _side(*ALLOCATED)), ("r", _side(*REQUESTED)))
           for name, value in found.items()},
        **{name: limit(number(pl.col(column))) for name, column in (("nodes", "NNodes"), ("tasks", "NTasks"),
                                                                    ("ncpus", "NCPUS"))})
    _note(texts, told, faults)
    first, second = ("a", "r") if amounts == "allocated" else ("r", "a")
    nodes = _positive(pl.col("nodes"), pl.col(f"node {first}"), pl.col(f"node {second}"))
    several = pl.coalesce(nodes, pl.lit(1.0))
    cpu = pl.coalesce(f"cpu {first}", "ncpus", f"cpu {second}")
    both = told.with_columns(several=several).with_columns(
        cpu=cpu, memory=_memory(first, second), gpu=_gpus(first, second))
    count = pl.coalesce(nodes, _positive(pl.col("tasks")), pl.lit(1.0))
    tres = pl.coalesce(*(CPUS[:2] if first == "a" else CPUS[1::-1]))
    return both.select(
        *((pl.col(name).fill_null(0.0) / count).alias(name) for name in NAMES[:3]),
        count=count.cast(pl.Int64, strict=False), asks=pl.any_horizontal(pl.col(*NAMES[:3]).is_not_null()),
        others=_unmodelled(tres), allocated=pl.col("cpu a").is_not_null(),
        more=pl.col("cpu r").is_not_null() & pl.any_horizontal(  # else nobody says what it asked for
            pl.col(f"{name} a") > pl.col(f"{name} r").fill_null(0.0) for name in ("cpu", "gpu")).fill_null(False))


def _side(tres: str, cpus: str, gres: str, nodes: str) -> dict[str, pl.Expr]:
    """Return what was requested, or allocated: an amount by name, of the whole job; null where nothing is said."""
    text = pl.col(tres)
    letter = text.str.extract(MEMORY, 2).replace_strict(LETTERS, default=None, return_dtype=pl.Float64)
    every = text.str.extract_all(TYPED_GPUS)
    typed = every.list.eval(pl.element().str.extract(TYPED_GPUS).cast(pl.Float64)).list.sum()
    return {
        "cpu": pl.coalesce(_of(text, "cpu"), number(pl.col(cpus))), "memory": text.str.extract(MEMORY, 1).cast(
            pl.Float64, strict=False) * letter,
        "gpu": pl.coalesce(_of(text, "gres/gpu"), pl.when(every.list.len() > 0).then(typed)),
        "gres": pl.col(gres).str.extract(GRES, 1).cast(pl.Float64, strict=False),
        "node": pl.coalesce(_of(text, "node"), number(pl.col(nodes)))}


def _memory(first: str, second: str) -> pl.Expr:
    """Return MiB of the whole job; a request of 0 is for all of the node, so that what it held counts."""
    whole = pl.col("ReqMem").str.extract(OLD_MEMORY, 1).cast(pl.Float64, strict=False) * pl.col("ReqMem").str.extract(
        OLD_MEMORY, 2).replace_strict(LETTERS, default=None, return_dtype=pl.Float64)
    of = pl.col("ReqMem").str.extract(OLD_MEMORY, 3)
    cpus = pl.coalesce("ncpus", "cpu a", "cpu r", pl.lit(1.0))
    old = whole * pl.when(of == "n").then(pl.col("several")).when(of == "c").then(cpus).otherwise(pl.lit(1.0))
    return pl.coalesce(_positive(pl.col(f"memory {first}"), pl.col(f"memory {second}"), old),
                       pl.col(f"memory {first}"), pl.col(f"memory {second}"), old)


def _gpus(first: str, second: str) -> pl.Expr:
    of_nodes = [pl.col(f"gres {side}") * pl.col("several") for side in (first, second)]
    return pl.coalesce(f"gpu {first}", of_nodes[0], pl.when(pl.col(f"cpu {first}").is_null()).then(f"gpu {second}"),
                       of_nodes[1])


def _note(texts: pl.DataFrame, told: pl.DataFrame, faults: Faults) -> None:
    """Note the rows in which an amount, or a number, is none."""
    for name in ("NNodes", "NTasks", "NCPUS", "AllocCPUS", "ReqCPUS", "AllocNodes", "ReqNodes"):
        value = number(pl.col(name))
        bad = pl.col(name).is_not_null() & (value.is_null() | (value != value.round()) | ~value.is_between(0, 2**32))
        faults.add(texts, bad, f"{name} must be a whole number, 0 or more", name)
    both = pl.concat([texts.select(CPUS[0], CPUS[1], "ReqMem"), told.drop("line", CPUS[0], CPUS[1], "ReqMem")],
                     how="horizontal")
    for side, name in (("a", "AllocTRES"), ("r", "ReqTRES")):
        text = pl.col(name)
        wrong = text.str.contains(r"(?:^|,)mem=") & pl.col(f"memory {side}").is_null()
        wrong |= text.str.contains(r"(?:^|,)cpu=") & _of(text, "cpu").is_null()
        wrong |= text.str.contains(r"(?:^|,)gres/gpu[:=]") & pl.col(f"gpu {side}").is_null()
        faults.add(both, wrong | ~text.str.contains("="), f"{name} must be as cpu=4,mem=16G,node=1,gres/gpu=2", name)
    faults.add(texts, ~pl.col("ReqMem").str.contains(OLD_MEMORY), "ReqMem must be as 16G, 4Gn or 2Gc", "ReqMem")


def _positive(*values: pl.Expr) -> pl.Expr:
    """Return the first that is above 0."""
    return pl.coalesce(*(pl.when(value > 0).then(value) for value in values))


def _unmodelled(tres: pl.Expr) -> pl.Expr:
    """Return the names of those that are not modelled, as a list."""
    modelled = r"^(cpu|mem|node|billing|gres/gpu(:.*)?)=$"
    every = tres.str.extract_all(r"[^,=]+=")
    return every.list.eval(pl.element().filter(~pl.element().str.contains(modelled)).str.strip_suffix("="))


def _of(tres: pl.Expr, name: str) -> pl.Expr:
    """Return the number that stands behind a name of TRES."""
    return tres.str.extract(rf"(?:^|,){name}=([0-9.]+)(?:,|$)").cast(pl.Float64, strict=False)
