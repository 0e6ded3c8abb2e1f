"""Reads runs and comparisons back from their folders."""
import re
from pathlib import Path

import msgspec
import polars as pl

from subak.errors import InputError, first_line
from subak.measures.runs import Run, Summary
from subak.measures.side_by_side import told_apart
from subak.output.workplaces import is_folder
from subak.tables import scan_table
from subak.toml_files import read_toml

# The columns that are read: those of numbers, then others.
TASK_COLUMNS = ("start", "wait_time", "run_time", "ready", "finish", "arrival", "job", "index", "attempts"), (
    "queue", "machine", "status", "reason")
TIMELINE_COLUMNS = "time", "span", "waiting", "waiting_max"
QUEUE_COLUMNS = ("level", "share_mean", "guarantee_mean", "shortfall", "shortfall_mean", "starved_longest",
                 "demanding"), ("queue", "leaf")
STINT_COLUMNS = ("slot", "begin", "end", "tasks"), ("kind", "machine", "job")
SHARE_COLUMNS = ("time", "span", "level", "share", "guarantee"), ("queue",)
POWER_COLUMNS = ("time", "span", "watts", "price", "carbon")

COMPARISON = "comparison.toml"  # of a comparison folder


class _Comparison(msgspec.Struct):
    """What a comparison folder says of itself."""

    runs: list[str] = []  # labels


def load_runs(*paths: Path) -> list[Run]:
    """Read run folders, and every run of comparison folders, in the order in which they were asked for.

    Their labels say what differs between them beside schedulers and seeds. Raises InputError, naming the file and the
    rule, for anything else, for runs of different workloads, and for runs that nothing tells apart.
    """
    return told_apart([run for path in paths for run in _load_folder(path)])


def _load_folder(path: Path) -> list[Run]:
    asked = {label: place for place, label in enumerate(_asked(path))}
    return sorted((_load_run(folder) for folder in _run_folders(path)),
                  key=lambda run: (asked.get(run.label, len(asked)), run.group, run.summary.seed, run.label))


def _asked(path: Path) -> list[str]:
    """Return the labels of a comparison's runs in the order that was asked for; none where that is not known."""
    file = path / COMPARISON
    return read_toml(file, _Comparison).runs if file.is_file() else []


def _run_folders(path: Path) -> list[Path]:
    if not is_folder(path):
        raise InputError(f"{path}: no such folder")
    if (path / "summary.json").is_file():
        return [path]
    if not (path / "runs").is_dir():
        raise InputError(f"{path}: neither a run (it has no summary.json) nor a comparison (it has no folder runs)")
    folders = [folder for folder in sorted((path / "runs").iterdir()) if folder.is_dir() and not _is_partial(folder)]
    if not folders:
        raise InputError(f"{path / 'runs'}: holds no finished run")
    return folders


def _is_partial(folder: Path) -> bool:
    """Whether a run is still being written (`tables.new_folder`), or was left behind half-written."""
    return folder.name.startswith(".") or bool(re.search(r"\.partial(-\d+)?$", folder.name))


def _load_run(folder: Path) -> Run:
    run = Run(folder, _load_summary(folder / "summary.json"))
    amounts = [f"{kind}_{resource.name}" for resource in run.summary.resources for kind in ("used", "capacity")]
    _check_table(folder / "tasks.parquet", *TASK_COLUMNS)
    _check_table(folder / "timeline.parquet", (*TIMELINE_COLUMNS, *amounts))
    if run.summary.fairness:
        _check_table(folder / "queues.parquet", *QUEUE_COLUMNS)
        _check_table(folder / "shares.parquet", *SHARE_COLUMNS)
    if run.summary.energy:
        _check_table(folder / "power.parquet", POWER_COLUMNS)
    if run.summary.makespan_bound is not None:
        _check_table(folder / "stints.parquet", *STINT_COLUMNS)
    return run


def _load_summary(path: Path) -> Summary:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (msgspec.DecodeError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {first_line(error)}") from None


def _check_table(path: Path, numbers: tuple[str, ...], others: tuple[str, ...] = ()) -> None:
    """Read only the footer: its columns' names and types say whether the file is what its name promises."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        present = scan_table(path).collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {first_line(error)}") from None
    missing = [name for name in (*numbers, *others) if name not in present]
    if missing:
        raise InputError(f"{path}: columns missing: {', '.join(missing)}")
    for name in numbers:
        if not (present[name].is_numeric() or present[name] == pl.Null):
            raise InputError(f"{path}: {name} must hold numbers, not {present[name]}")
