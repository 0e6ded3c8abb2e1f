"""Finds what distinguishes runs shown side by side besides scheduler and seed.

It is read from each run's scenario.toml, key by key. What all runs have alike is not said. Settings that only some
schedulers support are compared among runs of one scheduler, so that a comparison of several schedulers stays one of
schedulers. Runs of different workloads are refused: nothing that differs between them could be told from that.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from subak.errors import InputError
from subak.measures.runs import Run
from subak.toml_files import read_toml
from subak.workload.redraws import NONE

# What names a run, what it was judged by, and what is compared by the files' contents.
APART = ("schedulers", "seeds", "objectives", "workload", "workload_digest", "fleet", "resample")
COPIES = {"policy": "policy.py", "faults": "faults.toml", "failures": "failures.toml", "queues": "queues.toml"}
OF_ONE_SCHEDULER = (  # settings that not all support
    "federation", "lotes", "reclaims_per_hour", "hold_back_after", "policy", "gangs")
OF_ONE_RUN = ("search_moves",)  # that a limit in time came to, with each seed
DIGEST_SHOWN = 6  # digits


class Ran(NamedTuple):
    """A run, and the scenario that it was made by; empty where its folder does not hold it."""

    run: Run
    settings: dict[str, str]
    identity: tuple[str, str, str]  # of what it ran on: name, digest and how the seed changed it


def told_apart(runs: list[Run]) -> list[Run]:
    """Return the runs with what tells those apart that would have the same name.

    Raises InputError for runs of different workloads, and for two of one scheduler, seed and settings.
    """
    every = [_ran(run) for run in runs]
    _refuse_workloads(every)
    told = [replace(each.run, settings=_differing(each, every)) for each in every]
    for run in told:
        twins = [other for other in told if (other.group, other.summary.seed) == (run.group, run.summary.seed)]
        if len(twins) > 1:
            raise InputError(f"{twins[0].folder} and {twins[1].folder}: labels of runs must differ, {run.label!r} "
                             f"occurs {len(twins)} times, and nothing in their scenarios tells them apart")
    return told


def differences(runs: list[Run]) -> dict[str, list[str]]:
    """Return each setting that differs among the runs, with what it is; empty texts are for what was not set."""
    names = list(dict.fromkeys(name for run in runs for name, _ in run.settings))
    return {name: list(dict.fromkeys(dict(run.settings).get(name, "") for run in runs)) for name in names}


def of_one_fleet(runs: list[Run]) -> bool:
    """Whether all runs had the same machines."""
    return len({run.summary.fleet for run in runs}) == 1


def _differing(ran: Ran, every: list[Ran]) -> tuple[tuple[str, str], ...]:
    names = dict.fromkeys(name for each in every for name in each.settings)
    return tuple((name, ran.settings[name]) for name in names
                 if name in ran.settings and len({each.settings.get(name) for each in _rivals(name, ran, every)}) > 1)


def _rivals(name: str, ran: Ran, every: list[Ran]) -> Iterator[Ran]:
    """Return the runs among which a setting counts."""
    key, mine = name.partition(".")[0], ran.run
    for each in every:
        alike = each.run.summary.scheduler == mine.summary.scheduler
        if key in OF_ONE_RUN:
            alike &= each.run.summary.seed == mine.summary.seed
        if alike or key not in (*OF_ONE_RUN, *OF_ONE_SCHEDULER):
            yield each


def _refuse_workloads(every: list[Ran]) -> None:
    first = every[0]
    other = next((each for each in every if each.identity != first.identity), None)
    if other is None:
        return
    (name, digest, how), (other_name, other_digest, other_how) = first.identity, other.identity
    what = (f"runs of different workloads, {name} and {other_name}, cannot be compared" if name != other_name else
            f"runs of two workloads {name} ({digest or 'unknown'} and {other_digest or 'unknown'}) cannot be compared"
            if digest != other_digest else
            f"seeds redraw the workload in one (resample {how}), and not so in the other ({other_how}), so they ran on "
            "different workloads, and cannot be compared")
    raise InputError(f"{first.run.folder} and {other.run.folder}: {what}")


def _ran(run: Run) -> Ran:
    path = run.folder / "scenario.toml"
    scenario: dict[str, Any] = read_toml(path, dict) if path.is_file() else {}
    identity = run.summary.workload.name, str(scenario.get("workload_digest", "")), str(scenario.get("resample", NONE))
    settings = dict(_flat({key: value for key, value in scenario.items() if key not in (*APART, *COPIES)}))
    digest = settings.pop("fleet_digest", "")
    if digest:
        settings = {"fleet": f"{_fleet_name(scenario)} ({digest[:DIGEST_SHOWN]})", **settings}
    return Ran(run, {**settings, **dict(_copies(run.folder))}, identity)


def _fleet_name(scenario: dict[str, Any]) -> str:
    """Return what the folder of a fleet is called, or the one above it, where it is in its workload's."""
    folder = Path(str(scenario.get("fleet") or Path(str(scenario.get("workload", ""))) / "fleet"))
    return folder.parent.name if folder.name == "fleet" else folder.name


def _copies(folder: Path) -> Iterator[tuple[str, str]]:
    """Return the digests of the files that a run was made with."""
    for name, file in COPIES.items():
        if (folder / file).is_file():
            yield name, hashlib.sha256((folder / file).read_bytes()).hexdigest()[:DIGEST_SHOWN]


def _flat(values: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
