"""Carries changed modules into processes that tests start: those of a folder, instead of the ones of the package.

See tests/support/mutants.py, which names the folder, and a file to which the statements that are reached are added.
"""
import builtins
import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
from pathlib import Path

CHANGED = Path(os.environ.get("SUBAK_CHANGED_MODULES", ""))
REACHED = os.environ.get("SUBAK_REACHED_STATEMENTS", "")


class Carrier(importlib.abc.MetaPathFinder):
    """Finds modules that the folder has, as the package has them but for their text."""

    def find_spec(self, name, path=None, target=None):
        """Return how a module is loaded."""
        if not (CHANGED / f"{name}.py").is_file():
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        spec.loader = Loader(name, spec.origin)
        return spec


class Loader(importlib.machinery.SourceFileLoader):
    """Loads the text of the folder under the name and the path of the original."""

    def get_code(self, fullname):
        """Return the code of a module."""
        return compile((CHANGED / f"{fullname}.py").read_bytes(), self.path, "exec")


SAID = set()


def reached(step):
    """Note, once in a process, that a statement is reached."""
    if step not in SAID:
        SAID.add(step)
        with contextlib.suppress(OSError):  # some processes are of users who may not
            file = os.open(REACHED, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, f"{step}\n".encode())
            os.close(file)


if os.environ.get("SUBAK_CHANGED_MODULES"):
    builtins._called_ = reached  # which functions of the folder call
    sys.meta_path.insert(0, Carrier())
