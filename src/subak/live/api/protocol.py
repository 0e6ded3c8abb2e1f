"""Parses HTTP with httptools, with bounds on what a client may send besides request bodies.

httptools parses with machine code, and keeps no count: a head, or what follows the last chunk of a body, may be of any
length, and come from somebody who has no token.
"""
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 65_536  # of a request, with the lengths of its chunks
WORDS = "The head of the request is too long."


class BoundedProtocol(HttpToolsProtocol):
    """See the head of the file."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.head_bytes = 0  # of the present request, so far

    def data_received(self, data: bytes) -> None:
        """Take in what was received."""
        self.head_bytes += len(data)
        super().data_received(data)
        if self.head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response(WORDS)

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body, which others bound."""
        self.head_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self.head_bytes = 0
        super().on_message_complete()
