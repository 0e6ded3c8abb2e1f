"""`subak compare`: runs many schedulers and seeds on one workload, one run per core at a time."""
from pathlib import Path

from subak.cli.progress import RunBars
from subak.errors import RunError
from subak.experiment.inputs import inputs_of, load_inputs, refuse_unfit, settle_resample
from subak.experiment.parallel import jobs_of, run_all
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures.run_folders import COMPARISON, load_runs
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.policy import find_scheduler
from subak.report.console import Console, echo, waiting
from subak.report.terminal import comparison_table
from subak.threads import usable_cores
from subak.toml_files import write_toml
from subak.workload.table import Workload

MARKER = COMPARISON  # only a folder with it is ever replaced


def compare(scenario: Scenario, files: list[Path], processes: int | None, out: Path | None, overwrite: bool) -> None:
    """Do the runs of a scenario, as many at once as *processes* says, and show them; *files* are read, too."""
    inputs = inputs_of(scenario, *files)
    if out is not None:
        refuse_folder(out, MARKER, overwrite, inputs)
    scenario, loaded = _settled(scenario)
    labels = [job.label for job in jobs_of(scenario)]
    at_once = processes or usable_cores()
    if out is None:
        with scratch_folder() as folder:
            errors = _run(scenario, loaded, labels, folder, at_once)
            table = comparison_table(load_runs(folder))
    else:
        with new_folder(out, MARKER, overwrite, inputs) as folder:
            errors = _run(scenario, loaded, labels, folder, at_once)
        _write_page(out)  # the runs are safe by now
        table = comparison_table(load_runs(out))
    Console().print(table)
    if out is not None:
        echo(f"Wrote {out}; open {out / 'report.html'}", err=True)
    if errors:
        raise RunError("; ".join(errors.values()))


def _settled(scenario: Scenario) -> tuple[Scenario, tuple[Workload, Fleet]]:
    """Return how seeds change the workload, and the inputs, which runs on threads share.

    Raises InputError where no run could begin.
    """
    jobs_of(scenario)
    found = [find_scheduler(name, scenario.check_policy, scenario.parameters) for name in scenario.schedulers]
    loaded = load_inputs(scenario)
    refuse_unfit(scenario, found, loaded)
    return settle_resample(scenario, loaded[0]), loaded


def _write_page(folder: Path) -> None:
    from subak.report.document import unchecked  # noqa: PLC0415  (the charts' library takes a while to load)
    from subak.report.page import write_report  # noqa: PLC0415

    with unchecked(), waiting("Drawing the page"):
        write_report(folder)


def _run(
    scenario: Scenario, loaded: tuple[Workload, Fleet], labels: list[str], folder: Path, at_once: int
) -> dict[str, str]:
    """Do the runs and write what was compared; return the errors of those that failed."""
    (folder / "runs").mkdir()
    write_toml({"workload": scenario.workload, "runs": labels}, folder / MARKER)
    with RunBars(labels, len(loaded[0].tasks), scenario.schedulers) as bars:
        return run_all(scenario, loaded, folder / "runs", at_once, bars.show)
