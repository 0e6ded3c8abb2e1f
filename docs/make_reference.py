"""Write reference.md and job.schema.json from the program itself; with --check, only say whether they are current."""
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import typer.main
from protocol import protocol

from subak import exit_codes
from subak.cli import app as command_line
from subak.experiment.scenario import Scenario
from subak.experiment.study import document
from subak.federation import messages
from subak.federation.megha.jobs import OUTCOMES
from subak.federation.settings import LAWS, PROFILES, Federation, Profile
from subak.fleet import table as fleet
from subak.fleet.locality import LEVELS
from subak.live.jobfile.schema import schema_text
from subak.measures import batch, jobs
from subak.measures.energy import measure as energy_measure
from subak.measures.energy import settings as energy_settings
from subak.measures.fairness import measure as fairness
from subak.measures.runs import EnergyFacts, FailureFacts, FairnessFacts, FederationFacts, Summary
from subak.placement.claims import STATUSES
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import KNOWLEDGE, NETWORK_SETTINGS, OPTIONS, SCHEDULERS
from subak.quantities import Seconds
from subak.simulator import federated_results, results
from subak.simulator.engine import estimates
from subak.simulator.federated import fault_plan
from subak.simulator.mishaps import failure_plan
from subak.workload import table as workload
from subak.workload.predicates import OPERATORS
from subak.workload.readers import READERS
from subak.workload.samples import sample_names

HERE = Path(__file__).parent
HEAD = """# Reference

This page is generated from the program: `make docs` writes it, and a test checks that it is current. It has what only
the program knows: commands and their options, schedulers, settings, messages, the columns of every file. What Python is
to call is in [the Python interface](api.md), which mkdocstrings makes of the sources.
"""
EXIT_CODES = f"""## Exit codes

{exit_codes.table()}

An error is one line on standard error: the rule that was broken, where, and by what value. A comparison keeps the runs
that succeeded. Results go to standard output, remarks and errors to standard error. A folder appears under its name
only when it is whole.
"""
AMOUNTS = "*resource*"
VALUES = {
    "constraints": f"a list of {{attribute, operator, value}}; operators are {' '.join(OPERATORS)}",
    "kind": " or ".join(workload.KINDS.categories),
    "outcome": "how it ended in the trace: " + ", ".join(workload.OUTCOMES.categories),
}
# The columns of a run's tables; tests/test_docs.py checks them against a run.
TASK_ROWS = {
    "job": "row of the job in the workload", "index": "number of the task within its job", "queue": "the job's queue",
    "arrival": "seconds", "run_time": "seconds",
    "ready": "seconds: the arrival, or the end of the last stage it waits for",
    "start": "seconds, of the last attempt; null for a task that is not running or finished",
    "finish": "seconds; null for a task that is not finished",
    "wait_time": "seconds: the first start minus ready", "machine": "id of the last attempt's machine",
    "attempts": "how often it was started", "status": "how it stands at the end",
    "reason": "why it is not running or finished",
    "framework_queueing": "seconds of the last start's wait spent in queues of the scheduler, or of masters",
    "processing": "seconds in service at masters: the decision",
    "worker_queueing": "seconds spent in a machine's queue",
    "communication": "seconds that the messages were under way",
}
FEDERATED_TASK_ROWS = {
    "global_master": "number of its global master, scheduler or distributor",
    "local_master": "cluster, or group, of the last attempt's machine (megha, central, pigeon)",
    "refusals": "requests that local masters refused (megha, central)",
    "repartitions": "requests on another global master's partition (megha, central)",
    "preemptions": "how often it was preempted (megha, central)",
}
ENDING_ROWS = {
    "outcome": f"how it ended: one of {', '.join(OUTCOMES[1:])}; null while it has not",
    "exit_code": "of its last attempt; null unless that finished or failed",
    "attempts_failed": "attempts that failed or ran too long",
}
INTERFERENCE_ROWS = {
    "execution_delay": "seconds that its last attempt ran longer for sharing CPU; null for a task that is not finished",
}
LOCALITY_ROWS = {
    "locality": f"how near its input its last attempt ran: {', '.join(LEVELS)}; null where that is not known",
}
# What needs no comment in the source, since its name says it there.
PLAIN_KINDS = {"SUBMIT": "a task, or a batch of them, to be placed", "START": "begin the attempt",
               "KILL": "end the attempt, or never begin it"}
