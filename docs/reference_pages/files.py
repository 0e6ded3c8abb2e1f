"""The pages of files: workload and fleet folders, run folders, scenario and study files, energy, trace formats."""
import inspect
import textwrap
from importlib import import_module

from reference_pages.rows import (
    ATTEMPT_ROWS,
    ENDING_ROWS,
    FEDERATED_TASK_ROWS,
    FEDERATED_TIMELINE_ROWS,
    GROUP_ROWS,
    INTERFERENCE_ROWS,
    LOCALITY_ROWS,
    MACHINE_ROWS,
    POWER_ROWS,
    QUEUE_ROWS,
    SHARE_ROWS,
    STINT_ROWS,
    TASK_ROWS,
    TIMELINE_ROWS,
    VIEW_ROWS,
    WAITING_ROWS,
)
from reference_pages.tables import columns, comments_of, returned, row_table, struct_rows, table
from subak.experiment.scenario import Scenario
from subak.experiment.study import document
from subak.fleet import table as fleet
from subak.measures import batch
from subak.measures.energy import measure as energy_measure
from subak.measures.energy import settings as energy_settings
from subak.measures.fairness import measure as fairness
from subak.measures.runs import EnergyFacts, FailureFacts, FairnessFacts, FederationFacts, Summary
from subak.measures.tasks import jobs
from subak.placement.claims import STATUSES
from subak.simulator import federated_results, results
from subak.workload import readers
from subak.workload import table as workload
from subak.workload.readers import READERS
from subak.workload.samples import sample_names

AMOUNTS = "*resource*"
TABLES = ("Tables are Parquet files, headers TOML. Times are seconds from the beginning of the workload; amounts in "
          "tables are whole units of the size that the header states.\n")


def energy() -> list[str]:
    return [
        "# Energy, cost and carbon\n",
        f"With `--energy`, a run says what its machines drew, cost and emitted. Shipped files: "
        f"{', '.join(f'`{name}`' for name in energy_settings.energy_names())}, whose comments name its sources.\n",
        inspect.cleandoc(energy_settings.__doc__ or "").split("\n\n", 1)[1] + "\n",
        inspect.cleandoc(energy_measure.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "`energy` of `summary.json`, null where there is no such file\n",
        *table(("key", "what it is"), [(f"`{name}`", text) for name, text in comments_of(EnergyFacts).items()]),
    ]


def study_text() -> str:
    """Return what a study file is, its example as a fenced block."""
    blocks = inspect.cleandoc(document.__doc__ or "").split("\n\n")
    inside = [number for number, block in enumerate(blocks) if block.startswith("    ")]
    example = textwrap.dedent("\n\n".join(blocks[inside[0] : inside[-1] + 1]))
    return "\n\n".join([*blocks[: inside[0]], f"```toml\n{example}\n```", *blocks[inside[-1] + 1 :]])


def workload_folder() -> list[str]:
    """Return what is in a workload folder and a fleet folder."""
    resources = [(AMOUNTS, "Int32", "one column for each resource, in its units")]
    return [
        "# Workload and fleet folders\n",
        TABLES,
        "## A workload folder\n",
        inspect.cleandoc(workload.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "`workload.toml` holds `resources` (a list of `{name, unit, of}`: amounts are multiples of `unit`, measured in "
        "`of`) and `provenance` (name, origin, licence, notes, and `calendar` where it is known which day "
        "time 0 is: `epoch`, its seconds since 1970, and the `zone` of dates, absent where the trace's clocks name "
        "none). "
        f"Shipped samples: {', '.join(f'`{name}`' for name in sample_names())}. Readers make such folders of "
        f"{', '.join(f'`{name}`' for name in READERS)}.\n",
        "`jobs.parquet`\n", *columns(workload, "JOB_COLUMNS"),
        "`stages.parquet`\n", *columns(workload, "STAGE_COLUMNS", resources),
        "and, where known,\n", *columns(workload, "OPTIONAL_STAGE_COLUMNS"),
        "`tasks.parquet`\n", *columns(workload, "TASK_COLUMNS"),
        "and, where known,\n", *columns(workload, "OPTIONAL_TASK_COLUMNS"),
        "## A fleet folder\n",
        "`fleet.toml` holds the same `resources` and its own `provenance`. In a workload folder, the fleet is the "
        "folder `fleet`.\n",
        "`machines.parquet`\n", *columns(fleet, "MACHINE_COLUMNS", resources),
        "`attributes.parquet`\n", *columns(fleet, "ATTRIBUTE_COLUMNS"),
        "`changes.parquet`\n", *columns(fleet, "CHANGE_COLUMNS", resources),
        "and, where machines differ in speed, `speeds.parquet`\n", *columns(fleet, "SPEED_COLUMNS"),
    ]


def run_folder() -> list[str]:
    """Return what is in a run folder, column by column."""
    return [
        "# A run folder\n",
        TABLES,
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
    ]


def folders() -> list[str]:
    """Return what is in the folders of several runs."""
    return [
        "# Comparison and study folders\n",
        "## A comparison folder\n",
        *table(("file", "what it holds"), [
            ("`runs/NAME/`", "a run folder for each scheduler and seed that succeeded"),
            ("`comparison.toml`", "the workload and the names of the runs"),
            ("`report.html`", "the page"),
        ]),
        "## A study folder\n",
        *table(("file", "what it holds"), [
            ("`runs.parquet`", "a row a run: its digest, its settings, scheduler and seed, what went wrong, and its "
                               "measures in seconds, shares of one and counts"),
            ("`report.html`", "the page"),
            ("`study.json`", "the plan: settings, points, and the digest of each run"),
            ("`runs/DIGEST.json`", "a run's summary, without what differs when it is repeated, or why there is none"),
        ]),
    ]


def study_file() -> list[str]:
    """Return how a study is written."""
    return [
        "# A study file\n",
        f"{study_text()}\n",
    ]


def scenario_file() -> list[str]:
    """Return the keys of a scenario."""
    return [
        "# A scenario file\n",
        "TOML; paths in it are relative to its folder. Every key may be left out.\n",
        *table(("key", "type", "default", "what it is"), struct_rows(Scenario)),
    ]


def format_pages() -> dict[str, tuple[str, str]]:
    """Return the text of the page of each reader, which is what its file says of itself, and a line, by name."""
    pages = {}
    for name, reader in READERS.items():
        module = import_module(f"{readers.__name__}.{readers.FORMATS[name]}")
        if hasattr(module, "__path__"):  # a room, in which the file that reads says more
            module = import_module(reader.read.__module__)
        about = inspect.cleandoc(module.__doc__ or "")
        pages[name] = reader.summary, f"# `{name}`\n\nRead from: {reader.summary}.\n\n{about}\n"
    return pages
