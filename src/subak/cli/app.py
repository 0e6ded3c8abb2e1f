"""Lists the commands of `subak` with the function of each; a command is loaded when it is called."""
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

from subak.cli.listed import HELP_ALL, LOOK, Listed, ListedGroup
from subak.version import VERSION

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

LIVE = "A live federation"
HELP_WIDTH = 79  # columns
# What Typer raises for a command line it does not understand; of its family, it exports only BadParameter.
UsageError: Any = typer.BadParameter.__base__


def _listed(name: str, where: str, summary: str) -> Listed:
    return Listed(name, summary, f"subak.cli.{where}:{name.replace('-', '_')}")


def _live(name: str, where: str, summary: str, settings: dict[str, Any] | None = None) -> Listed:
    return _listed(name, f"live.{where}", summary)._replace(panel=LIVE, settings=settings)


COMMANDS = (
    _listed("simulate", "usage.simulate", "Simulate one scheduler on one workload and show the results."),
    _listed("compare", "usage.compare",
            "Compare schedulers on one workload: a table, and with --out a page with charts."),
    _listed("experiment", "usage.experiment",
            "Run a study (parameter sweep): every combination of listed settings once, with a table and a page."),
    _listed("merge", "usage.merge", "Join the shards of a study into one folder, with its table and its page."),
    _listed("size", "usage.size",
            "Find the fewest machines, or the cheapest kind of machine, with which all objectives hold."),
    _listed("tune", "usage.tune", "Tune a scheduler's parameters on some seeds, and judge the result on others."),
    _listed("report", "commands.report",
            "Write one self-contained HTML page with the charts and tables of a run or a comparison."),
    _listed("explain", "live.shared",
            "Say why a task is in its state, in a live federation or at the end of a run; with `lotes`, show LoTES's "
            "plan."),
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
            "Fit the Google-like model to a workload: parameters with 95 % intervals, and the goodness of five laws."),
    _listed("schedulers", "commands.schedulers",
            "List the schedulers, the options that may follow their names, and the settings of federations."),
    _listed("fair", "usage.fair",
            "Divide a cluster among queues by every fair order, and show each queue's share."),
    _listed("queues", "live.shared",
            "Show the tree of queues: weights, limits, guarantees, and each queue's running, waiting or requested "
            "amounts."),
    _listed("torture", "usage.torture",
            "Torture Megha: small random federations with lost, doubled and late messages, partitions and crashes."),
    _live("submit", "submit", "Submit jobs; each is on disk before its id is printed."),
    _live("run", "submit", "Run one command in the federation, show its output, and end with its exit code.",
          {"allow_interspersed_args": False}),  # what follows a command is its own
    _live("rerun", "rerun",
          "Submit jobs again with the same command, environment, folder, amounts, queue and name."),
    _live("list", "jobs", "List jobs of all masters, the latest first."),
    _live("describe", "jobs", "Show everything about a job, a task or a machine."),
    _live("logs", "follow", "Print the output of tasks, or of all tasks of jobs."),
    _live("watch", "follow",
          "Print a line whenever a job changes, until all have ended; exit code 1 if one did not finish."),
    _live("cancel", "change",
          "Cancel jobs or tasks; running attempts get SIGTERM, and SIGKILL after their grace period."),
    _live("preempt", "change",
          "Preempt running tasks: they wait again, and lose none of their retries."),
    _live("machines", "machines",
          "List machines: ready, joining, unknown (yet to report), lost (silent for a lease) or absent, with their "
          "use."),
    _live("cordon", "machines", "Start nothing new on machines; running tasks go on."),
    _live("uncordon", "machines", "Let tasks start again on cordoned or drained machines."),
    _live("drain", "machines",
          "Cordon machines and move their running tasks elsewhere, for example before maintenance."),
    _live("history", "jobs", "Show the events of a job or a task, with times and reasons."),
    _live("apply", "federation",
          "Show what a configuration would change, ask, and apply it while the federation runs."),
    _live("whoami", "people", "Say who holds the token that commands use here, and what it allows."),
    _live("audit", "audit",
          "Show who asked for which change, from where, and how it ended; only an admin may."),
    Listed("people", "Make tokens for people, list and revoke them; only an admin may.",
           "subak.cli.live.people:app", panel=LIVE),
    _live("up", "up",
          "Start a federation on this machine: two global masters, clusters with their standbys, workers."),
    _live("down", "up",
          "Stop the federation of a folder; tasks that run start again from the beginning at the next `subak up`."),
    _live("global-master", "processes",
          "Run a global master: it takes jobs, and places their tasks on the machines of all clusters."),
    _live("local-master", "processes",
          "Run the local master of a cluster, or its standby: it starts and ends tasks on the cluster's machines."),
    _live("worker", "processes", "Run the worker of this machine: it joins a cluster, and runs tasks."),
    Listed("store", "Check, copy and restore the stores of masters, or let one take over from a lost one.",
           "subak.cli.live.store:app", panel=LIVE),
    _live("init", "init",
          "Write a folder for each host of a federation: files, certificates, tokens and systemd units."),
    _live("doctor", "doctor",
          "Look at this host's part of a federation and say what is wrong: files, certificates, network, clock."),
    Listed("ca", "Make a certificate authority, issue and revoke certificates of a federation's processes.",
           "subak.cli.live.ca:app", panel=LIVE),
    Listed("reproduce", "Print a paper's figures beside what is measured here, and draw its charts.",
           "subak.cli.reproduce.commands:app"),
)


