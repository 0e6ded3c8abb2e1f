"""Reads every stream of an xz file, so that none of its text is passed over.

An xz file is one stream or several, with zeros between them. `lzma.LZMAFile` takes whatever else stands behind a stream
for the file's end, so that of two files put together the second would be missing without a word.
"""
import io
import lzma
from typing import BinaryIO

PACKED_SIZE = 1 << 20  # bytes of the file that are read at a time


class XzReader(io.RawIOBase):
    """Reads the streams of *raw*, one after another."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._packed, self._stream = raw, b"", lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def read(self, size: int = -1) -> bytes:
        """Return up to *size* bytes, none at the end. Raises LZMAError for damage, EOFError where it is cut off."""
        while not self._stream.eof or self._next_stream():
            if self._stream.needs_input and not self._packed:
                self._packed = self._raw.read(PACKED_SIZE)
                if not self._packed:
                    raise EOFError
            text, self._packed = self._stream.decompress(self._packed, size), b""
            if text:
                return text
        return b""

    def _next_stream(self) -> bool:
        """Begin what follows the stream that has ended; return whether there is anything."""
        rest = self._stream.unused_data.lstrip(b"\0")
        while not rest:
            more = self._raw.read(PACKED_SIZE)
            if not more:
                return False
            rest = more.lstrip(b"\0")
        self._packed, self._stream = rest, lzma.LZMADecompressor(lzma.FORMAT_XZ)
        return True
