"""Writes a checkpoint of a run in chunks: one file, replaced whole."""
import io
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from subak.errors import InputError
from subak.output.writing import write_file
from subak.simulator.chunks.stream import Stream
from subak.simulator.engine.run_loop import Course

FILE = "checkpoint.npz"  # in the folder of the blocks
EVERY_S = 60.0  # seconds between two, at least


@dataclass
class Checkpoint:
    """Where a run is kept while it goes on, and what it is known by."""

    folder: Path
    run: dict[str, str]  # what tells it from other runs: names of settings, and their values in words
    every: float = EVERY_S
    written: float = field(default_factory=time.monotonic)

    def is_due(self) -> bool:
        """Whether it is time for another."""
        return time.monotonic() - self.written >= self.every

    def write(self, course: Course, stream: Stream) -> None:
        """Keep a run that has dropped who ended. Raises RunError when the disk refuses."""
        stream.blocks.flush()
        held = {
            "run": np.array(json.dumps(self.run)), "read": np.array(stream.read), "seconds": np.array(course.seconds),
            "losses": np.hstack([np.zeros((4, 0)), *course.losses]),
            "timeline": np.concatenate([course.run.simulation.record.rows[:0], *course.timeline.kept]),
            **stream.run.kept(),
        }
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **held)
        write_file(self.folder / FILE, file.getvalue())
        self.written = time.monotonic()

    def restore(self, course: Course, stream: Stream) -> bool:
        """Let a run that has just begun be where it was kept; return whether there was anything.

        Raises InputError, naming what differs, for a checkpoint of another run.
        """
        path = self.folder / FILE
        if not path.exists():
            return False
        try:
            with np.load(path, allow_pickle=False) as file:
                held = {name: file[name] for name in file.files}
            self._refuse_other(json.loads(str(held["run"])))
            stream.run.go_on_from(held)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise InputError(f"{path}: is no checkpoint that this version can read ({type(error).__name__})") from None
        stream.read, course.seconds = int(held["read"]), float(held["seconds"])
        course.losses, course.timeline.kept = [held["losses"]], [held["timeline"]]
        return True

    def _refuse_other(self, run: dict[str, str]) -> None:
        for name in {**run, **self.run}:
            if run.get(name) != self.run.get(name):
                raise InputError(f"{self.folder}: holds a checkpoint of another run, whose {name} is "
                                 f"{run.get(name, 'not said')}, not {self.run.get(name, 'not said')}; give another "
                                 "folder, or remove it")
