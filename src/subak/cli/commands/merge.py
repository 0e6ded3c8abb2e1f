"""`subak merge`: joins the records of shards into one folder, with the study's table and page."""
from pathlib import Path

from subak.errors import InputError, RunError
from subak.experiment.study.plan import PLAN, Plan, read_plan, write_plan
from subak.experiment.study.records import drop_record, is_done, packed, read_record, read_records, write_record
from subak.output.places import refuse_folder
from subak.output.workplaces import clear
from subak.report.console import Console, echo, waiting
from subak.report.document import unchecked
from subak.report.number_text import count_text, counted
from subak.report.study.page import PAGE, best_table, write_study_page
from subak.report.study.results import results_of
from subak.report.study.table import write_run_table
from subak.report.terminal import words_table

MISSING_NAMED = 3


def merge(folders: list[Path], out: Path, overwrite: bool) -> None:
    """Write into *out* what the folders hold of one study; what it holds itself counts, too, but for *overwrite*.

    Raises InputError where the folders are of several studies.
    """
    plan = read_plan(folders[0])
    other = next((folder for folder in folders if read_plan(folder) != plan), None)
    if other is not None:
        raise InputError(f"{other}: is another study than {folders[0]}, has other inputs, or another version of Subak")
    clear(out)
    refuse_folder(out, PLAN, True, [folder for folder in folders if folder.resolve() != out.resolve()])
    write_plan(out, plan)
    for digest in plan.digests():
        there = None if overwrite else read_record(out, digest)
        for folder in folders:
            found = read_record(folder, digest)
            if found is not None and not is_done(there) and (is_done(found) or there is None):
                write_record(out, digest, packed(found))
                there = found
        if there is None:
            drop_record(out, digest)
    finish(out, plan)


def finish(out: Path, plan: Plan) -> None:
    """Write table and page of what the folder of a study holds, and show the best points.

    Raises RunError, when all is written, where a run is missing or has failed.
    """
    records = read_records(out, plan.digests())
    write_run_table(out, plan, records)
    with unchecked(), waiting("Drawing the page"):
        write_study_page(out, plan, records)
    results = results_of(plan, records)
    table = best_table(results)
    if table.rows:
        Console().print(words_table(table))
    echo(f"Wrote {out}; open {out / PAGE}", err=True)
    lacking = [row for row in plan.rows if not is_done(records.get(row.digest))]
    if lacking:
        named = "; ".join(f"{plan.name_of(row)}: {records[row.digest].error if row.digest in records else 'not run'}"
                          for row in lacking[:MISSING_NAMED])
        more = f"; and {count_text(len(lacking) - MISSING_NAMED)} more" if len(lacking) > MISSING_NAMED else ""
        raise RunError(f"{count_text(len(lacking))} of {counted(len(plan.rows), 'run')} have no result: {named}{more}")
