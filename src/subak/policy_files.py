"""Schedulers by name, not compiled yet: those that are built in, and policies in files, which are imported."""
import functools
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Self

from subak.errors import InputError, PolicyError, first_line
from subak.nearest import did_you_mean
from subak.placement.schedulers import SCHEDULERS, Scheduler, with_options


class Given(str):
    """The name of a user's scheduler that is there already, as Python has it: it goes wherever a name goes."""

    __slots__ = ("scheduler",)
    scheduler: Scheduler

    def __new__(cls, scheduler: Scheduler) -> Self:
        """Return the scheduler's name. Raises InputError where a built-in one has it."""
        if scheduler.name.partition("+")[0] in SCHEDULERS:
            raise InputError(f"scheduler {scheduler.name}: must have a name that no built-in one has; give it another, "
                             "policy(function, name=...)")
        made = super().__new__(cls, scheduler.name)
        made.scheduler = scheduler
        return made


def is_users(text: str) -> bool:
    """Whether a name is that of a user's scheduler: in a file, or given."""
    return isinstance(text, Given) or policy_file(text) is not None


def named_scheduler(text: str) -> Scheduler:
    """Return what `find_scheduler` does, not compiled yet. Raises the same, but for functions that do not compile."""
    if isinstance(text, Given):
        return text.scheduler
    file = policy_file(text)
    if file is not None:
        name, *options = policy_name(text).split("+")
        return with_options(replace(_from_file(file, name), name=f"{file.name}:{name}"), options)
    name, *options = text.split("+")
    if name not in SCHEDULERS:
        raise InputError(f"scheduler must be a name that `subak schedulers` lists, or FILE.py:NAME; not {name!r}"
                         + did_you_mean(name, SCHEDULERS))
    return with_options(SCHEDULERS[name], options)


def policy_file(text: str) -> Path | None:
    """Return the file of ``FILE.py:NAME``, None for a built-in scheduler."""
    file, separator, _ = text.rpartition(".py:")
    return Path(file + ".py") if separator else None


def policy_name(text: str) -> str:
    """Return what follows the file in ``FILE.py:NAME+option``."""
    return text.rpartition(".py:")[2]


def _from_file(file: Path, name: str) -> Scheduler:
    if not file.is_file():
        raise InputError(f"{file}: no such policy file")
    module = _imported(file, file.stat().st_mtime_ns)
    found: Any = getattr(module, name, None)
    if not isinstance(found, Scheduler):
        known = ", ".join(key for key, value in vars(module).items() if isinstance(value, Scheduler)) or "none"
        raise PolicyError(f"{file}: must define {name} with @policy or hooks(); it defines {known}")
    return found


@functools.lru_cache
def _imported(file: Path, _modified: int) -> ModuleType:
    """Import a policy file, once: its functions are compiled once then, too."""
    spec = importlib.util.spec_from_file_location(f"subak_policy_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    fault: BaseException | None = None
    with _ends_noted() as ends:
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # whatever a user's file may raise is the file's fault ..
            fault = error
    if ends:  # .. but for what a signal raised, whatever the file made of it
        raise ends[0]
    if fault is not None:
        raise PolicyError(f"{file}: {_why(fault)}") from None
    return module


def _why(fault: BaseException) -> str:
    if isinstance(fault, PolicyError):
        return str(fault)
    said = "raised by the file, not by Ctrl-C" if isinstance(fault, KeyboardInterrupt) else first_line(fault)
    return f"cannot be imported: {type(fault).__name__}: {said}"


@contextmanager
def _ends_noted() -> Iterator[list[BaseException]]:
    """Give a list to which is added what handlers of SIGINT and SIGTERM raise meanwhile; then they are as before.

    So Ctrl-C is told from a KeyboardInterrupt that the code raises itself, and heard though that code catches it.
    """
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler is not None}  # None: not Python's
    ends: list[BaseException] = []

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before[number](number, frame)
        except BaseException as raised:
            ends.append(raised)
            raise

    try:
        for number, handler in before.items():
            signal.signal(number, handle if callable(handler) else handler)
        yield ends
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
