"""Subak: a scheduler for federated data centers, and the simulator in which its policies are compared.

From Python: `load` reads a workload and its machines, `run` and `compare` simulate, and what they give holds frames,
tables and charts. The names are loaded when they are first asked for; `import subak` alone loads nothing that computes.
"""
import importlib
from typing import TYPE_CHECKING

from subak.version import VERSION

if TYPE_CHECKING:
    from subak import errors as errors
    from subak import policy as policy
    from subak.api.inputs import Inputs as Inputs
    from subak.api.inputs import load as load
    from subak.api.results import Comparison as Comparison
    from subak.api.results import Run as Run
    from subak.api.simulation import compare as compare
    from subak.api.simulation import run as run
    from subak.api.study import Study as Study
    from subak.api.study import study as study

__version__ = VERSION
__all__ = ["Comparison", "Inputs", "Run", "Study", "compare", "errors", "load", "policy", "run", "study"]

_MODULES = ("errors", "policy")
# Where each of the other names is.
_PLACES = {"Comparison": "api.results", "Inputs": "api.inputs", "Run": "api.results", "compare": "api.simulation",
           "load": "api.inputs", "run": "api.simulation", "Study": "api.study", "study": "api.study"}


def __getattr__(name: str) -> object:
    """Load a name of the interface when it is first asked for."""
    if name in _MODULES:
        return importlib.import_module(f"subak.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'subak' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"subak.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the interface, for Tab."""
    return sorted({*globals(), *__all__})
