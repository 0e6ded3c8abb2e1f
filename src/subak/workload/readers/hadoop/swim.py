"""SWIM: Facebook's samples, one job a line: job, submit, gap, map input, shuffle and output bytes (no times of tasks).

A line may go on with the paths of input and output, as in SWIM's samples `..._withInputPaths_...`: which job reads
what another has read or written. They are counted, and say nothing of where data lies, which is not modelled.

How many tasks a job has, and how long they run, is modelled; the trace does not say it. With the parameters of `Model`:

- maps = ceil(input / block_bytes), at least 1; reduces = ceil(shuffle / reduce_bytes), at most reduces_max, and none
  without shuffle bytes. The reduces wait for all maps.
- The tasks of a stage share its bytes equally. A map reads input and writes the shuffle, or the output if there is no
  reduce; a reduce reads the shuffle and writes the output.
- A task runs for floor_seconds + (bytes read + bytes written) / (its stage's bytes per second).
- The copy of the maps' output to a reduce, its *shuffle*, takes shuffle / reduces / copy_bytes_per_second. `--shuffle`
  leaves it out, puts it into the column `shuffle` of the stages, or adds it to each reduce's run time.

Every task asks for one slot, or, with `--slots separate`, a map for one map_slot and a reduce for one reduce_slot. A
real job has stragglers, skewed shuffles and reduces that start before the last map ends: none of that is modelled.
"""
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.mapreduce_tables import NAMES, SLOT, SLOTS, AlikeJobs, alike_stages
from subak.workload.readers.conversion import Conversion, Reader, account_of, kept_of, notes, refuse_too_many
from subak.workload.readers.files.stream import (
    Advance,
    Block,
    blocks,
    fields,
    refuse_lines,
    refuse_negative,
    single_file,
)
from subak.workload.readers.load import Load, load_of
from subak.workload.readers.options import Model, Options
from subak.workload.readers.rulings import KEPT, ruling
from subak.workload.table import TIME_MAX_S, make_workload

