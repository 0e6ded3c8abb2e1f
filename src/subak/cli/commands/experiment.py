"""`subak experiment`: runs the missing points of a study and writes its table and page."""
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from subak.cli.commands.merge import finish
from subak.cli.progress import compiling_notice
from subak.errors import InputError
from subak.experiment.inputs import inputs_of
from subak.experiment.study.document import Study
from subak.experiment.study.on_ray import done_on_ray, ray_module
from subak.experiment.study.plan import PLAN, Plan, Work, planned, write_plan
from subak.experiment.study.points import points_of
from subak.experiment.study.records import is_done, read_record, write_record
from subak.experiment.study.runs import done_here
from subak.experiment.study.shards import ALL, shard_of
from subak.output.places import refuse_folder
from subak.output.workplaces import clear
from subak.report.console import bars, echo
from subak.report.number_text import count_text, counted
from subak.report.study.columns import columns_of, refuse_measures
from subak.threads import usable_cores


def experiment(
    study: Study, files: list[Path], out: Path | None, processes: int | None, shard: tuple[int, int], on: str | None,
    dry_run: bool, overwrite: bool,
) -> None:
    """Do what is not in the folder *out* of a study, or of a shard of it; *overwrite*: all; *files* are read, too."""
    read = [path for point in points_of(study) for path in inputs_of(point.scenario)]
    if out is not None:
        clear(out)
        refuse_folder(out, PLAN, True, dict.fromkeys([*files, *read]))
    if on is not None:
        ray_module()  # not only when all has been checked
    plan, work = planned(study)
    refuse_measures(plan.measures, columns_of(list(plan.resources), plan.objectives))
    mine = shard_of(work, shard)
    todo = mine if out is None or overwrite else {
        digest: each for digest, each in mine.items() if not is_done(read_record(out, digest))}
    at_once = processes or usable_cores()
    echo(_said(plan, mine, todo, shard, at_once, on), err=True)
    if dry_run or out is None:
        return
    write_plan(out, plan)
    _run(out, todo, done_on_ray(todo, on) if on else done_here(todo, at_once))
    if shard == ALL:
        finish(out, plan)
        return
    errors = {digest: record.error for digest in mine if (record := read_record(out, digest)) and record.error}
    echo(f"Wrote {out}; `subak merge` joins it with the other shards", err=True)
    if errors:
        raise InputError("; ".join(dict.fromkeys(errors.values())))


def _said(plan: Plan, mine: dict[str, Work], todo: dict[str, Work], shard: tuple[int, int], at_once: int,
          on: str | None) -> str:
    """Say what there is to do; how long it takes is said when runs have ended, for nothing else tells it."""
    seeds = len({row.seed for row in plan.rows})
    counts = {**{f"values of {axis.title}": len(axis.names) for axis in plan.axes},
              "schedulers": len(plan.schedulers), "seeds": seeds}
    parts = ", ".join(f"{count} {what}" for what, count in counts.items() if count > 1)
    said = counted(len(plan.digests()), "run") + (f" ({parts})" if parts else "")
    if shard != ALL:
        said += f", of which shard {shard[0]}/{shard[1]} has {count_text(len(mine))}"
    if len(todo) < len(mine):
        said += f"; {count_text(len(mine) - len(todo))} are there"
    return said + (f", {at_once} at once" if todo and not on else "")


def _run(out: Path, todo: dict[str, Work], done: Generator[tuple[str, bytes], None, None]) -> None:
    """Write each record as it comes."""
    if not todo:
        return
    notice = compiling_notice(list(dict.fromkeys(work.scenario.schedulers[0] for work in todo.values())))
    if notice:
        echo(notice, err=True)
    with bars(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as shown, closing(done):
        bar = shown.add_task("Runs", total=len(todo))
        for digest, content in done:
            write_record(out, digest, content)
            shown.advance(bar)
