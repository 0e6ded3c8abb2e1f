"""Shortens long names, such as hashes, where they still differ."""
from collections.abc import Iterable

PART_MAX = 20  # characters of a part of a path that is shown whole
LETTERS_KEPT = 8  # characters of one that is cut, or more where that leaves two alike


def shortened(names: Iterable[str]) -> dict[str, str]:
    """Return a short name for each of *names*, paths with slashes between their parts; all of them differ."""
    wanted = list(dict.fromkeys(names))
    for kept in (LETTERS_KEPT, 2 * LETTERS_KEPT, 4 * LETTERS_KEPT):
        found = {name: "/".join(_cut(part, kept) for part in name.split("/")) for name in wanted}
        if len(set(found.values())) == len(wanted):
            return found
    return {name: name for name in wanted}


def _cut(part: str, kept: int) -> str:
    return part if len(part) <= max(PART_MAX, kept) else f"{part[:kept]}…"