PLAIN_SETTINGS = {"delay_law": f"of the delay: {', '.join(LAWS)}"}
WAITING_ROWS = {
    "task": "row of the task", "global_master": "number of its global master",
    "shape": "number of its request and constraints", "phase": "how it stands at its global master",
    "last_refused": "why its last request failed", "share": "share that its queue is entitled to, with fairness",
    "share_used": "share that its queue holds, as its global master sees it, with fairness",
    "asked_*resource*": "what it asks, in natural amounts",
}
VIEW_ROWS = {
    "global_master": "whose view", "shape": "number of a request and constraints", "tasks": "waiting tasks of both",
    "local_master": "cluster of the partition", "partition_of": "global master of the partition",
    "own": "whether that is the one whose view it is",
    "view_age": "seconds since an update of the cluster came; null: none did since it was asked for",
    "machines": "machines that are there and meet the constraints",
    "fit_in_view": "of them, could take a task in the view", "fit_in_truth": "of them, could take a task",
    "view_free_*resource*": "the most free on one of them, in the view",
    "free_*resource*": "the most free on one of them",
}
TIMELINE_ROWS = {
    "time": "seconds: when the interval begins", "span": "seconds: its length; the last may be shorter",
    "arrivals": "tasks that arrived in it", "starts": "attempts that started in it", "ends": "tasks that ended in it",
    "lost": "attempts that ended before their time: their machine left or shrank, preemption, a failure",
    "waiting": "waiting tasks, the mean over time",
    "waiting_max": "waiting tasks, the most at once", "running": "running tasks, the mean over time",
    "used_*resource*": "amount in use, the mean over time, in natural amounts",
    "capacity_*resource*": "amount of the machines present, the mean over time",
    "stranded_*resource*": "free amount, at the interval's end, on machines where even the smallest waiting task "
                           "does not fit",
}
FEDERATED_TIMELINE_ROWS = {
    "messages": "messages that roles handled in it, timers among them",
    "refusals": "of them, refusals of requests (megha, central)",
    "repartitions": "of them, requests on another global master's partition (megha)",
    "preemptions": "attempts that ended in it because they were preempted (megha, central)",
}
ATTEMPT_ROWS = {
    "job": "row of the job in the workload", "index": "number of the task within its job",
    "machine": "id of the machine", "start": "seconds", "end": "seconds",
}
GROUP_ROWS = {
    "by": "what the group is of: length (short or long jobs), priority, class, gang, queue",
    "name": "short, long, the priority, the class, how many tasks wide gangs are, or the queue",
    "tasks": "tasks of it that count", "started": "of them, those that started",
    "wait_mean": "seconds; means and percentiles are of those that started",
    "wait_median": "seconds", "wait_p95": "seconds", "wait_p99": "seconds",
    "slowdown_mean": "mean bounded slowdown of the tasks that finished",
    "jobs": "jobs of which the first task is of the group",
    "completion_mean": "seconds from such a job's arrival to its end, of those all of whose tasks finished",
}
QUEUE_ROWS = {
    "queue": "its full name; the jobs of a queue above others are in a leaf whose name ends with a slash",
    "level": "1 at the top", "leaf": "whether it has jobs of its own and no queue below it",
    "weight": "against its siblings", "guarantee": "share that it is guaranteed when all queues are active",
    "jobs": "of it and of all below it", "tasks": "likewise",
    "share_mean": "its dominant share, the mean over the run",
    "guarantee_mean": "what it was guaranteed, the mean over the run; 0 while it is not active",
    "shortfall": "share-seconds that it was below its guarantee while tasks of it waited",
    "shortfall_mean": "the same over `demanding`: the share that it lacked, in the mean; null where nothing waited",
    "starved_longest": "seconds: the longest in which tasks of it waited and it held nothing",
    "demanding": "seconds in which tasks of it waited",
}
SHARE_ROWS = {
    "time": "seconds: when the interval begins", "span": "seconds: its length; the last may be shorter",
    "queue": "the queue; null: all queues of the level that have no rows of their own, together",
    "level": "the queue's level", "share_*resource*": "what it holds of what is there, the mean over time",
    "share": "its dominant share, the mean over time",
    "guarantee": "what it is guaranteed, the mean over time, 0 while it is not active; null for several together",
    "waiting": "waiting tasks, the mean over time",
}
MACHINE_ROWS = {
    "machine": "the machine's id", "kind": "the name of its kind in the energy file",
    "hours": "that it was there in the window",
    "used_hours": "the amount that tasks used there of the resource that power follows, times hours",
    "kwh": "that it drew", "cost_energy": "of that, at the price of each instant; null where there is no price",
    "cost_machine": "of the hours that it was there; null where nothing has a price",
    "carbon": "kg of CO2 equivalent of what it drew; null where the file does not say",
}
POWER_ROWS = {
    "time": "seconds: when the interval begins", "span": "seconds: its length; the last may be shorter",
    "watts": "that all machines drew together, the mean over time",
    "price": "of a kWh, the mean over time; null where there is none",
    "carbon": "kg of CO2 equivalent of a kWh, the mean over time; null where the file does not say",
}
STINT_ROWS = {
    "kind": "map or reduce", "machine": "the machine's id", "slot": "which of its slots, from 0 on",
    "job": "the job's id", "begin": "seconds: when the first of these tasks began",
    "end": "seconds: when the last ended",
    "tasks": "how many there were",
}


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *commands(), *schedulers(), *lotes(), *federations(), *energy(), EXIT_CODES, *files(),
                      *formats()])


