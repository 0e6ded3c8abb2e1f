"""Ctrl-C and SIGTERM while a kernel is compiled: whenever they come they are heard, and no code is lost."""
import importlib.util
import os
import signal
import threading
import time

import numpy as np
import pytest
from numba import float64, int64
from numba.core.codegen import JitEngine

from subak.kernels.kernel import kernel_of
from subak.kernels.numba_internals.interrupts import heard_outside_of_llvm

WITH_LOOPS = "\n".join(
    ["def made(values):", "    total = len(FOLDER)"]
    + [f"    for at in range(values.size):\n        if values[at] % {number + 2} == {number % 3}:\n"
       f"            total += values[at] * {number} + total % {number + 5}" for number in range(16)]
    + ["    return total", ""])


def made(folder):
    """A function that LLVM has to work on for some tenths of a second."""
    (folder / "with_loops.py").write_text(f"FOLDER = {str(folder)!r}\n{WITH_LOOPS}")  # none has been kept
    spec = importlib.util.spec_from_file_location("with_loops", folder / "with_loops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("cache", [False, True])
def test_a_signal_that_comes_while_llvm_works_is_heard_when_its_code_is_noted(monkeypatch, tmp_path, number, cache):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    finalize, sent = JitEngine.finalize_object, []

    def send(is_over):
        if not is_over.wait(0.02) and not sent:  # LLVM is at work
            sent.append(number)
            os.kill(os.getpid(), number)

    def finalize_object(engine):
        is_over = threading.Event()
        thread = threading.Thread(target=send, args=(is_over,))
        thread.start()
        try:
            finalize(engine)
        finally:
            is_over.set()
            thread.join()

    def heard(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(number, heard)
    try:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(JitEngine, "finalize_object", finalize_object)
            kernel_of(int64(int64[::1]), made(tmp_path), cache=cache)
        assert signal.getsignal(number) is heard
    finally:
        signal.signal(number, before)
    assert sent == [number]
    function = made(tmp_path)
    values = np.arange(50)
    assert kernel_of(int64(int64[::1]), function, cache=cache)(values) == function(values)


def test_a_signal_that_comes_when_python_works_is_heard_at_once():
    def heard(number, frame):
        raise KeyboardInterrupt

    before, reached = signal.signal(signal.SIGINT, heard), []
    try:
        with pytest.raises(KeyboardInterrupt), heard_outside_of_llvm():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
            reached.append(True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not reached


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with heard_outside_of_llvm():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_compile_without_handlers():
    def compiles():
        found.append(kernel_of(float64(float64), lambda value: value * 2.0, cache=False)(1.5))

    found = []
    thread = threading.Thread(target=compiles)
    thread.start()
    thread.join()
    assert found == [3.0]
