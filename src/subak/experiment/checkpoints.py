"""The folder that a run in chunks grows in: a scratch folder, or one that is kept to go on from."""
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from subak.errors import InputError, RunError
from subak.experiment.folder import of_run, scenario_values
from subak.experiment.measuring import Room
from subak.experiment.scenario import Scenario
from subak.measures.tasks.job_sums import JobSums
from subak.output.places import located, refuse_folder
from subak.simulator.chunks.checkpoint import EVERY_S, FILE, Checkpoint
from subak.simulator.chunks.run import Cut
from subak.version import VERSION
from subak.workload.stored import TASKS_READ

OURS = re.compile(r"checkpoint\.npz|(block-\d{6}|[a-z_]+)\.bin|\..*")  # what a checkpoint's folder may hold


class Chunks(NamedTuple):
    """How a run reads some tasks at a time."""

    tasks: int | None = None  # None: as many as suit
    checkpoint: Path | None = None  # a folder to keep the run in while it goes on, and to go on from
    every: float = EVERY_S  # seconds between two checkpoints, at least
    kept: bool = True  # whether the table of tasks is, else it is empty
    sums: JobSums | None = None  # of jobs over all tasks, where somebody has them


class Place(NamedTuple):
    """Where such a run grows, and is measured."""

    cut: Cut
    room: Room
    sums: JobSums | None


@contextmanager
def growing(partial: Path, chunks: Chunks, run: dict[str, str]) -> Iterator[Place]:
    """Yield where a run grows whose results go to *partial*; *run* tells it from others.

    The folder goes when the run is whole; that of a checkpoint goes only then.
    """
    folder = chunks.checkpoint or partial / ".blocks"
    checkpoint = None if chunks.checkpoint is None else Checkpoint(folder, run, chunks.every)
    with _alone(folder):
        try:
            yield Place(Cut(folder, chunks.tasks or TASKS_READ, checkpoint),
                        Room(folder, partial / "tasks.parquet", chunks.kept), chunks.sums)
        except OSError as error:
            if checkpoint is None:
                raise  # whoever makes the folder of the results says of it what is wrong
            raise RunError(f"{folder}: could not be written: {error.strerror or error}") from None
        for path in folder.iterdir():
            if OURS.fullmatch(path.name):
                path.unlink()
    with suppress(OSError):  # somebody put something there meanwhile
        folder.rmdir()


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Make a folder, and let no other process be at it meanwhile. Raises InputError where one is."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        number = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"{place}: could not be written: {error.strerror or error}") from None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"{place}: another process is at it; choose another folder, or wait") from None
    finally:
        os.close(number)


def refuse_checkpoint(folder: Path, out: Path | None, inputs: list[Path]) -> None:
    """Raise InputError, in one line, unless a run may be kept in *folder*: nothing of anybody else's is in it.

    *out* is where its results are to be, *inputs* what it reads.
    """
    if out is not None and located(folder).is_relative_to(located(out)):
        raise InputError(f"{folder}: a checkpoint must not be in the folder of the results, {out}")
    inputs = inputs if out is None else [*inputs, out]
    if folder.is_dir() and not folder.is_symlink() and any(folder.iterdir()):
        strange = next((path.name for path in sorted(folder.iterdir()) if not OURS.fullmatch(path.name)), None)
        if strange is not None:
            raise InputError(f"{folder}: must be empty or hold a checkpoint alone, it has {strange}")
        return
    refuse_folder(folder, FILE, False, inputs)


def known_by(scenario: Scenario, name: str, seed: int) -> dict[str, str]:
    """Return what tells a run from others, in words."""
    values = scenario_values(of_run(scenario, name, [seed]))
    return {"version": VERSION, **{key: msgspec.json.encode(value).decode() for key, value in values.items()}}
