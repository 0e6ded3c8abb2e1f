"""`subak compare`: many schedulers and seeds on one workload, in parallel processes."""
import os
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.options import (
    DEFAULT_WORKLOAD,
    FOREVER,
    OUTPUT,
    CapacityOption,
    CheckPolicyOption,
    DelayOption,
    FaultsOption,
    FederationOption,
    FleetOption,
    GlobalMastersOption,
    HeartbeatOption,
    IntervalOption,
    LocalMastersOption,
    LotesOption,
    MachinesOption,
    OverwriteOption,
    PlacementOption,
    PreemptionOption,
    QueuesOption,
    ReclaimsOption,
    RequestErrorOption,
    ScenarioOption,
    SearchMovesOption,
    SearchSecondsOption,
    ServiceScaleOption,
    ShareOption,
    SlowStartOption,
    UntilOption,
    UpdatesOption,
    WorkloadOption,
    federation_from,
    parse_seeds,
    scenario_from,
    split_names,
)
from subak.cli.progress import RunBars
from subak.errors import RunError
from subak.experiment.parallel import jobs_of, run_all
from subak.experiment.run import inputs_of, load_inputs, refuse_unfit
from subak.experiment.scenario import Scenario
from subak.measures.runs import load_runs
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.placement.mapreduce.search import SearchSettings
from subak.policy import find_scheduler
from subak.report.console import Console, echo, waiting
from subak.report.terminal import comparison_table
from subak.tables import write_toml

DEFAULT_SCHEDULERS = "first-fit,first-fit+backfill,best-fit+backfill,greedy,tetris"
PROCESSES_MAX = 4096
MARKER = "comparison.toml"  # only a folder with it is ever replaced


def compare(
    workload: WorkloadOption = DEFAULT_WORKLOAD,
    schedulers: Annotated[str | None, typer.Option(
        metavar="NAME,NAME,...", help="Names from `subak schedulers`, with options behind plus signs, or FILE.py:NAME "
                                      f"for policies of your own [default: {DEFAULT_SCHEDULERS.replace(',', ', ')}].",
        show_default=False)] = None,
    seeds: Annotated[str | None, typer.Option(
        metavar="1,2,5-8", help="Each scheduler runs once with each seed [default: 1].",
        show_default=False)] = None,
    fleet: FleetOption = None,
    machines: MachinesOption = 0,
    capacity: CapacityOption = None,
    interval: IntervalOption = None,
    until: UntilOption = FOREVER,
    slow_start: SlowStartOption = 1.0,
    search_seconds: SearchSecondsOption = 1.0,
    search_moves: SearchMovesOption = None,
    scenario: ScenarioOption = None,
    federation: FederationOption = None,
    global_masters: GlobalMastersOption = None,
    local_masters: LocalMastersOption = None,
    heartbeat: HeartbeatOption = None,
    delay: DelayOption = None,
    service_scale: ServiceScaleOption = None,
    updates: UpdatesOption = None,
    placement: PlacementOption = None,
    preemption: PreemptionOption = None,
    share: ShareOption = None,
    faults: FaultsOption = None,
    queues: QueuesOption = None,
    reclaims_per_hour: ReclaimsOption = 0.0,
    lotes: LotesOption = None,
    request_error: RequestErrorOption = 0.0,
    check_policy: CheckPolicyOption = False,
    processes: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=PROCESSES_MAX, help="How many runs at once [default: one a core].",
        show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the runs and report.html in this folder [default: only show the table].",
        show_default=False, rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare schedulers on one workload: a table here, and with --out a page with charts.

    Without arguments it compares five on the shipped slice of Google's 2011 trace.

    - `subak compare --out R` also writes R/report.html and a folder for each run.
    - `subak compare W --schedulers first-fit,tetris --seeds 1-3 --out R` runs each three times.
    - `subak compare W --schedulers first-fit,my_policy.py:mine` adds a policy of your own.
    - `subak compare W --schedulers central,megha,sparrow --delay 0.001` compares federations.

    A run that fails leaves the others as they are; the exit code is then 2.
    """
    settings = federation_from(federation, share, global_masters=global_masters, local_masters=local_masters,
                               heartbeat=heartbeat, delay=delay, service_scale=service_scale, updates=updates,
                               placement=placement, preemption=preemption)
    given = scenario_from(scenario, workload, None if schedulers is None else split_names(schedulers),
                          split_names(DEFAULT_SCHEDULERS), None if seeds is None else parse_seeds(seeds), fleet,
                          machines, capacity, interval, until, settings, faults, queues, reclaims_per_hour, lotes,
                          request_error, slow_start, SearchSettings(search_seconds, search_moves), check_policy)
    inputs = inputs_of(given, scenario, federation, lotes)
    if out is not None:
        refuse_folder(out, MARKER, overwrite, inputs)
    labels = [job.label for job in jobs_of(given)]
    found = [find_scheduler(name, given.check_policy) for name in given.schedulers]
    loaded = load_inputs(given)
    refuse_unfit(given, found, loaded)
    tasks = len(loaded[0].tasks)
    del loaded  # every run reads them for itself
    at_once = processes or len(os.sched_getaffinity(0))
    if out is None:
        with scratch_folder() as folder:
            errors = _run(given, labels, folder, at_once, tasks)
            table = comparison_table(load_runs(folder))
    else:
        with new_folder(out, MARKER, overwrite, inputs) as folder:
            errors = _run(given, labels, folder, at_once, tasks)
        _write_page(out)  # the runs are safe by now
        table = comparison_table(load_runs(out))
    Console().print(table)
    if out is not None:
        echo(f"Wrote {out}; open {out / 'report.html'}", err=True)
    if errors:
        raise RunError("; ".join(errors.values()))


def _write_page(folder: Path) -> None:
    from subak.report.page import write_report  # noqa: PLC0415  (the charts' library takes a while to load)

    with waiting("Drawing the page"):
        write_report(folder)


def _run(given: Scenario, labels: list[str], folder: Path, processes: int, tasks: int) -> dict[str, str]:
    """Do the runs and write what was compared; return the errors of those that failed."""
    (folder / "runs").mkdir()
    write_toml({"workload": given.workload, "runs": labels}, folder / MARKER)
    with RunBars(labels, tasks, given.schedulers) as bars:
        return run_all(given, folder / "runs", processes, bars.show)
