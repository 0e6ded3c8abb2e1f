"""Prints everything that goes to the terminal, with control characters escaped.

What is piped is as wide as it needs to be, so that no table loses anything. Strings are plain; square brackets and
words between colons are what they are, not styles and emoji.
"""
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec
import rich.console
import rich.progress
import rich.text
from rich.progress import ProgressColumn, SpinnerColumn, TimeElapsedColumn
from rich.segment import Segment, Segments

from subak.json_type import Json
from subak.output.plain import STEERING, plain
from subak.report.number_text import seconds_text

PIPED_WIDTH = 10_000  # characters: no line is as long
SAID_EACH_S = 60.0  # how far something is, where there is no terminal
SAID_AT_ONCE = 4  # parts of it in a line


class Text(rich.text.Text):
    """A line of text in one style."""

    def __init__(self, text: str = "", style: str = "") -> None:
        super().__init__(plain(text), style)


class Console(rich.console.Console):
    """Standard output or standard error; what is printed is text, not markup."""

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        super().__init__(stderr=stderr, **options)
        if not (stderr or self.is_terminal or {"width", "file"} & options.keys() or "COLUMNS" in os.environ):
            self.width = PIPED_WIDTH

    def render_str(self, text: str, **options: Json) -> rich.text.Text:
        """Return a string as it is printed, wherever it stands: rich asks here for every one."""
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})

    def on_broken_pipe(self) -> None:
        """Go on in silence when nobody reads standard error any more; a closed standard output ends the program."""
        if not self.stderr:
            super().on_broken_pipe()
        self.quiet = True
        silence(sys.stderr)


class TextColumn(rich.progress.TextColumn):
    """A text beside a progress bar."""

    def render(self, task: rich.progress.Task) -> Text:
        """Return the text of a task."""
        return Text(self.text_format.format(task=task))


class Progress(rich.progress.Progress):
    """Progress bars, which go when done; without a terminal a line after each minute says how far it is."""

    def __init__(self, *columns: ProgressColumn) -> None:
        console = Console(stderr=True)
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._is_over = threading.Event()

    def start(self) -> None:
        """Show bars, or begin to count minutes."""
        super().start()
        if self.disable:
            threading.Thread(target=self._say_each_minute, name="progress", daemon=True).start()

    def stop(self) -> None:
        """Take the bars away, and say nothing more."""
        self._is_over.set()
        super().stop()

    def _say_each_minute(self) -> None:
        began = time.monotonic()
        while not self._is_over.wait(SAID_EACH_S):
            self.console.print(Text(how_far(self.tasks, time.monotonic() - began)), soft_wrap=True)


def how_far(tasks: Iterable[rich.progress.Task], seconds: float) -> str:
    """Return a line on what is not done after so many seconds."""
    left = [task for task in tasks if not task.finished]
    words = [task.description + ("" if task.total is None else f" {task.completed:,.0f} of {task.total:,.0f}")
             + ("" if not task.time_remaining else f", about {seconds_text(task.time_remaining)} left")
             for task in sorted(left, key=lambda task: -task.completed)[:SAID_AT_ONCE]]
    if len(left) > len(words):
        words.append(f"{len(left) - len(words):,} more")
    return f"After {seconds_text(seconds)}: {'; '.join(words) or 'all is done, and is being written'}"


def bars(*columns: ProgressColumn) -> Progress:
    """Return progress bars: a description, then *columns*."""
    return Progress(TextColumn("{task.description}"), *columns)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say what is being waited for, and since when, where it cannot be said how far it is."""
    with bars(SpinnerColumn(), TimeElapsedColumn()) as shown:
        shown.add_task(text, total=None)
        yield


def echo(text: object, err: bool = False) -> None:
    """Print a line, however long it is."""
    Console(stderr=err).print(Text(str(text)), soft_wrap=True)


def echo_json(value: object) -> None:
    """Print a value as indented JSON, whose strings hold escapes in the place of what would steer a terminal."""
    text = msgspec.json.format(msgspec.json.encode(value)).decode()
    safe = STEERING.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
    Console().print(Segments([Segment(f"{safe}\n")]), soft_wrap=True, end="")  # a Text would look at each line


def silence(stream: TextIO) -> None:
    """Let what is still to come of *stream*, which cannot be written, go nowhere, also when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
