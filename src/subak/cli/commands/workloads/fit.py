"""`subak fit`: fits the Google-like model to a workload and reports how well its laws fit."""
from pathlib import Path

from rich import box
from rich.table import Table

from subak.cli.commands.workloads.inspect_chart import check_chart_path, write_chart
from subak.errors import InputError
from subak.output.places import refuse_file
from subak.output.workplaces import is_folder
from subak.report.console import Console, Text, echo, waiting
from subak.report.number_text import NOTHING
from subak.workload.google_like.estimates import Estimate
from subak.workload.google_like.fit import SUBSAMPLE_NOTE, Censored, Fit
from subak.workload.google_like.fit import fit as fit_model
from subak.workload.google_like.goodness import Comparison, Numbers
from subak.workload.google_like.parameters import Parameters, read_parameters, write_parameters
from subak.workload.samples import sample_names, workload_folder
from subak.workload.table import Workload, read_workload


def fit(
    workload: str, out: Path | None, chart: Path | None, request_classes: int, censored: Censored, overwrite: bool,
) -> None:
    """Fit the model, write and draw what is asked for, and show it."""
    check_chart_path(chart)
    _check_out(out, overwrite)
    with waiting("Fitting"):
        found = fit_model(_read(workload), request_classes, censored)
    if out is not None:  # before anything is printed: who reads the output may go away
        write_parameters(found.parameters, out)
        echo(f"Wrote {out}", err=True)
    if chart is not None:
        _draw(found, chart)
        echo(f"Wrote {chart}", err=True)
    show(found, Console())


def _draw(found: Fit, chart: Path) -> None:
    from subak.report.charts.fit import fit_chart  # noqa: PLC0415  (slow to import, and most calls draw nothing)
    from subak.report.document import unchecked  # noqa: PLC0415  (as above)

    with unchecked(), waiting("Drawing"):
        write_chart(fit_chart(f"Fit of {found.parameters.name.removesuffix('-like')}", found.comparisons), chart)


def _read(text: str) -> Workload:
    folder = workload_folder(text)
    if not is_folder(folder):
        raise InputError(f"{folder}: no such folder, and not the name of a sample ({', '.join(sample_names())})")
    return read_workload(folder)


def _check_out(out: Path | None, overwrite: bool) -> None:
    if out is None:
        return
    if out.suffix != ".toml":
        raise InputError(f"--out: the file must end in .toml, not {out.name!r}")
    refuse_file(out)
    if not out.parent.is_dir():
        raise InputError(f"--out: no such folder as {out.parent}")
    if out.exists():
        _refuse_other(out)
        if not overwrite:
            raise InputError(f"{out}: exists already; choose another file or pass --overwrite")


def _refuse_other(out: Path) -> None:
    """Raise InputError unless a file holds parameters, or nothing."""
    try:
        if out.stat().st_size:
            read_parameters(out)
    except InputError:
        raise InputError(f"{out}: exists and holds no parameters; it is not replaced, choose another file") from None


def show(found: Fit, console: Console) -> None:
    """Print the tables of a fit, and what was assumed."""
    console.print(_estimates(found.estimates))
    for comparison in found.comparisons:
        console.print(comparison_table(comparison))
    console.print(_sizes(*found.job_sizes))
    console.print(_models(found.parameters))
    for note in (*found.notes, SUBSAMPLE_NOTE):
        console.print(Text(f"- {note}."), soft_wrap=True)


def _estimates(estimates: dict[str, Estimate]) -> Table:
    table = Table(title="Estimates, with 95 % confidence intervals", title_justify="left")
    table.add_column("parameter", no_wrap=True)
    for name in ("value", "from", "to"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, each in estimates.items():
        table.add_row(name, *map(_number, (each.value, each.low, each.high)))
    return table


def comparison_table(comparison: Comparison) -> Table:
    """Return data and laws in numbers, side by side, the nearest law first."""
    table = Table(title=f"{comparison.name[0].upper()}{comparison.name[1:]}: {comparison.count:,} above 0 (seconds)",
                  title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("law", no_wrap=True)
    for name in ("KS", "mean", "median", "90 %", "99 %", "most"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(Text("data", style="bold"), NOTHING, *_numbers(comparison.data))
    for law in comparison.laws:
        table.add_row(law.name, f"{law.distance:.4f}", *_numbers(law.numbers))
    return table


def _numbers(numbers: Numbers) -> list[str]:
    return [_number(value) if value is not None else "infinite" for value in
            (numbers.mean, numbers.median, numbers.p90, numbers.p99, numbers.most)]


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    if abs(value) >= 1e6 or 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _sizes(data: Numbers, model: Numbers | None) -> Table:
    table = Table("", "mean", "median", "90 %", "99 %", "most", title="Tasks per job", title_justify="left")
    table.add_row("data", *_numbers(data))
    if model is not None:
        table.add_row("model", *_numbers(model))
    return table


def _models(parameters: Parameters) -> Table:
    """Return the small models in words; what is off says so."""
    jobs, priorities, days, stages = parameters.jobs, parameters.priorities, parameters.diurnal, parameters.stages
    constraints, failures = parameters.constraints, parameters.failures
    table = Table(title="Written models", title_justify="left", show_header=False)
    table.add_row("jobs", "off" if jobs is None else f"{jobs.single:.1%} single; else 1 + a log-normal of mass "
                  f"{_number(jobs.mass)} and disparity {_number(jobs.disparity)}, at most {jobs.most:,}")
    table.add_row("requests", f"{len(parameters.requests)} joint classes")
    table.add_row("priorities", "continuous" if priorities is None else
                  f"{len(priorities.tasks)} levels of tasks, {len(priorities.services)} of services")
    table.add_row("constraints", "off" if constraints is None else
                  f"{constraints.rate:.1%} of stages, {len(constraints.choices)} distinct")
    table.add_row("queues", f"{parameters.queues.users:,} users in {parameters.queues.departments:,} departments, "
                  f"Zipf exponent {parameters.queues.exponent:.3g}")
    table.add_row("day", "off" if days is None else f"amplitude {days.amplitude:.1%}, phase {days.phase:,.0f} s")
    table.add_row("stages", "off" if stages is None else f"{stages.share:.1%} of jobs, up to {stages.most}")
    table.add_row("failures", "off" if failures is None else f"fail {failures.fail:.2%}, kill {failures.kill:.2%}")
    return table
