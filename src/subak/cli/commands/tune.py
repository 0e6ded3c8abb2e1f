"""`subak tune`: searches for a scheduler's best parameters and tests them on other seeds."""
from pathlib import Path

import optuna
from rich.progress import BarColumn, TimeElapsedColumn

from subak.cli.progress import compiling_notice
from subak.experiment.inputs import inputs_of
from subak.experiment.tuning.question import Question
from subak.experiment.tuning.result import Tuned
from subak.experiment.tuning.study import best_of
from subak.experiment.tuning.tune import checked, open_folder, write_result
from subak.experiment.tuning.tune import tune as search_and_judge
from subak.output.writing import write_file
from subak.report import tuning
from subak.report.console import Console, TextColumn, bars, echo
from subak.report.number_text import number_text
from subak.reproduce.page import Section, page
from subak.threads import usable_cores


def tune(
    question: Question, files: list[Path], trials: int, processes: int | None, out: Path | None, overwrite: bool
) -> None:
    """Answer a question with *trials*, and show it; *files* are read, too."""
    inputs = inputs_of(question.scenario, *files)
    question, space = checked(question)
    if out is not None:
        open_folder(out, question, overwrite, inputs)
    notice = compiling_notice([question.scheduler])
    if notice:
        Console(stderr=True).print(notice, style="dim", soft_wrap=True)
    shown = bars(BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with shown:
        bar = shown.add_task("tuning", total=trials, state="")

        def on_trial(study: optuna.Study) -> None:
            done = len(study.trials)
            state = f"{done} of {trials} trials" + (
                f", best {question.minimise} {number_text(best_of(study).value or 0.0)}" if done else "")
            shown.update(bar, completed=done, state=state)

        tuned, study = search_and_judge(
            question, space, trials, processes or usable_cores(), out, on_trial,
            lambda: shown.update(bar, state="judging on the held-out seeds"))
    console = Console()
    for table in tuning.tables(tuned):
        console.print(table)
    for line in (tuning.verdict(tuned), *tuning.notes(tuned)):
        console.print(line, soft_wrap=True)
    if out is not None:
        write_result(out, question, space, tuned, study)
        write_file(out / "index.html", page_of(tuned))
        echo(f"Wrote {out}; open {out / 'index.html'}", err=True)


def page_of(tuned: Tuned) -> bytes:
    """Return the page."""
    sections = [Section(heading, table) for heading, table in tuning.page_tables(tuned).items()]
    return page(tuning.title(tuned), tuning.verdict(tuned), tuning.notes(tuned), sections)
