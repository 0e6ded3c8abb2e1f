"""Chooses how kernels are compiled: `fast`, by private parts of Numba, or `plain`, by `numba.njit` alone.

The variable SUBAK_KERNELS says which. Unless it says, a Numba that was not tested is plain, and one whose private parts
have moved is plain in any case; one line says so. Runs have the same bytes either way. Plain kernels are compiled in
each process, not kept, and federations and environments for learning run as plain Python, a hundred times slower.
"""
import functools
import importlib
import os

import numba

from subak.errors import InputError
from subak.kernels.files import say

VARIABLE, FAST, PLAIN = "SUBAK_KERNELS", "fast", "plain"
TESTED_FROM, TESTED_BEFORE = (0, 62), (0, 69)  # versions of Numba


@functools.cache
def is_fast() -> bool:
    """Whether kernels are compiled by private parts of Numba. Raises InputError for an unknown word."""
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", FAST, PLAIN):
        raise InputError(f"{VARIABLE}: must be {FAST} or {PLAIN}, not {asked!r}")
    if asked == PLAIN:
        return False
    why = "" if asked == FAST or _is_tested() else "was not tested"
    if not why:
        try:
            importlib.import_module("subak.kernels.numba_internals.dispatch")
        except (ImportError, AttributeError) as error:
            why = f"lacks what was expected ({error})"
    if why:
        say(f"Numba {numba.__version__} {why}: kernels are compiled by numba.njit alone, and are not kept; federations "
            f"run as plain Python, slowly (tested: {_text(TESTED_FROM)} to before {_text(TESTED_BEFORE)})")
    return not why


def _is_tested() -> bool:
    version = tuple(int(part) if part.isdigit() else 0 for part in numba.__version__.split(".")[:2])
    return TESTED_FROM <= version < TESTED_BEFORE


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
