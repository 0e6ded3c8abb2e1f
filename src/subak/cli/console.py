"""The terminal: the one place through which text reaches it, tables and progress bars included.

Much of it comes from outside: names of files, queues, jobs and policies. So nothing is taken for Rich's markup
(`[bold]`), for an emoji (`:cat:`), or for a command to the terminal (escape sequences).
"""
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment

# Control characters, of C0 and C1, but for the tab and the end of a line; and those that turn the direction of text.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class _Terminal(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(COMMANDS.sub("", segment.text), segment.style)


def terminal(stderr: bool = False) -> Console:
    """Return a console that shows text as it is."""
    return _Terminal(stderr=stderr, markup=False, emoji=False)


def say(text: str, stderr: bool = False, style: str = "") -> None:
    """Print a sentence as one line, however long, also where a name in it has several lines."""
    terminal(stderr).print(" ".join(text.split()), style=style, highlight=False, soft_wrap=True)


def bars(*columns: ProgressColumn) -> Progress:
    """Return progress bars: a description, then *columns*; they go when done, and are none without a terminal."""
    console = terminal(stderr=True)
    return Progress(text_column("{task.description}"), *columns, console=console, transient=True,
                    disable=not console.is_terminal)


def text_column(form: str) -> TextColumn:
    """Return a column of a bar whose text is shown as it is."""
    return TextColumn(form, markup=False)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say what is being waited for, and since when, where it cannot be said how far it is."""
    with bars(SpinnerColumn(), TimeElapsedColumn()) as shown:
        shown.add_task(text, total=None)
        yield
