"""`subak simulate`: one scheduler on one workload."""
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
    scenario_from,
)
from subak.cli.progress import RunBars
from subak.errors import InputError
from subak.experiment.parallel import run_apart
from subak.experiment.run import inputs_of, load_inputs, refuse_unfit, run_label, simulate_into
from subak.measures.runs import load_runs
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.placement.mapreduce.search import SearchSettings
from subak.policy import find_scheduler, policy_file
from subak.report.console import Console, echo
from subak.report.terminal import run_panel

DEFAULT_SCHEDULER = "first-fit"


def simulate(
    workload: WorkloadOption = DEFAULT_WORKLOAD,
    scheduler: Annotated[str | None, typer.Option(
        metavar="NAME", help="A name from `subak schedulers`, with options behind plus signs, or FILE.py:NAME for a "
                             f"policy of your own [default: {DEFAULT_SCHEDULER}].", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(
        metavar="N", min=0, help="Of the run's random numbers; the same seed gives the same bytes [default: 1].",
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
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the run in this folder [default: only show it].", show_default=False,
        rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Simulate one scheduler on one workload and show how it did.

    Without arguments it runs first-fit on the shipped slice of Google's 2011 trace.

    - `subak simulate W --scheduler best-fit+backfill --out R` keeps the run; `subak report R` draws it.
    - `subak simulate W --machines 500 --capacity slot=1` brings its own machines.
    - `subak simulate W --scheduler megha --global-masters 3 --heartbeat 5` simulates a federation.
    - `subak simulate --scenario R/scenario.toml --out R2` repeats a run to the byte.
    """
    settings = federation_from(federation, share, global_masters=global_masters, local_masters=local_masters,
                               heartbeat=heartbeat, delay=delay, service_scale=service_scale, updates=updates,
                               placement=placement, preemption=preemption)
    given = scenario_from(scenario, workload, None if scheduler is None else [scheduler], [DEFAULT_SCHEDULER],
                          None if seed is None else [seed], fleet, machines, capacity, interval, until,
                          settings, faults, queues, reclaims_per_hour, lotes, request_error, slow_start,
                          SearchSettings(search_seconds, search_moves), check_policy)
    if len(given.schedulers) > 1 or len(given.seeds) > 1:
        raise InputError("scenario: `subak simulate` takes one scheduler and one seed; `subak compare` takes several")
    if out is not None:
        refuse_folder(out, "summary.json", overwrite, inputs_of(given, scenario, federation, lotes))
    name = given.schedulers[0]
    found = find_scheduler(name, given.check_policy)
    inputs = load_inputs(given)
    refuse_unfit(given, [found], inputs)
    label = run_label(name, given.seeds[0], given.seeds)
    with _scratch() if out is None else nullcontext(out) as folder:
        with RunBars([label], len(inputs[0].tasks), given.schedulers) as bars:
            if policy_file(name) is None:
                bars.begin(label)
                simulate_into(folder, given, name, given.seeds[0], inputs,
                              lambda progress: bars.advance(label, progress), overwrite)
            else:  # a policy of somebody's may loop for ever, or die, and take this process with it
                with new_folder(folder, "summary.json", overwrite) as partial:
                    run_apart(given, partial, bars.show)
        Console().print(run_panel(load_runs(folder)[0]))
    echo(f"Wrote {out}" if out is not None else "Nothing was kept; give --out FOLDER to keep the run.", err=True)


@contextmanager
def _scratch() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder / "run"