NUMBERS = ("submit", "gap", "input", "shuffle", "output")  # seconds, seconds, bytes, bytes, bytes
BYTES_MAX = 2.0**63
PATHS_MAX = 2  # of input and output; WorkloadSynthesis.pl writes those it knows, and a tab for each
ORIGIN = "SWIM, samples of Facebook's workloads, by UC Berkeley; Chen, Ganapathi, Griffith, Katz (MASCOTS 2011)"
LICENCE = "New BSD"
RULES = {
    "maps": "ceil(input / block_bytes), at least 1",
    "reduces": "ceil(shuffle / reduce_bytes), at most reduces_max; none without shuffle bytes",
    "map seconds": "floor_seconds + (input + shuffle, or output without reduces) / maps / map_bytes_per_second",
    "reduce seconds": "floor_seconds + (shuffle + output) / reduces / reduce_bytes_per_second",
    "shuffle seconds": "shuffle / reduces / copy_bytes_per_second, where they count",
}


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a SWIM file, plain or compressed. Raises InputError naming the line of the first mistake."""
    single_file(source)
    model = _model(options.model)
    tables = [_jobs(fields(block), block) for block in blocks(source, advance)]
    if not tables or not sum(map(len, tables)):
        raise InputError(f"{source}: has no jobs")
    ruled = _with_rulings(pl.concat(tables), options)
    kept = kept_of(ruled, source, "jobs").sort("submit", maintain_order=True)
    jobs = _alike(kept, model, options)
    accounts, remarks = (account_of("jobs", ruled),), _remarks(ruled, kept, jobs)
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "shuffle": options.shuffle,
              "slots": options.slots}
    said = notes(accounts, remarks, chosen) | {"model": RULES, "parameters": msgspec.structs.asdict(model)}
    provenance = Provenance(source.name.split(".")[0], f"file {source.name}: {ORIGIN}", LICENCE, said)
    resources = SLOTS if options.slots == "separate" else SLOT
    workload = make_workload(_job_table(kept), *alike_stages(jobs, resources), resources, provenance)
    return Conversion(workload, None, accounts, remarks, loads=_loads(jobs, resources))


READER = Reader("a file of SWIM, one job a line: job, submit, gap (seconds), map input, shuffle and output bytes, "
                "and maybe paths; tasks and run times are modelled",
                single_file, read, frozenset({"arrival_min", "arrival_end", "model", "shuffle", "slots"}))


def _model(parameters: dict[str, float]) -> Model:
    for name in parameters:
        if name not in Model.__struct_fields__:
            raise InputError(f"--model: must name one of {', '.join(Model.__struct_fields__)}, not {name!r}")
    return Model(**parameters)


def _jobs(lines: pl.DataFrame, block: Block) -> pl.DataFrame:
    """Return line, job, the NUMBERS of checked lines, and how many paths follow them."""
    count = len(NUMBERS) + 1
    words = pl.col("fields").list
    counted = lines.with_columns(count=words.len())
    between = pl.col("count").is_between(count, count + PATHS_MAX)
    refuse_lines(counted, ~between, block, f"needs {count} fields, and at most {PATHS_MAX} paths", "count")
    _refuse_paths(lines, block, count)
    texts = lines.select("line", *(words.get(place).alias(name) for place, name in enumerate(("job", *NUMBERS))))
    numbers = texts.with_columns(pl.col(*NUMBERS).cast(pl.Float64, strict=False), paths=counted["count"] - count)
    for name in NUMBERS:
        bad = texts.with_columns(bad=numbers[name].is_null())
        refuse_lines(bad, pl.col("bad"), block, f"{name} must be a finite number, 0 or more", name)
    refuse_negative(numbers, block, *NUMBERS)
    for name in NUMBERS:
        most = TIME_MAX_S if name in ("submit", "gap") else BYTES_MAX
        refuse_lines(numbers, pl.col(name) > most, block, f"{name} must be at most {most:g}", name)
    return numbers


def _refuse_paths(lines: pl.DataFrame, block: Block, place: int) -> None:
    """Refuse a number where a path may stand: it is of another format."""
    texts = lines.select("line", path=pl.col("fields").list.slice(place)).explode("path")
    number = pl.col("path").cast(pl.Float64, strict=False).is_not_null()
    refuse_lines(texts, number, block, f"after {place} fields there may be paths", "path")


def _with_rulings(jobs: pl.DataFrame, options: Options) -> pl.DataFrame:
    submit = pl.col("submit")
    return jobs.with_columns(ruling=ruling([
        (~pl.col("job").is_first_distinct(), "job seen before"),
        ((submit < options.arrival_min) | (submit >= options.arrival_end), "arrived outside the slice"),
    ]))


def _alike(kept: pl.DataFrame, model: Model, options: Options) -> AlikeJobs:
    """Return the jobs as the model has them; raises InputError when they would be too many tasks."""
    counted = kept.with_columns(
        maps=pl.max_horizontal((pl.col("input") / model.block_bytes).ceil(), pl.lit(1.0)),
        reduces=pl.min_horizontal((pl.col("shuffle") / model.reduce_bytes).ceil(), pl.lit(model.reduces_max)),
    )
    total = counted.select(pl.sum("maps", "reduces")).sum_horizontal().item()
    refuse_too_many(total, "--model", ", a larger block_bytes makes fewer")
    shared = pl.max_horizontal("reduces", pl.lit(1.0))
    written = pl.when(pl.col("reduces") > 0).then("shuffle").otherwise("output")
    copy = pl.col("shuffle") / shared / model.copy_bytes_per_second
    added = copy if options.shuffle == "task" else pl.lit(0.0)
    seconds = counted.select(
        map=_seconds((pl.col("input") + written) / pl.col("maps"), model.map_bytes_per_second, model),
        reduce=_seconds((pl.col("shuffle") + pl.col("output")) / shared, model.reduce_bytes_per_second, model) + added)
    return AlikeJobs(
        counted["submit"].to_numpy(), counted.select("maps", "reduces").to_numpy().astype(np.int64),
        seconds.to_numpy(), counted.select(copy)[:, 0].to_numpy() if options.shuffle == "stage" else None)


def _loads(jobs: AlikeJobs, resources: tuple[Resource, ...]) -> tuple[Load, ...]:
    """Return the load of the modelled tasks; a job is dropped only where another of its name is kept, or by a slice."""
    rows = [pl.DataFrame({"run_time": jobs.seconds[:, kind], "count": jobs.tasks[:, kind]}).with_columns(
        *(pl.lit(float(each.name in ("slot", f"{NAMES[kind]}_slot"))).alias(each.name) for each in resources),
        ruling=pl.lit(KEPT), lost=pl.lit(False)) for kind in range(len(NAMES))]
    return load_of(pl.concat(rows), resources)


def _seconds(share: pl.Expr, bytes_per_second: float, model: Model) -> pl.Expr:
    return model.floor_seconds + share / bytes_per_second


def _remarks(jobs: pl.DataFrame, kept: pl.DataFrame, alike: AlikeJobs) -> dict[str, int | float | str]:
    nothing = pl.all_horizontal(pl.col(name) == 0 for name in ("input", "shuffle", "output"))
    maps, reduces = alike.tasks.sum(axis=0).tolist()
    counts = {
        "maps (modelled)": maps,
        "reduces (modelled)": reduces,
        "jobs without a reduce": kept.filter(shuffle=0.0).height,
        "jobs that read no input (one map)": kept.filter(input=0.0).height,
        "jobs without any bytes (one map of the floor's length)": kept.filter(nothing).height,
        "jobs with paths of their data (where data lies is not modelled)": kept.filter(pl.col("paths") > 0).height,
        "modelled tasks of more than an hour": int(alike.tasks[alike.seconds > 3600].sum()),
        "gaps that differ from the submit times (the submit times count)": jobs.filter(
            pl.col("submit").diff() != pl.col("gap")).height,
    }
    return {"run times and numbers of tasks": "modelled, see --model; the trace has bytes only",
            **{name: count for name, count in counts.items() if count},
            "fleet": "none written: the trace has no machines"}


def _job_table(kept: pl.DataFrame) -> pl.DataFrame:
    return kept.select("job", queue=pl.lit("all"), user=pl.lit("unknown"))
