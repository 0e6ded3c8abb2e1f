"""The disk cache of compiled kernels behind Numba's dispatchers.

A file is named by its kernel and by the key of all that is compiled into it (`key.py`), so it never is out of date,
only unused. Where files are, who is trusted and who waits for whom is in `files.py`. No fault of the cache ends a
run: one that cannot be used is compiled anew, and said once, in one line, to the logger `subak`.
"""
import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

from llvmlite.binding import address_of_symbol
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompileResult
from numba.core.cpu import CPUContext
from numba.core.serialize import dumps
from numba.core.typing.templates import Signature

from subak.kernels.files import KERNEL, LOCK, DamagedError, kernel_folder, lock, read, remove_unused, say, unlock, write
from subak.kernels.numba_internals.key import UnknownValueError, signature_key, source_key

WAITS_MAX = 100  # of waiting for others, who all may fail


class Compiled(Protocol):
    """A compiled function, as Numba's compiler hands it on."""

    library: JITCodeLibrary
    codegen: JITCPUCodegen

    def _reduce(self) -> tuple[object, ...]:
        """Return it as `_rebuild` takes it."""
        raise NotImplementedError


class KernelCache:
    """The cache of one kernel, as Numba's dispatchers use it. Every method may be called under its compiler lock."""

    def __init__(self, function: FunctionType) -> None:
        """Look at nothing yet: most kernels are never called."""
        self.function = function
        self.name = function.__name__
        self._held = contextlib.ExitStack()

    @property
    def cache_path(self) -> str | None:
        """The folder, for Numba's statistics."""
        folder = kernel_folder()
        return None if folder is None else str(folder)

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """End the lock that `load_overload` may begin, whether or not the kernel compiles."""
        outer, self._held = self._held, contextlib.ExitStack()
        try:
            with self._held:
                yield
        finally:
            self._held = outer

    def load_overload(self, signature: Signature, target: CPUContext) -> CompileResult | None:
        """Return the kernel compiled for *signature*; None if this process is to compile it."""
        path = self._path(signature, target.codegen())
        if path is None:
            return None
        for _ in range(WAITS_MAX):
            found = self._load(path, target)
            if found is not None:
                return found
            if self._hold(path.with_suffix(LOCK)):
                break
        return self._load(path, target, says=True)  # it may have been written meanwhile

    def _hold(self, path: Path) -> bool:
        """Take the lock, or nothing where locks do not work; False when another had it."""
        try:
            descriptor = lock(path, self.name)
        except OSError:  # a full disk, a file system without locks
            return True
        if descriptor is not None:
            self._held.callback(unlock, path, descriptor)
        return descriptor is not None

    def save_overload(self, signature: Signature, compiled: Compiled) -> None:
        """Keep a compiled kernel, where that is possible."""
        path = self._path(signature, compiled.codegen)
        if path is None or compiled.library.has_dynamic_globals:
            return
        try:
            write(path, (_referred_to(compiled.library), compiled._reduce()), dumps)
        except OSError as error:
            say(f"compiled kernels cannot be kept in {path.parent} ({error.strerror}); the next process compiles them "
                 "again")
        remove_unused(path.parent)

    def flush(self) -> None:
        """Forget nothing: a file is never out of date. For Numba's `recompile`."""

    def _load(self, path: Path, target: Any, says: bool = False) -> Any:
        """Return the kernel in a file; None if there is none that can be used, which it *says*."""
        try:
            content = read(path)
            if content is None:
                return None
            symbols, compiled = content
            if any(address_of_symbol(each) is None for each in symbols):
                target.refresh()  # knows of all of Numba then: half a second, which kernels hardly ever need
            return CompileResult._rebuild(target, *compiled)
        except Exception as error:  # whatever bytes that passed the check may yet do to the reader
            reason = str(error) if isinstance(error, DamagedError) else f"{type(error).__name__}: {error}"
            if says:
                say(f"the kept kernel {path} cannot be used ({reason}); {self.name} is compiled anew")
            return None

    def _path(self, signature: Any, code: Any) -> Path | None:
        folder = kernel_folder()
        if folder is None:
            return None
        try:
            return folder / f"{_stem(self.function)}{signature_key(signature, code)}{KERNEL}"
        except UnknownValueError as error:
            say(f"{error}; the kernel is not kept")
            return None


def _referred_to(library: Any) -> list[str]:
    """Return the symbols that a library's code refers to and does not define."""
    module = library._final_module
    names = (each.name for each in (*module.functions, *module.global_variables) if each.is_declaration)
    return [name for name in names if not name.startswith("llvm.")]


def is_kept(name: str) -> bool:
    """Whether a kernel of this name, made of exactly what it is made of now, is in the folder."""
    folder = kernel_folder()
    return folder is not None and any(_is_current(path.name) for path in folder.glob(f"*.{name}-*{KERNEL}"))


def _is_current(file: str) -> bool:
    module, _, name = file.partition("-")[0].rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
        return file.startswith(_stem(getattr(found, "py_func", found)))
    except (ImportError, AttributeError, UnknownValueError):  # of another version
        return False


def _stem(function: FunctionType) -> str:
    """Return how the names of a kernel's files begin."""
    name = f"{function.__module__}.{function.__qualname__}".translate({ord(each): None for each in "<>/"})
    return f"{name}-{source_key(function)}-"
