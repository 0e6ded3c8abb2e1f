"""`subak size`: finds the fewest machines, of a kind or a mix, that meet all objectives."""
from pathlib import Path

import msgspec
from rich.progress import BarColumn, SpinnerColumn

from subak.cli.ending import CommandEndedError
from subak.cli.progress import compiling_notice
from subak.experiment.folder import write_scenario
from subak.experiment.inputs import inputs_of
from subak.experiment.scenario import Scenario
from subak.experiment.sizing.answer import Sizing
from subak.experiment.sizing.candidates import Candidate, Kind, Question, load_question
from subak.experiment.sizing.size import settled
from subak.experiment.sizing.size import size as answered
from subak.experiment.sizing.trials import trying
from subak.output.places import refuse_folder
from subak.output.writing import new_folder
from subak.policy_files import is_users
from subak.quantities import Amount
from subak.report.console import Console, bars, echo
from subak.report.sizing.beside_log import replay
from subak.report.sizing.terminal import sizing_text
from subak.report.sizing.words import headline, size_table, with_units
from subak.report.tables.export import as_csv
from subak.threads import usable_cores
from subak.workload.table import Workload

MARKER = "size.json"  # only a folder with it is ever replaced
NOT_ENOUGH = 1  # exit code: no size that was tried keeps all objectives

Kinds = list[tuple[dict[str, Amount], float | None]]  # capacity and price of each


def size(
    scenario: Scenario, machines: tuple[Kinds, list[Path]], files: list[Path],
    tries: tuple[bool, int | None, int | None], place: tuple[Path | None, bool],
) -> None:
    """Answer for *machines*, which are kinds and files with mixes, and show it; *files* are read, too.

    *tries* are whether nobody asked for seeds, the largest size and the runs at once, *place* the folder to keep and
    whether it may be replaced.
    """
    (kinds, mixes), (usual_seeds, limit, processes), (out, overwrite) = machines, tries, place
    inputs = inputs_of(scenario, *files, *mixes)
    if out is not None:
        refuse_folder(out, MARKER, overwrite, inputs)
    question = Question(scenario, [Kind(capacity, price) for capacity, price in kinds], [str(path) for path in mixes],
                        usual_seeds)
    loaded = load_question(question)
    question = settled(question, *loaded)
    at_once = processes or usable_cores()
    if out is None:
        _shown(_answered(question, loaded, limit, at_once))
        return
    with new_folder(out, MARKER, overwrite, inputs) as folder:
        found = _answered(question, loaded, limit, at_once)
        _shown(found)
        _write(folder, out, question, loaded[1], found)
    echo(f"Wrote {out}; open {out / 'report.html'}", err=True)


def _shown(found: Sizing) -> None:
    """Show the answers, and end the command where no size is enough; then nothing is kept."""
    Console().print(sizing_text(found))
    command = replay(found)
    if command:
        echo(f"Replay: {command}")
    if found.best is None:
        raise CommandEndedError(NOT_ENOUGH)


def _answered(question: Question, loaded: tuple[Workload, list[Candidate]], limit: int | None, at_once: int) -> Sizing:
    scenario = question.scenario
    notice = compiling_notice(scenario.schedulers)
    if notice:
        Console(stderr=True).print(notice, style="dim", soft_wrap=True)
    alone = at_once == 1 and not is_users(scenario.schedulers[0])  # a policy may loop for ever, or die
    with bars(SpinnerColumn(), BarColumn()) as shown, trying(question, loaded, at_once, alone) as submit:
        bar = shown.add_task("", total=len(scenario.seeds))
        return answered(question, loaded, limit, submit, lambda said, done, total: shown.update(
            bar, description=said, completed=done, total=total))


def _write(folder: Path, out: Path, question: Question, candidates: list[Candidate], found: Sizing) -> None:
    """Write the answer as numbers, tables and a page, and the fleet and scenario of the best one."""
    from subak.report.document import unchecked  # noqa: PLC0415  (the charts' library takes a while to load)
    from subak.report.sizing.page import sizing_page  # noqa: PLC0415

    said = "" if found.best is None else headline(found, found.answers[found.best])
    numbers = {"answer": said, **msgspec.to_builtins(found)}
    (folder / MARKER).write_bytes(msgspec.json.format(msgspec.json.encode(numbers), indent=1))
    for number, answer in enumerate(found.answers, start=1):
        name = "sizes.csv" if len(found.answers) == 1 else f"sizes-{number}.csv"
        table = with_units(size_table(found, answer), found)
        (folder / name).write_text(as_csv(table), encoding="utf-8", errors="backslashreplace")
    with unchecked():
        (folder / "report.html").write_bytes(sizing_page(found))
    count = None if found.best is None else found.answers[found.best].buy
    if found.best is None or count is None:
        return
    (folder / "fleet").mkdir()
    candidates[found.best].machines(count).write(folder / "fleet")
    scenario = msgspec.structs.replace(
        question.scenario, fleet=str(out.absolute() / "fleet"), fleet_digest="", machines=0, capacity={}, scale=1.0,
        remove=[], add_machines=[])
    write_scenario(folder, scenario, scenario.schedulers[0], scenario.seeds)