_JOBS, _END, _RUN = "list (or describe JOB)", "cancel (or down, for the federation)", "submit or run"
_MACHINES = "machines"
# Words of Slurm, Kubernetes, Docker and shells.
MEANT = {
    **dict.fromkeys(("status", "ps", "jobs", "squeue", "get", "ls", "stat", "qstat", "sacct"), _JOBS),
    **dict.fromkeys(("show", "info"), "describe"),
    **dict.fromkeys(("kill", "stop", "delete", "rm", "scancel", "qdel"), _END),
    **dict.fromkeys(("sbatch", "srun", "exec", "qsub"), _RUN),
    **dict.fromkeys(("nodes", "workers", "sinfo", "top"), _MACHINES),
    **dict.fromkeys(("log", "tail", "output", "attach"), "logs"), **dict.fromkeys(("wait", "follow"), "watch"),
    **dict.fromkeys(("retry", "restart", "resubmit", "requeue"), "rerun"), **dict.fromkeys(("start", "serve"), "up"),
}


# What `subak --help` shows in a line each, in this order; of all others it shows the names, --help-all all.
EVERYDAY = {
    "Run jobs": {
        "up": "start a federation on this computer: subak up --detach",
        "submit": "submit scripts or job files: subak submit train_*.py",
        "run": "run one command, and show its output",
        "list": "list jobs, and why they wait or failed",
        "logs": "print output; -f follows it",
        "watch": "print a line at each change, until all have ended",
        "cancel": "end jobs or tasks",
        "rerun": "submit jobs again; all that failed: subak rerun --failed",
        "explain": "say why a task waits or ended as it did",
        "down": "stop the federation; what ran starts anew at the next up",
    },
    "Look at a federation": {
        "describe": "show all of a job, a task or a machine",
        "history": "show what happened to a job or a task, and when",
        "machines": "list machines and their use",
        "queues": "show the tree of queues and the share of each",
    },
    "Compare schedulers": {
        "compare": "run several schedulers on one workload: start here",
        "simulate": "run one scheduler on one workload",
        "size": "find the fewest machines with which objectives hold",
        "experiment": "run a study: every combination of settings",
        "tune": "search for a scheduler's parameters",
        "report": "write a page with charts of a run",
        "schedulers": "list the schedulers and their options",
    },
    "Workloads": {
        "convert": "make a workload of a trace, or of a cluster's log",
        "inspect": "describe a workload or a fleet",
        "generate": "make a workload like Google's, or like a fitted trace",
    },
}


class _Group(ListedGroup):
    """All of them."""

    listed, meant = COMMANDS, MEANT

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the everyday commands in groups, on one screen, and the names of the others; all for --help-all."""
        if ctx.meta.get(HELP_ALL):
            super().format_help(ctx, formatter)
            return
        formatter.write("Usage: subak COMMAND [OPTIONS] [ARGUMENTS]\n")
        width = max(len(name) for group in EVERYDAY.values() for name in group)
        for heading, group in EVERYDAY.items():
            formatter.write(f"\n{heading}:\n")
            formatter.write("".join(f"  {name:{width}}  {brief}\n" for name, brief in group.items()))
        shown = {name for group in EVERYDAY.values() for name in group}
        names = ", ".join(each.name for each in COMMANDS if each.name not in shown)
        more = fill(f"More: {names}", HELP_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        formatter.write(f"\n{more}\n\nsubak COMMAND --help shows a command's options, subak {HELP_ALL} all commands.\n"
                        "Options: --version, --install-completion, --show-completion, --help\n")


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