def commands() -> list[str]:
    group: Any = typer.main.get_command(command_line.app)
    parts = ["## Commands\n"]
    context = group.context_class(group, info_name="subak")
    parts += ["### `subak`\n", prose(group.help), *parameters(group, context)]
    return [*parts, *commands_of(group, context)]


def commands_of(group: Any, context: Any) -> list[str]:
    """Return the commands of a group, each followed by its own."""
    parts = []
    for name, command in group.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        parts += [f"### `{inner.command_path}`\n", prose(command.help), *parameters(command, inner)]
        parts += commands_of(command, inner) if hasattr(command, "commands") else []
    return parts


def parameters(command: Any, context: Any) -> list[str]:
    rows = []
    for parameter in [each for each in command.get_params(context) if not each.hidden]:
        argument = parameter.param_type_name == "argument"
        name = parameter.metavar or parameter.name.upper() if argument else ", ".join(parameter.opts)
        takes = "" if argument or parameter.is_bool_flag else parameter.metavar or parameter.display_type(context)
        rows.append((f"`{name} {takes}`".replace(" `", "`"), help_of(parameter)))
    return table(("argument or option", "what it does"), rows)


def help_of(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split())
    shown = parameter.show_default and parameter.default not in (None, False, ())
    if parameter.required:
        return f"{text} Required."
    return f"{text} [default: {parameter.default}]" if shown and "[default:" not in text else text


