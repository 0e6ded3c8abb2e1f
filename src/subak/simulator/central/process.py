"""Talks to a scheduler in a process of its own: a line to its standard input, a line from its standard output."""
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from contextlib import suppress

from subak.errors import PolicyError, first_line

SHOWN = 200  # characters of what it said last, and of the last line that it wrote to standard error
READ = 1 << 16  # bytes read at once
ANSWER_BYTES_MAX = 1 << 28  # bytes of an answer
END_SECONDS = 5.0  # for which it may go on after its standard input is closed


class Process:
    """A process that answers each line by one line. Every fault is a PolicyError that ends the run."""

    def __init__(self, command: tuple[str, ...], seconds: float) -> None:
        """Start it; *seconds* is how long it may take for an answer."""
        self.seconds = seconds
        self.said = b""  # its last line
        self.has_answer = False  # a whole line has come
        self.left = bytearray()  # what came of the next one
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `end`)
        try:
            self.child = subprocess.Popen(  # in a session of its own, so that what it starts ends with it
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, bufsize=0,
                start_new_session=True)
        except OSError as error:
            self.errors.close()
            raise PolicyError(f"cannot be started: {shlex.join(command)}: {error.strerror}") from None
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.to, self.of = self.child.stdin.fileno(), self.child.stdout.fileno()
        os.set_blocking(self.to, False)

    def ask(self, message: bytes) -> bytes:
        """Send a line, and return the one that answers it."""
        self._refuse_more()
        waiting, ends = memoryview(message + b"\n"), time.monotonic() + self.seconds
        with selectors.DefaultSelector() as found:
            found.register(self.to, selectors.EVENT_WRITE)
            found.register(self.of, selectors.EVENT_READ)
            while not self.has_answer:
                ready = found.select(max(ends - time.monotonic(), 0.0))
                if not ready:
                    raise PolicyError(f"did not answer within {self.seconds:g} s (--answer-timeout)"
                                      f"{self.last_words()}")
                for key, _ in ready:
                    if key.fd == self.to:
                        waiting = self._sent(waiting)
                        if not waiting:
                            found.unregister(self.to)
                    else:
                        self._read()
        end = self.left.index(b"\n")
        self.said, self.left, self.has_answer = bytes(self.left[:end]), self.left[end + 1:], False
        return self.said

    def finish(self) -> None:
        """Close its standard input, and let it go, or kill it. Raises PolicyError if it had more to say."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        try:
            self.child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        os.set_blocking(self.of, False)
        with suppress(BlockingIOError):  # somebody else has the pipe, and says nothing
            self.left += os.read(self.of, READ)
        self._refuse_more()

    def close(self) -> None:
        """Close what is open, once it has ended."""
        for stream in (self.child.stdin, self.child.stdout, self.errors):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    def kill(self) -> None:
        """End it at once, and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def _refuse_more(self) -> None:
        if self.left:
            raise PolicyError(f"answered more than one line to a message{self.last_words(self.left)}")

    def last_words(self, said: bytes | bytearray | None = None) -> str:
        """Return what it said last, and the last line of its standard error, for use in a line."""
        last = (self.said if said is None else said).decode(errors="backslashreplace").strip()
        words = f"; it said last: {last[:SHOWN]!a}" if last else "; it said nothing before"
        size = os.fstat(self.errors.fileno()).st_size
        tail = os.pread(self.errors.fileno(), READ, max(size - READ, 0)).decode(errors="backslashreplace")
        lines = [line.strip() for line in tail.splitlines() if line.strip()]
        return f"{words}; on standard error: {lines[-1][:SHOWN]!a}" if lines else words

    def _sent(self, waiting: memoryview) -> memoryview:
        """Send as much as fits into the pipe; return what is left."""
        try:
            return waiting[os.write(self.to, waiting):]
        except OSError:  # nobody reads any more
            raise self._ended() from None

    def _read(self) -> None:
        part = os.read(self.of, READ)
        if not part:
            raise self._ended()
        self.left += part
        self.has_answer = b"\n" in part  # what came before has none: nothing is looked at twice
        if len(self.left) > ANSWER_BYTES_MAX:
            raise PolicyError(f"answered a line of more than {ANSWER_BYTES_MAX:,} bytes{self.last_words()}")

    def _ended(self) -> PolicyError:
        """Say that it is gone, or closed a pipe."""
        try:
            code = self.child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return PolicyError(f"closed its pipe before the end{self.last_words()}")
        cause = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        half = f"; it left half a line: {first_line(Exception(self.left[:SHOWN].decode(errors='replace')))!a}"
        return PolicyError(f"ended before the run {cause}{half if self.left else ''}{self.last_words()}")
