"""Lists the commands of `subak` with the function of each; a command is loaded when it is called."""
from typing import Any

import typer

from subak.cli.listed import LOOK, Listed, ListedGroup
from subak.version import VERSION

LIVE = "A live federation"
# What Typer raises for a command line it does not understand; of its family, it exports only BadParameter.
UsageError: Any = typer.BadParameter.__base__


def _listed(name: str, where: str, summary: str) -> Listed:
    return Listed(name, summary, f"subak.cli.{where}:{name.replace('-', '_')}")


def _live(name: str, where: str, summary: str, settings: dict[str, Any] | None = None) -> Listed:
    return _listed(name, f"live.{where}", summary)._replace(panel=LIVE, settings=settings)


COMMANDS = (
    _listed("simulate", "usage.simulate", "Simulate one scheduler on one workload and show how it did."),
    _listed("compare", "usage.compare",
            "Compare schedulers on one workload: a table here, and with --out a page with charts."),
    _listed("experiment", "usage.experiment",
            "Run a study: settings as lists, every combination of them once, in a table and on a page."),
    _listed("merge", "usage.merge", "Join the shards of a study into one folder, with its table and its page."),
    _listed("size", "usage.size",
            "Find the fewest machines, or the cheapest kind of them, with which all objectives hold."),
    _listed("tune", "usage.tune", "Tune a scheduler's parameters on some seeds, and judge what was found on others."),
    _listed("report", "commands.report",
            "Write one self-contained HTML page with the charts and tables of a run or a comparison."),
    _listed("explain", "live.shared",
            "Say why a task stands as it stands, in a live federation or when a run ends; or, with `lotes`, what LoTES "
            "plans."),
    _listed("convert", "usage.convert",
            "Convert a trace, or a cluster's own log, into a workload folder, and account for every row that was "
            "read."),
    _listed("inspect", "usage.inspect",
            "Describe a workload or a fleet: counts, spans, quantiles, requested against capacity over time, largest "
            "jobs."),
    _listed("generate", "usage.generate",
            "Generate a workload like Google's of 2011 (Da Costa, Grange, De Courchelle, 2016), or like a fitted "
            "trace."),
    _listed("generate-mapreduce", "usage.generate_mapreduce",
            "Generate a batch of MapReduce jobs on machines of different speeds (HMHS: Chen, Shen, Chen, Guo; section "
            "4.1)."),
    _listed("fit", "usage.fit",
            "Fit the Google-like model to a workload: parameters with 95 % intervals, and how near five laws come."),
    _listed("schedulers", "commands.schedulers",
            "List the schedulers, the options that may follow their names, and the settings of federations."),
    _listed("fair", "usage.fair",
            "Share a cluster out among queues, in every fair order, and show what each queue gets."),
    _listed("queues", "live.shared",
            "Show the tree of queues: weights, limits, guarantees, and what runs, waits or is asked for in each."),
    _listed("torture", "usage.torture",
            "Torture Megha: small random federations, messages lost, doubled, late, roles cut off and crashed."),
    _live("submit", "submit", "Submit jobs; each is on disk when its id is printed."),
    _live("run", "submit", "Run one command in the federation, show what it writes, and end with its exit code.",
          {"allow_interspersed_args": False}),  # what follows a command is its own
    _live("list", "jobs", "List jobs of all masters, the latest first."),
    _live("describe", "jobs", "Say all that is known of a job, a task or a machine."),
    _live("logs", "follow", "Print what a task has written, wherever it runs or ran."),
    _live("watch", "follow",
          "Print a line whenever a job changes, until it has ended; exit code 1 if it did not finish."),
    _live("cancel", "change",
          "Cancel jobs or tasks; what runs of them gets SIGTERM, and SIGKILL after its grace period."),
    _live("preempt", "change",
          "Take machines from tasks that run; the tasks wait again, and lose none of their retries."),
    _live("machines", "machines",
          "List machines: ready, joining, unknown (yet to report), lost (silent for a lease) or absent, and what is "
          "used."),
    _live("cordon", "machines", "Let nothing new start on machines; what runs there goes on."),
    _live("uncordon", "machines", "Let tasks start on machines again that were cordoned or drained."),
    _live("drain", "machines",
          "Cordon machines and move what runs there elsewhere, such as before they are serviced."),
    _live("history", "jobs", "Say what happened to a job or a task, when and why."),
    _live("apply", "federation",
          "Show what a configuration changes, ask, and apply it while the federation runs."),
    _live("up", "up",
          "Start a federation on this machine: two global masters, clusters with their standbys, workers."),
    _live("down", "up", "End the federation that runs in a folder, and wait for its end; no job is lost."),
    _live("global-master", "processes",
          "Be a global master: take jobs from people, and place their tasks on the machines of all clusters."),
    _live("local-master", "processes",
          "Be the local master of a cluster, or its standby: say what runs on its machines, and start and end it."),
    _live("worker", "processes", "Be the worker of this machine: join a cluster, and run its tasks."),
    Listed("store", "Look after the stores of masters: check, copy, put back, take over from one that is lost.",
           "subak.cli.live.store:app", panel=LIVE),
    Listed("reproduce", "Print a paper's figures beside what is measured here, and draw its charts.",
           "subak.cli.reproduce.commands:app"),
)


class _Group(ListedGroup):
    """All of them."""

    listed = COMMANDS


app = typer.Typer(
    **{**LOOK, "add_completion": True},
    name="subak",
    cls=_Group,
    invoke_without_command=True,
    epilog="Start with `subak compare`: it runs on a shipped sample. A command's own help: `subak compare --help`.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"subak {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True,
                                 help="Print the version and stop."),
) -> None:
    """Schedule federated data centers, and compare policies on real traces."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
