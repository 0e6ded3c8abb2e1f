"""Finds schedulers by name, built in or in a user's file; compiles none of them."""
import functools
import importlib.util
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Self

from subak.errors import InputError, PolicyError, first_line
from subak.nearest import did_you_mean
from subak.placement.schedulers import RUN_TIMES, SCHEDULERS, Scheduler, with_options
from subak.placement.tunable import Parameter, refuse_parameter

PIPED = "pipe:"  # what the name of a scheduler in a process of its own begins with
Values = tuple[tuple[str, float], ...]  # of parameters, by name
# While a policy's file is imported: the values that it is given, and what it declares.
_importing: ContextVar[tuple[dict[str, float], list[Parameter]] | None] = ContextVar("_importing", default=None)


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
    """Whether a name is that of a user's scheduler: in a file, in a process of its own, or given."""
    return isinstance(text, Given) or policy_file(text) is not None or is_piped(text)


def is_piped(text: str) -> bool:
    """Whether a name is that of a scheduler in a process of its own, ``pipe:COMMAND``."""
    return text.startswith(PIPED)


def piped_command(text: str) -> tuple[str, ...]:
    """Return the words of the command of ``pipe:COMMAND``. Raises InputError for none, or quotes that do not close."""
    try:
        words = tuple(shlex.split(text.removeprefix(PIPED)))
    except ValueError as error:
        raise InputError(f"scheduler {text}: must be {PIPED}COMMAND, quoted as for a shell: {error}") from None
    if not words:
        raise InputError(f"scheduler {text}: must name a command, {PIPED}COMMAND")
    return words


def _piped(text: str) -> Scheduler:
    return Scheduler(text, "A scheduler in a process of its own.", built_in=False, compiled=False, knows=RUN_TIMES,
                     command=piped_command(text))


def parameter(name: str, default: float, least: float, most: float, log: bool = False) -> float:
    """Declare a number of a policy that `subak tune` may look for, and return its value for this run.

    Called at the head of the policy's file, ``DEPTH = parameter("depth", 4, 1, 32)``: whole where *least* and
    *default* are, else any number from *least* to *most*; *log*: looked for by orders of magnitude. The value is the
    default, unless the run says another (`--parameter depth=7`). Raises InputError for what could not be looked for.
    """
    whole = isinstance(default, int) and isinstance(least, int)
    found = Parameter(name, least if whole else float(least), most, log, default=default)
    refuse_parameter(found)
    now = _importing.get()
    if now is None:
        return default
    given, declared = now
    if any(each.name == name for each in declared):
        raise InputError(f"parameter {name}: must be declared once")
    declared.append(found)
    value = given.get(name, default)
    if not found.holds(value):
        raise InputError(f"parameter {name}: must be {found.text}{', whole' if whole else ''}, not {value:g}")
    return int(value) if whole else float(value)


def named_scheduler(text: str, values: Mapping[str, float] | None = None) -> Scheduler:
    """Return what `find_scheduler` does, not compiled yet. Raises the same, but for functions that do not compile.

    *values* are of parameters; a policy's file takes those that it declares.
    """
    if isinstance(text, Given):
        return text.scheduler
    if is_piped(text):
        return _piped(text)
    file = policy_file(text)
    if file is not None:
        name, *options = policy_name(text).split("+")
        scheduler = _from_file(file, name, tuple(sorted((values or {}).items())))
        return with_options(replace(scheduler, name=f"{file.name}:{name}"), options)
    name, *options = text.split("+")
    if name not in SCHEDULERS:
        raise InputError(f"scheduler must be a name that `subak schedulers` lists, or FILE.py:NAME; not {name!r}"
                         + did_you_mean(name, SCHEDULERS))
    return with_options(SCHEDULERS[name], options)


def policy_file(text: str) -> Path | None:
    """Return the file of ``FILE.py:NAME``, None for a built-in scheduler."""
    file, separator, _ = text.rpartition(".py:")
    return Path(file + ".py") if separator and not is_piped(text) else None


def policy_name(text: str) -> str:
    """Return what follows the file in ``FILE.py:NAME+option``."""
    return text.rpartition(".py:")[2]


def _from_file(file: Path, name: str, values: Values) -> Scheduler:
    if not file.is_file():
        raise InputError(f"{file}: no such policy file")
    module, parameters = _imported(file, file.stat().st_mtime_ns, values)
    found: Any = getattr(module, name, None)
    if not isinstance(found, Scheduler):
        known = ", ".join(key for key, value in vars(module).items() if isinstance(value, Scheduler)) or "none"
        raise PolicyError(f"{file}: must define {name} with @policy or hooks(); it defines {known}")
    return replace(found, parameters=parameters)


@functools.lru_cache
def _imported(file: Path, _modified: int, values: Values) -> tuple[ModuleType, tuple[Parameter, ...]]:
    """Import a policy file, once for each set of values: its functions are compiled once then, too.

    Returns what it declares beside it.
    """
    spec = importlib.util.spec_from_file_location(f"subak_policy_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    fault: BaseException | None = None
    declared: list[Parameter] = []
    token = _importing.set((dict(values), declared))
    with _ends_noted() as ends:
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # whatever a user's file may raise is the file's fault ..
            fault = error
    _importing.reset(token)
    if ends:  # .. but for what a signal raised, whatever the file made of it
        raise ends[0]
    if fault is not None:
        raise PolicyError(f"{file}: {_why(fault)}") from None
    return module, tuple(declared)


def _why(fault: BaseException) -> str:
    if isinstance(fault, PolicyError | InputError):
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
