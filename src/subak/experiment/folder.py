"""Writes the folder of a run: its tables, its summary, and the scenario that repeats it."""
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from subak.experiment.inputs import energy_of
from subak.experiment.scenario import IN_MEMORY, Scenario, settings_of
from subak.measures.runs import (
    Summary,
)
from subak.policy_files import Given, is_piped, named_scheduler, piped_command, policy_file, policy_name
from subak.settings import changed_settings, used_by
from subak.tables import write_table
from subak.toml_files import write_toml
from subak.workload.samples import is_path

COPIED = ("faults", "failures", "queues")  # files that a run folder has copies of; energy's is written out


class Done(NamedTuple):
    """What a run leaves: the summary, and its tables by the names of their files."""

    summary: Summary
    tables: dict[str, pl.DataFrame]
    scenario: Scenario  # as it was done
    search_moves: int | None = None  # of a search that improved its plan


def run_label(scheduler: str, seed: int, seeds: list[int]) -> str:
    """Return a run's name: the scheduler's, and the seed's where there are several."""
    name = Path(scheduler).name if policy_file(scheduler) else scheduler
    if is_piped(name):
        name = "-".join(["pipe", *(Path(word).name for word in piped_command(name))])
    label = name.replace("/", "_").replace(":", "-")
    return f"{label}-s{seed}" if len(seeds) > 1 else label


def write_run(folder: Path, done: Done, name: str, seed: int) -> None:
    """Write a run into a folder that is there and empty."""
    for each, table in done.tables.items():
        write_table(table, folder / f"{each}.parquet")
    (folder / "summary.json").write_bytes(summary_json(done.summary))
    if done.scenario.workload != IN_MEMORY and not isinstance(name, Given):  # else no file could say it
        write_scenario(folder, done.scenario, name, [seed], done.search_moves)


def summary_json(summary: Summary) -> bytes:
    """Return a summary as its file has it."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1)


def write_scenario(
    partial: Path, scenario: Scenario, name: str, seeds: list[int], search_moves: int | None = None
) -> None:
    """Write the scenario of one run, or of one a seed: enough to repeat it, with copies of the files that it names.

    A search that was limited in time is repeated in as many moves.
    """
    one = of_run(scenario, name, seeds)
    one.search_seconds, one.search_moves = Scenario().search_seconds, search_moves
    file = policy_file(name)
    if file is not None:
        shutil.copyfile(file, partial / "policy.py")
        one.schedulers = [f"policy.py:{policy_name(name)}"]
    for kind in COPIED:
        if getattr(one, kind):
            shutil.copyfile(getattr(one, kind), partial / f"{kind}.toml")
            setattr(one, kind, f"{kind}.toml")
    energy = energy_of(one)
    if energy is not None:
        write_toml(energy, partial / "energy.toml")
        one.energy = "energy.toml"
    if is_path(one.workload):
        one.workload = str(Path(one.workload).resolve())
    if one.fleet:
        one.fleet = str(Path(one.fleet).resolve())
    write_toml(scenario_values(one), partial / "scenario.toml")


def of_run(scenario: Scenario, name: str, seeds: list[int]) -> Scenario:
    """Return the scenario of one run, or of one a seed, without the settings that its scheduler does not go by."""
    used = used_by(scenario, named_scheduler(name, scenario.parameters))
    one = msgspec.structs.replace(
        Scenario(), **{**used, "schedulers": [name], "seeds": seeds, "federation": settings_of(scenario, name)})
    one.parameters = _own_parameters(scenario, name)
    return one


def _own_parameters(scenario: Scenario, name: str) -> dict[str, float]:
    """Return the scenario's values of what a policy from a file declares."""
    known = {each.name for each in named_scheduler(name, scenario.parameters).parameters}
    return {key: value for key, value in scenario.parameters.items() if key in known}


def scenario_values(scenario: Scenario) -> dict[str, object]:
    """Return what a scenario file says: what differs from the defaults, and what it is about."""
    about = {name: getattr(scenario, name) for name in ("workload", "schedulers", "seeds")}
    changed = {**about, **changed_settings(scenario)}
    return {name: changed_settings(value) if isinstance(value, msgspec.Struct) else value
            for name, value in changed.items()}
