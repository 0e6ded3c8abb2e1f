"""Copies the output of tasks to standard output; on a terminal, what could steer it is dropped or escaped."""
import codecs
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from subak.cli.live.show import remark
from subak.errors import SubakError
from subak.live.api.models import STREAMS, LogChunk
from subak.output.plain import STEERING

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import ClientSettings

KEPT = "\n\t"
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")  # and bold, underlined, ...: these change no text, and are dropped
CUT = re.compile(r"(?:\x1b(?:\[[0-9;:]{0,64})?|\r)\Z")  # what the next piece may make a colour, or the end of a line
CLEAR = "\r\x1b[K"  # ours: what stands in the line is replaced, as a progress bar does
HEARD_S = 0.2  # between two looks for Ctrl-C


class OutputWriter:
    """Writes pieces of a task's output to a stream; with *raw* also to a terminal as they are."""

    def __init__(self, stream: TextIO, raw: bool) -> None:
        self.stream = stream
        self.cut, self.is_line_begun = "", False
        self.decoder = None if raw or not stream.isatty() else codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes) -> None:
        """Write a piece; a character may be cut in two between pieces."""
        if self.decoder is None:
            self.stream.flush()
            self.stream.buffer.write(data)
            self.stream.buffer.flush()
        else:
            self._show(self.decoder.decode(data))

    def remark(self, words: str) -> None:
        """Say something on standard error."""
        remark([words])

    def end(self) -> None:
        """Write what is left of the last character."""
        if self.decoder is not None:
            self._show(self.decoder.decode(b"", final=True), is_end=True)

    def _show(self, text: str, is_end: bool = False) -> None:
        """Show text; of a line that goes back to its beginning, as a progress bar does, only its last state."""
        text = re.sub("\r+", "\r", self.cut + text)
        cut = None if is_end else CUT.search(text)
        self.cut = cut[0] if cut else ""
        *ended, rest = COLOUR.sub("", text.removesuffix(self.cut)).split("\n")
        for line in ended:
            self._show_part(line.rstrip("\r"))
            self.stream.write("\n")
            self.is_line_begun = False
        self._show_part(rest.rstrip("\r") if is_end else rest)
        self.stream.flush()

    def _show_part(self, part: str) -> None:
        _, again, last = part.rpartition("\r")
        self.stream.write(CLEAR * (bool(again) and self.is_line_begun) + plain_text(last))
        self.is_line_begun = bool(last) or (self.is_line_begun and not again)


class Writer(Protocol):
    """Writes the output of a task."""

    def write(self, data: bytes) -> None:
        """Write a piece."""

    def end(self) -> None:
        """Write what was held back."""

    def remark(self, words: str) -> None:
        """Say something on standard error."""


def write_attempts(chunks: Iterable[LogChunk], writer: Writer, task: str, begins: bool = True) -> None:
    """Write what comes of a task, and say where another attempt of it begins, and how much is no longer kept.

    *begins*: the first piece was asked for from the beginning on.
    """
    before, expected = 0, 0 if begins else None
    for chunk in chunks:
        if before and chunk.attempt != before:
            writer.end()
            writer.remark(f"{task} runs again: attempt {chunk.attempt}")
            expected = 0
        if expected is not None and chunk.offset > expected:
            writer.remark(f"{chunk.offset - expected:,} bytes before these are no longer kept")
        before, expected = chunk.attempt, chunk.next
        writer.write(chunk.data)


def stream_of(stream: str) -> TextIO:
    """Return which of our own streams one of a task goes to."""
    return sys.stdout if stream == "stdout" else sys.stderr


def follow_streams(settings: "ClientSettings", task: str, raw: bool, attempt: int, tail: int = 0,
                   streams: Sequence[str] = STREAMS) -> None:
    """Write what a task writes until it has ended: both streams to ours of that name, one alone to standard output.

    Raises SubakError, and OSError where nobody reads any more.
    """
    failed: list[Exception] = []
    threads = [threading.Thread(target=_pump, args=(
        settings, task, stream, OutputWriter(stream_of(stream) if len(streams) > 1 else sys.stdout, raw), attempt,
        tail, failed), daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(HEARD_S)
            if failed and not isinstance(failed[0], SubakError):
                raise failed[0]
    if failed:
        raise failed[0]


def _pump(settings: "ClientSettings", task: str, stream: str, writer: OutputWriter, attempt: int, tail: int,
          failed: list[Exception]) -> None:
    """Write a stream of a task as it comes, over a connection of its own."""
    from subak.live.client import Client  # noqa: PLC0415  (see above)

    try:
        with Client(settings) as federation:
            chunks = federation.follow(task, stream, attempt=attempt, tail=tail)
            write_attempts(chunks, writer, task, begins=not tail)
            writer.end()
    except Exception as error:  # raised again by the thread that waits, such as of a closed pipe
        failed.append(error)


def plain_text(text: str) -> str:
    """Return a text with what could steer a terminal shown as escapes."""
    return STEERING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0] in KEPT else found[0].encode("unicode_escape").decode()
