"""The entry point of `subak`: turns errors and Ctrl-C into one line and an exit code.

Everything that takes a while to load is imported inside `main`.
"""
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from subak import exit_codes
from subak.cli.ending import INTERRUPTION, OF_LIVE, CommandEndedError, loading, without_live

MEANT_BY = {  # options by other words for them, of Slurm, Docker and others
    "--cpu": ("c", "cpus", "cores", "cpus-per-task"), "--memory": ("m", "mem", "ram"), "--gpus": ("gres",),
    "--detach": ("background", "bg"), "--queue": ("p", "partition"), "--name": ("job-name",),
    "--time-limit": ("t", "time", "timeout"), "--follow": ("tail-f",), "--tasks": ("ntasks",)}
STATES_OF_LIST = ("waiting", "running", "ended", "finished", "failed", "cancelled", "timed-out", "lost")


def main() -> None:
    """Run the command line; a user's mistake becomes one line on standard error and exit code 2."""
    try:
        _main()
    except SystemExit as ended:
        _leave(ended.code)
        raise


def _leave(code: object) -> None:
    """End at once where a thread still computes: Python would clear away what it uses, and may die of that."""
    workers = sys.modules.get("subak.experiment.workers")
    if workers and isinstance(code, int) and any(thread.is_alive() for thread in workers.threads):
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)


def _main() -> None:
    with loading():
        _app()  # takes seconds on a cold disk
    NOTICES.said.clear()
    logging.getLogger("subak").addHandler(NOTICES)
    # so that nothing half-written, and no process, is left
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(exit_codes.EXIT_ENDED))
    code = _exit_code()
    if code == exit_codes.INTERRUPTED:
        writing = sys.modules.get("subak.output.writing")  # where nothing was written, it need not be there
        written = writing.written if writing else []
        _say(f"interrupted; {written[-1]} was written" if written else INTERRUPTION)
        exec("")  # makes Python forget that Ctrl-C fell into such a text, as imports run; `-m` would end by the signal
    sys.exit(code)  # type: ignore[arg-type]


def _exit_code() -> object:
    """Run the command that was asked for, and return what to end with; of a mistake, the program ends here."""
    from subak.cli.app import UsageError  # noqa: PLC0415  (as above)
    from subak.errors import SubakError  # noqa: PLC0415

    try:
        return _app()(prog_name="subak", standalone_mode=False)
    except CommandEndedError as ended:
        sys.exit(ended.code)
    except SubakError as error:
        _fail(str(error), error.exit_code, getattr(error, "details", ()))
    except UsageError as error:
        where = error.ctx.command_path if error.ctx else "subak"
        _fail(f"{error.format_message().replace('Value error, ', '').rstrip('.')}{_hint(error)} (see {where} --help)")
    except MemoryError:
        _fail("out of memory")
    except ModuleNotFoundError as error:
        _fail(_lacking(error))
    except OSError as error:  # of a name that no file can have, a folder that may not be entered, a disk that fails
        if error.filename is None:  # nothing but standard output is written without a word of its own
            from subak.report.console import silence  # noqa: PLC0415  (most commands end well)

            silence(sys.stdout)
        _fail(f"{error.filename or 'standard output: could not be written'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except SystemExit as ended:  # 1 is what rich and Typer end with when nobody reads what they print any more
        return exit_codes.UNREAD if ended.code == 1 else ended.code
    return None


def _hint(error: Any) -> str:
    """Return what else to say of a command line that is not understood: what is meant, or how a script gets options."""
    option = getattr(error, "option_name", None)
    if option is None or error.ctx is None:
        return ""
    of = {name for each in error.ctx.command.params for name in each.opts}
    word = option.lstrip("-").lower()
    given = {each.partition("=")[0].lower() for each in sys.argv[2:] if each[:1] == "-" and each[:2] != "--"}
    meant = "" if getattr(error, "possibilities", None) else next(
        (name for name in MEANT_BY if name in of and (word in MEANT_BY[name] or f"-{name.lstrip('-')}" in given)), "")
    if meant:
        return f"; is {meant} meant?"
    if error.ctx.info_name == "list" and word in STATES_OF_LIST:
        return f"; is --state {word} meant?"
    if error.ctx.info_name != "submit" or word == "h" or getattr(error, "possibilities", None):
        return ""
    from subak.cli.live.scripts import HOW_TO_ADD_ARGUMENTS  # noqa: PLC0415  (loads a part that others do without)

    return f"; {HOW_TO_ADD_ARGUMENTS}"


def _lacking(error: ModuleNotFoundError) -> str:
    """Say which extra installs what is not there. Raises the error again where none does: that is a defect."""
    name = (error.name or "").split(".")[0]
    if name not in OF_LIVE:
        raise error
    return without_live([name])


def _app() -> Callable[..., object]:
    """Return the commands."""
    from subak.cli import app as commands  # noqa: PLC0415  (as above)

    return commands.app


class _Notices(logging.Handler):
    """A line on standard error for what the package has to say beside results and errors, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.said = set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self.said:
            self.said.add(text)
            _say(text)


NOTICES = _Notices()


def _fail(text: str, code: int = exit_codes.MISTAKE, lines: Sequence[str] = ()) -> None:
    """End with a text in one line, or, of a job file with several mistakes, a line for each."""
    for each in lines or (text,):
        _say(each, style="red")
    sys.exit(code)


def _say(text: str, style: str = "") -> None:
    from subak.output.plain import plain, shortened  # noqa: PLC0415
    from subak.report.console import Console  # noqa: PLC0415  (as above)

    line = shortened(plain(" ".join(f"subak: {text}".split())))
    with suppress(OSError):  # the exit code says it too
        Console(stderr=True).print(line, style=style, highlight=False, soft_wrap=True)
