"""Suggests the intended word in errors about a mistyped one."""
import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error's text: the one of *known* that is nearest to *word*; empty where none is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
