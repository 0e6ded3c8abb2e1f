"""Parses how run-time estimates are asked for (their meaning is in engine/estimates.py)."""
import math

from subak.errors import InputError

EXACT, USER, FACTOR, CLASS, NONE = "exact", "user", "factor", "class", "none"
WORDS = (EXACT, USER, "factor=F", CLASS, NONE)  # as they are written
FACTOR_MAX = 1e6


def parse_estimates(text: str) -> tuple[str, float]:
    """Return the word, and F of ``factor=F`` (else 1); the text may be empty. Raises InputError for any other."""
    kind, separator, number = text.partition("=")
    if kind == FACTOR and separator:
        try:
            factor = float(number)
        except ValueError:
            factor = math.nan
        if not 1 <= factor <= FACTOR_MAX:
            raise InputError(f"estimates: the factor must be from 1 to {FACTOR_MAX:,.0f}, such as factor=2, "
                             f"not {number!r}")
        return kind, factor
    if text and text not in (EXACT, USER, CLASS, NONE):
        raise InputError(f"estimates: must be one of {', '.join(WORDS)}, not {text!r}")
    return text, 1.0
