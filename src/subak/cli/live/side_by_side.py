"""Follows the output of several jobs and tasks at once: whole lines, each behind the name of its job."""
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, TextIO

from subak.cli.live.show import ending_text, remark
from subak.cli.live.writing import COLOUR, HEARD_S, plain_text, stream_of, write_attempts
from subak.errors import SubakError
from subak.live.api.models import FINISHED, TASK_ENDED, JobView, TaskView

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client, ClientSettings

UNENDED_BYTES = 1 << 16  # of a line without an end that are held back; longer ones are cut into several
COLOURS = tuple(f"\x1b[{number}m" for number in (36, 33, 32, 35, 34, 96, 93, 92, 95, 94))  # of labels, in turn
UNCOLOURED = "\x1b[0m"
LOOK_S = 0.2  # between two looks at a task whose output has ended, and whose end is not noted yet


class Labels:
    """The labels of all that is followed, equally wide, and the lock with which one line is written at a time."""

    def __init__(self, names: Iterable[str]) -> None:
        self.lock = threading.RLock()
        self.colours = dict(zip(names, cycle(COLOURS), strict=False))
        self.width = max(map(len, self.colours), default=0)

    def of(self, name: str, stream: TextIO) -> str:
        """Return what stands before a line: the name, on a terminal in its colour."""
        text = f"{name.ljust(self.width)} | "
        if not stream.isatty() or os.environ.get("NO_COLOR"):
            return text
        return f"{self.colours[name]}{text}{UNCOLOURED}"

    def remark(self, words: str) -> None:
        """Say something on standard error, between two lines."""
        with self.lock:
            remark([words])


class LabelledWriter:
    """Writes a task's output to a stream in whole lines, each behind the label of *name*."""

    def __init__(self, stream: TextIO, raw: bool, labels: Labels, name: str) -> None:
        self.stream, self.labels = stream, labels
        self.label = labels.of(name, stream)
        self.is_plain = not raw and stream.isatty()
        self.rest = b""  # of a line whose end has not come

    def write(self, data: bytes) -> None:
        """Write the lines that a piece completes."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        while len(self.rest) > UNENDED_BYTES:
            lines.append(self.rest[:UNENDED_BYTES])
            self.rest = self.rest[UNENDED_BYTES:]
        self._show(lines)

    def end(self) -> None:
        """Write what is left of the last line."""
        lines, self.rest = [self.rest][:len(self.rest)], b""
        self._show(lines)

    def remark(self, words: str) -> None:
        """Say something on standard error, between two lines."""
        self.labels.remark(words)

    def _show(self, lines: list[bytes]) -> None:
        if not lines:
            return
        with self.labels.lock:
            if self.is_plain:
                self.stream.write("".join(f"{self.label}{_last_state(line)}\n" for line in lines))
            else:
                self.stream.flush()
                label = self.label.encode()
                self.stream.buffer.write(b"".join(b"%b%b\n" % (label, line) for line in lines))
            self.stream.flush()


class Follower:
    """Follows one job, its tasks one after the other, or one task; each stream in a thread and by a connection."""

    def __init__(self, settings: "ClientSettings", found: JobView | TaskView, name: str, labels: Labels,
                 typed: str) -> None:
        self.settings, self.found, self.name, self.labels, self.typed = settings, found, name, labels, typed
        self.open = 0  # streams that have not ended
        self.error: Exception | None = None
        self.has_failed = False

    def start(self, streams: Sequence[str], raw: bool, attempt: int, tail: int) -> list[threading.Thread]:
        """Begin to follow; return the threads that do."""
        self.open = len(streams)
        threads = [threading.Thread(target=self._follow, args=(stream, LabelledWriter(
            stream_of(stream if len(streams) > 1 else "stdout"), raw, self.labels, self.name), attempt, tail),
            daemon=True) for stream in streams]
        for thread in threads:
            thread.start()
        return threads

    def _follow(self, stream: str, writer: LabelledWriter, attempt: int, tail: int) -> None:
        from subak.live.client import Client  # noqa: PLC0415  (see above)

        try:
            with Client(self.settings) as federation:
                for task in self._tasks():
                    chunks = federation.follow(task, stream, attempt=attempt, tail=tail)
                    write_attempts(chunks, writer, task, begins=not tail)
                    writer.end()
                with self.labels.lock:
                    self.open -= 1
                    is_last = not self.open
                if is_last:
                    self._say_end(federation)
        except SubakError as error:
            with self.labels.lock:
                if self.error is None:
                    self.labels.remark(f"{self.name}: {error}")
                self.error = self.error or error
        except Exception as error:
            self.error = error

    def _tasks(self) -> Iterable[str]:
        if isinstance(self.found, TaskView):
            return (self.found.id,)
        return (f"{self.found.id}.{index}" for index in range(self.found.tasks))

    def _say_end(self, federation: "Client") -> None:
        """Say how it ended; its output may end before that is known."""
        found = ended(federation, self.found)
        self.has_failed = found.outcome != FINISHED
        self.labels.remark(ending_text(found, self.name, self.typed))


def follow_together(settings: "ClientSettings", found: Sequence[tuple[str, JobView | TaskView]], raw: bool,
                    attempt: int, tail: int, streams: Sequence[str], typed: Mapping[str, str]) -> tuple[bool, bool]:
    """Write what jobs and tasks write until all have ended, each line behind its name, and how each ended.

    *typed*: what the user has called each, by its id.
    Return whether all of it could be read, and whether all finished. Raises OSError where nobody reads any more.
    """
    labels = Labels(name for name, _ in found)
    followers = [Follower(settings, each, name, labels, typed[each.id]) for name, each in found]
    for thread in [thread for each in followers for thread in each.start(streams, raw, attempt, tail)]:
        while thread.is_alive():
            thread.join(HEARD_S)
            for each in followers:
                if each.error is not None and not isinstance(each.error, SubakError):
                    raise each.error
    return all(each.error is None for each in followers), not any(each.has_failed for each in followers)


def labels_of(found: Sequence[JobView | TaskView], jobs: dict[str, str]) -> list[str]:
    """Return a name for each: of a job its name, of a task NAME.INDEX; the id, where two have the same name.

    *jobs*: names of jobs by their ids.
    """
    names = [each.name if isinstance(each, JobView) else f"{jobs[each.job]}.{each.index}" for each in found]
    return [name if names.count(name) == 1 else each.id for name, each in zip(names, found, strict=True)]


def ended(federation: "Client", found: JobView | TaskView) -> JobView | TaskView:
    """Return a job or a task when it has ended."""
    while found.state != TASK_ENDED:
        if isinstance(found, JobView):
            found = federation.wait(found.id)
            continue
        found = federation.task(found.id)
        if found.state != TASK_ENDED:
            time.sleep(LOOK_S)
    return found


def _last_state(line: bytes) -> str:
    """Return a line as a terminal shows it in the end: of a progress bar its last state, without colours."""
    text = COLOUR.sub("", line.decode("utf-8", "backslashreplace")).rstrip("\r")
    return plain_text(re.split("\r+", text)[-1])