def schedulers() -> list[str]:
    listed = [(f"`{each.name}`", each.summary, each.knows,
               ", ".join(f"`{option}`" for option in sorted(each.accepts)) or "none")
              for each in SCHEDULERS.values() if not each.architecture]
    return [
        "## Schedulers\n", *table(("name", "what it does", "knows", "options"), listed),
        "Options follow the name behind plus signs, in any order: `first-fit+backfill+shortest-first`.\n",
        *table(("option", "what it changes"), [(f"`{name}`", text) for name, text in OPTIONS.items()]),
        "Federations, whose settings are [below](#federations):\n",
        *table(("name", "what it does", "knows", "settings of its own"), [
            (f"`{each.name}`", each.summary, each.knows,
             ", ".join(f"`{name}`" for name in each.settings if name not in NETWORK_SETTINGS))
            for each in SCHEDULERS.values() if each.architecture]),
        "### Who knows what\n",
        "A scheduler that knows run times in advance has an advantage that few real ones have. What each *knows* of "
        "them, at most:\n",
        *table(("knows", "what that is"), list(KNOWLEDGE.items())),
        "hawk and pigeon know nothing without a `cutoff`; megha and central, with the placement `bins`, class means; a "
        "policy of your own, run times if it names `tasks.estimate`. `knows` in a run's `summary.json` says it of the "
        "run, with how well the scheduler was told, by `--estimates`:\n",
        inspect.cleandoc(estimates.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "A policy of your own, in a file, is named `FILE.py:NAME`, with options behind plus signs if it was made with "
        "`@policy`. [The Python interface](api.md#policies-of-your-own) has what it may use.\n",
    ]


def lotes() -> list[str]:
    """Return the settings of LoTES's plan."""
    return [
        "## LoTES: settings\n",
        "For `--lotes` and `subak explain lotes --settings`, a key each.\n",
        *table(("key", "type", "default", "what it is"), struct_rows(LotesSettings)),
    ]


def federations() -> list[str]:
    """Return the settings, the messages with their service times, the reasons, and how faults are planned."""
    costs = [(f"`{name}`", messages.ROLES[messages.HANDLER[number]], "yes" if messages.CROSSES[number] else "no",
              *(service_of(name, each) for each in PROFILES.values()), kind_comment(name))
             for number, name in enumerate(messages.KINDS)]
    settings = zip(Federation.__struct_fields__, struct_rows(Federation), strict=True)
    return [
        "## Federations\n",
        "Settings go into a TOML file for `--federation`, a key each, or under `[federation]` of a scenario; those "
        "that are varied most are options of `subak simulate` and `subak compare`. A setting that none of the "
        "schedulers supports is refused. Every run writes those it used into its `summary.json`, with the service "
        "times.\n",
        "### Settings\n",
        *table(("key", "type", "default", "what it is", "supported by"),
               [(*row, supporters(name)) for name, row in settings]),
        "### Messages\n",
        "A role serves one message at a time; what it answers leaves when the service is over. A message that crosses "
        "the network is under way for the delay. How long a service takes depends on the `service_profile`: whether "
        "masters are compiled, as `bench/handlers.py` measures them, each message with the call that hands it over, or "
        "run in plain Python. `service` and `part` are tables by kind, and come before it: "
        "`service = {LAUNCH = 0.0001}`.\n",
        *table(("kind", "handled by", "crosses the network", *(f"{name}, µs" for name in PROFILES), "what it says"),
               costs),
        *protocol(),
        "### Reasons\n",
        "Why a request is refused, or an attempt ends:\n",
        *table(("number", "reason"), [(str(number), text) for number, text in enumerate(messages.REASONS) if text]),
        "Why a task waits at the end of a federated run, beside what every machine lacks:\n",
        *table(("reason",), [(text,) for text in waiting_words()]),
        "### Faults\n",
        inspect.cleandoc(fault_plan.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "### Failures\n",
        "With `--failures`, tasks of megha and central end in other ways than by finishing, whatever schedules them.\n",
        inspect.cleandoc(failure_plan.__doc__ or "").split("\n\n", 1)[1] + "\n",
    ]


def energy() -> list[str]:
    return [
        "## Energy, cost and carbon\n",
        f"With `--energy`, a run says what its machines drew, cost and emitted. Shipped files: "
        f"{', '.join(f'`{name}`' for name in energy_settings.energy_names())}, whose comments name its sources.\n",
        inspect.cleandoc(energy_settings.__doc__ or "").split("\n\n", 1)[1] + "\n",
        inspect.cleandoc(energy_measure.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "`energy` of `summary.json`, null where there is no such file\n",
        *table(("key", "what it is"), [(f"`{name}`", text) for name, text in comments_of(EnergyFacts).items()]),
    ]


def waiting_words() -> list[str]:
    words = [*federated_results.OF_PHASE.values(), *(value for name, value in vars(federated_results).items()
                                                     if name.isupper() and isinstance(value, str))]
    return [f"{text.strip()} ..." if text.endswith(" ") else text for text in words]


def supporters(setting: str) -> str:
    names = [each.name for each in SCHEDULERS.values() if setting in each.settings]
    federated = [each for each in SCHEDULERS.values() if each.architecture]
    return "all" if len(names) == len(federated) else ", ".join(names)


def service_of(kind: str, profile: Profile) -> str:
    part = f" + {1e6 * profile.part[kind]:g} for each entry" if kind in profile.part else ""
    return f"{1e6 * profile.service.get(kind, 0.0):g}{part}"


def kind_comment(kind: str) -> str:
    found = re.search(rf'^    \("{kind}",[^#]*?(?:# (.*))?$', inspect.getsource(messages), re.MULTILINE)
    return (found[1] if found else "") or PLAIN_KINDS.get(kind, "")


def study_text() -> str:
    """Return what a study file is, its example as a fenced block."""
    blocks = inspect.cleandoc(document.__doc__ or "").split("\n\n")
    inside = [number for number, block in enumerate(blocks) if block.startswith("    ")]
    example = textwrap.dedent("\n\n".join(blocks[inside[0] : inside[-1] + 1]))
    return "\n\n".join([*blocks[: inside[0]], f"```toml\n{example}\n```", *blocks[inside[-1] + 1 :]])


def first_sentence(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return re.sub(r"``(.+?)``", r"`\1`", text)


def returned(function: Any) -> str:
    """Return what a function says it returns."""
    text = first_sentence(function).removeprefix("Return ")
    return text[0].upper() + text[1:]


def files() -> list[str]:
    resources = [(AMOUNTS, "Int32", "one column for each resource, in its units")]
    return [
        "## Files\n",
        "Tables are Parquet files, headers TOML. Times are seconds from the beginning of the workload; amounts in "
        "tables are whole units of the size that the header states.\n",
        "### A workload folder\n",
        inspect.cleandoc(workload.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "`workload.toml` holds `resources` (a list of `{name, unit, of}`: amounts are multiples of `unit`, measured in "
        "`of`) and `provenance` (name, origin, licence, notes). "
        f"Shipped samples: {', '.join(f'`{name}`' for name in sample_names())}. Readers make such folders of "
        f"{', '.join(f'`{name}`' for name in READERS)}.\n",
        "`jobs.parquet`\n", *columns(workload, "JOB_COLUMNS"),
        "`stages.parquet`\n", *columns(workload, "STAGE_COLUMNS", resources),
        "and, where known,\n", *columns(workload, "OPTIONAL_STAGE_COLUMNS"),
        "`tasks.parquet`\n", *columns(workload, "TASK_COLUMNS"),
        "and, where known,\n", *columns(workload, "OPTIONAL_TASK_COLUMNS"),
        "### A fleet folder\n",
        "`fleet.toml` holds the same `resources` and its own `provenance`. In a workload folder, the fleet is the "
        "folder `fleet`.\n",
        "`machines.parquet`\n", *columns(fleet, "MACHINE_COLUMNS", resources),
        "`attributes.parquet`\n", *columns(fleet, "ATTRIBUTE_COLUMNS"),
        "`changes.parquet`\n", *columns(fleet, "CHANGE_COLUMNS", resources),
        "and, where machines differ in speed, `speeds.parquet`\n", *columns(fleet, "SPEED_COLUMNS"),
        "### A run folder\n",
        *table(("file", "what it holds"), [
            ("`tasks.parquet`", returned(results.task_table)),
            ("`timeline.parquet`", returned(results.timeline_table)),
            ("`attempts.parquet`", returned(results.attempt_table)),
            ("`groups.parquet`", "One row a group of tasks: of short and of long jobs, of a priority, of a class, of "
                                 "gangs about as wide (where there are gangs), of a "
                                 f"queue, at most {jobs.GROUPS_MAX:,} of a kind: how they waited."),
            ("`queues.parquet`", "Where there are several queues: one row a queue of the tree, parents before "
                                 "children: what it held, was guaranteed and went without."),
            ("`shares.parquet`", "Where there are several queues: one row an interval and queue, for the "
                                 f"{fairness.SHARE_QUEUES_MAX} that hold most. The intervals are the timeline's, "
                                 "joined in equal numbers where there are more than "
                                 f"{fairness.SHARE_INTERVALS_MAX:,}."),
            ("`machines.parquet`", "With `--energy`: one row a machine: what it drew and cost in the window."),
            ("`power.parquet`", "With `--energy`: one row an interval of the window, those of `shares.parquet`."),
            ("`stints.parquet`", "Of MapReduce jobs: which job's tasks a slot ran one right after the other, for "
                                  f"the first {batch.MACHINES_DRAWN} machines that ran maps, and reduces."),
            ("`summary.json`", "The run in a page of numbers: " + ", ".join(f"`{name}`" for name in
                                                                            Summary.__struct_fields__) + "."),
            ("`waiting.parquet`", "Of megha and central: a row for each task that waits at the end."),
            ("`views.parquet`", "Of megha and central: what the global masters of waiting tasks saw of each partition, "
                                f"for the {federated_results.VIEWS_MAX:,} most frequent of master and shape."),
            ("`scenario.toml`", "Enough to repeat the run to the byte: `subak simulate --scenario scenario.toml`."),
            ("`policy.py`", "A copy of the user's policy, where there was one."),
            ("`faults.toml`", "A copy of the plan of faults, where there was one."),
            ("`failures.toml`", "A copy of the plan of failures, where there was one."),
            ("`energy.toml`", "What machines draw and cost, where that was given, with the tables that it named."),
        ]),
        "`tasks.parquet`\n", *row_table(TASK_ROWS),
        "and, of a federated run,\n", *row_table(FEDERATED_TASK_ROWS),
        "and, of one with a plan of failures,\n", *row_table(ENDING_ROWS),
        "and, of one with `--interference`,\n", *row_table(INTERFERENCE_ROWS),
        "and, of one of a workload that says where inputs lie,\n", *row_table(LOCALITY_ROWS),
        "`timeline.parquet`\n", *row_table(TIMELINE_ROWS),
        "and, of a federated run,\n", *row_table(FEDERATED_TIMELINE_ROWS),
        "`attempts.parquet`\n", *row_table(ATTEMPT_ROWS),
        "`groups.parquet`\n", *row_table(GROUP_ROWS),
        "`machines.parquet`\n", *row_table(MACHINE_ROWS),
        "`power.parquet`\n", *row_table(POWER_ROWS),
        "`stints.parquet`\n", *row_table(STINT_ROWS),
        "`queues.parquet`\n", *row_table(QUEUE_ROWS),
        "`shares.parquet`\n", *row_table(SHARE_ROWS),
        "What these terms mean:\n",
        inspect.cleandoc(fairness.__doc__ or "").split("\n\n", 1)[1].rpartition(" The sums are in")[0] + "\n",
        "`waiting.parquet`\n", *row_table(WAITING_ROWS),
        "`views.parquet`\n", *row_table(VIEW_ROWS),
        "`federation` of `summary.json`, null for other runs\n",
        *table(("key", "what it is"), [(f"`{name}`", text) for name, text in comments_of(FederationFacts).items()]),
        "`failures` of `summary.json`, null where there is no plan of failures\n",
        *table(("key", "what it is"), [(f"`{name}`", text) for name, text in comments_of(FailureFacts).items()]),
        "`fairness` of `summary.json`, null where there is one queue\n",
        *table(("key", "what it is"), [(f"`{name}`", text) for name, text in comments_of(FairnessFacts).items()]),
        f"A task's status is one of {', '.join(STATUSES)} (that only with a plan of failures); one that is "
        "not running or finished has a reason.\n",
        "### A comparison folder\n",
        *table(("file", "what it holds"), [
            ("`runs/NAME/`", "a run folder for each scheduler and seed that succeeded"),
            ("`comparison.toml`", "the workload and the names of the runs"),
            ("`report.html`", "the page"),
        ]),
        "### A study folder\n",
        *table(("file", "what it holds"), [
            ("`runs.parquet`", "a row a run: its digest, its settings, scheduler and seed, what went wrong, and its "
                               "measures in seconds, shares of one and counts"),
            ("`report.html`", "the page"),
            ("`study.json`", "the plan: settings, points, and the digest of each run"),
            ("`runs/DIGEST.json`", "a run's summary, without what differs when it is repeated, or why there is none"),
        ]),
        "### A study file\n",
        f"{study_text()}\n",
        "### A scenario file\n",
        "TOML; paths in it are relative to its folder. Every key may be left out.\n",
        *scenario(),
    ]


def columns(module: Any, schema: str, more: Any = ()) -> list[str]:
    """Return the table of a schema constant, with the comments beside its lines."""
    body = re.search(rf"^{schema}:.*?^}}$", inspect.getsource(module), re.MULTILINE | re.DOTALL)
    words = dict(re.findall(r'^    "(\w+)": [^#\n]+  # (.*)$', body[0] if body else "", re.MULTILINE))
    words = {**VALUES, **words} if schema == "STAGE_COLUMNS" else {**words, "outcome": VALUES["outcome"]}
    rows = [(f"`{name}`", kind_name(kind), words[name]) for name, kind in getattr(module, schema).items()]
    return table(("column", "type", "what it is"), [*rows, *more])


def row_table(rows: dict[str, str]) -> list[str]:
    named = [(re.sub(r"^(\w+?_?)(\*.*)?$", r"`\1`\2", name), text) for name, text in rows.items()]
    return table(("column", "what it is"), named)


def kind_name(kind: Any) -> str:
    text = str(kind)
    return text.partition("(")[0] if text.startswith(("Enum", "Struct", "List(Struct")) else text


def formats() -> list[str]:
    """Return what each reader's file says of itself."""
    parts = ["## Trace formats\n", "What `subak convert` reads, and what it makes of it.\n"]
    for name, reader in READERS.items():
        about = inspect.cleandoc(inspect.getmodule(reader.read).__doc__ or "")
        parts += [f"### `{name}`\n", f"Read from: {reader.summary}.\n", f"{about}\n"]
    return parts


def scenario() -> list[str]:
    return table(("key", "type", "default", "what it is"), struct_rows(Scenario))


def struct_rows(kind: Any) -> list[tuple[str, ...]]:
    """Return name, type, default and comment of each field of a struct."""
    comments, default = comments_of(kind), kind()
    hints = inspect.get_annotations(kind)
    return [(f"`{name}`", kind_word(hints[name]), default_word(getattr(default, name)),
             comments[name] or PLAIN_SETTINGS.get(name, ""))
            for name in kind.__struct_fields__]


def default_word(value: Any) -> str:
    section = {Federation: "settings", LotesSettings: "lotes-settings"}.get(type(value))
    return f"`{value!r}`" if section is None else f"the defaults [above](#{section})"


def comments_of(kind: Any) -> dict[str, str]:
    """Return the comments beside the fields of a struct."""
    found = re.findall(r"^    (\w+): [^#\n]+?(?:  # (.*))?$", inspect.getsource(kind), re.MULTILINE)
    return {name: text for name, text in found if name in kind.__struct_fields__}


def kind_word(hint: Any) -> str:
    if isinstance(hint, type) and not hasattr(hint, "__args__"):
        return hint.__name__
    return str(hint).replace(str(Seconds), "duration").replace("typing.Optional[duration]", "duration | None")


def table(head: tuple[str, ...], rows: Any) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"]


def prose(text: str | None) -> str:
    return inspect.cleandoc(text or "") + "\n"


def main() -> None:
    made = {HERE / "reference.md": page(), HERE / "job.schema.json": schema_text()}
    if "--check" in sys.argv[1:]:
        current = {path: path.is_file() and path.read_text() == text for path, text in made.items()}
        for path, is_current in current.items():
            print(f"{path.name}: {'current' if is_current else 'not current; run make docs'}")
        sys.exit(0 if all(current.values()) else 1)
    for path, text in made.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
