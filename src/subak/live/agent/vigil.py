"""Ends an agent that is no longer needed: its folder was removed, or its worker is long gone."""
import os
from pathlib import Path

LOOK_S = 5.0  # between two looks


class Vigil:
    """Ends an agent that nobody needs; *idle_s*: seconds without a worker and without attempts after which it ends."""

    def __init__(self, folder: Path, idle_s: float, now: float) -> None:
        self.folder, self.idle_s = folder, idle_s
        self.is_of = self._name()
        self.needed_at = now  # when a worker was last connected, or an attempt ran
        self.look_at = now + LOOK_S

    def why_to_end(self, now: float, is_needed: bool) -> str:
        """Return why the agent should end now, or nothing."""
        self.look_at = now + LOOK_S
        if is_needed:
            self.needed_at = now
        if self._name() != self.is_of:
            return f"its folder {self.folder} was removed"
        if now - self.needed_at >= self.idle_s:
            return f"no worker was connected, and nothing ran, for {self.idle_s:g} s"
        return ""

    def _name(self) -> tuple[int, int] | None:
        """Return what tells the folder from another one at the same place."""
        try:
            found = os.stat(self.folder)  # noqa: PTH116  (as in output.py)
        except FileNotFoundError:
            return None
        except OSError:
            return self.is_of  # a disk that fails says nothing about the folder
        return found.st_dev, found.st_ino
