"""The `subak` command: a user's mistake becomes one line and an exit code, and so does Ctrl-C, even while it loads.

Everything that takes a while to load is imported inside `main`.
"""
import os
import signal
import sys

MISTAKE, INTERRUPTED, ENDED = 2, 130, 143  # exit codes; the last two as shells count Ctrl-C and SIGTERM
INTERRUPTION = "interrupted; nothing was written"


def main() -> None:
    """Run the command line; a user's mistake becomes one line on standard error and exit code 2."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where a shell told us to ignore it
    signal.signal(signal.SIGTERM, _end)
    if heard:
        signal.signal(signal.SIGINT, _end)
    from subak.cli.commands import UsageError, app  # noqa: PLC0415  (takes seconds on a cold disk)
    from subak.errors import SubakError  # noqa: PLC0415

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # so that nothing half-written, and no process, is left
    try:
        code = app(prog_name="subak", standalone_mode=False)
    except SubakError as error:
        _fail(str(error))
    except UsageError as error:
        where = error.ctx.command_path if error.ctx else "subak"
        _fail(f"{error.format_message().rstrip('.')} (see {where} --help)")
    except MemoryError:
        _fail("out of memory")
    except OSError as error:
        _fail(f"{error.filename or 'the output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        _say(INTERRUPTION)
    sys.exit(code)


def _end(number: int, _frame: object) -> None:
    """End the process at once: an import that an exception cuts short may say anything."""
    if number == signal.SIGINT:
        os.write(2, f"subak: {INTERRUPTION}\n".encode())
    os._exit(INTERRUPTED if number == signal.SIGINT else ENDED)


def _fail(text: str) -> None:
    _say(text, style="red")
    sys.exit(MISTAKE)


def _say(text: str, style: str = "") -> None:
    from rich.console import Console  # noqa: PLC0415  (as above)

    line = " ".join(text.split())
    Console(stderr=True).print(f"subak: {line}", style=style, markup=False, highlight=False, soft_wrap=True)
