"""Copies the output of tasks to standard output; on a terminal, control characters are escaped."""
import codecs
import re
from collections.abc import Iterable
from typing import TextIO

from subak.cli.live.show import remark
from subak.live.api.models import LogChunk
from subak.output.plain import STEERING

KEPT = "\n\t"


class OutputWriter:
    """Writes pieces of a task's output to a stream; with *raw* also to a terminal as they are."""

    def __init__(self, stream: TextIO, raw: bool) -> None:
        self.stream = stream
        self.decoder = None if raw or not stream.isatty() else codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes) -> None:
        """Write a piece; a character may be cut in two between pieces."""
        if self.decoder is None:
            self.stream.flush()
            self.stream.buffer.write(data)
            self.stream.buffer.flush()
        else:
            self._show(self.decoder.decode(data))

    def end(self) -> None:
        """Write what is left of the last character."""
        if self.decoder is not None:
            self._show(self.decoder.decode(b"", final=True))

    def _show(self, text: str) -> None:
        self.stream.write(STEERING.sub(_escaped, text.replace("\r\n", "\n")))
        self.stream.flush()


def write_attempts(chunks: Iterable[LogChunk], writer: OutputWriter, task: str, begins: bool = True) -> None:
    """Write what comes of a task, and say where another attempt of it begins, and how much is no longer kept.

    *begins*: the first piece was asked for from the beginning on.
    """
    before, expected = 0, 0 if begins else None
    for chunk in chunks:
        if before and chunk.attempt != before:
            writer.end()
            remark([f"{task} runs again: attempt {chunk.attempt}"])
            expected = 0
        if expected is not None and chunk.offset > expected:
            remark([f"{chunk.offset - expected:,} bytes before these are no longer kept"])
        before, expected = chunk.attempt, chunk.next
        writer.write(chunk.data)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0] in KEPT else found[0].encode("unicode_escape").decode()
