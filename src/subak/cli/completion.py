"""Completes option values on Tab: schedulers, samples, folders and words."""
from collections.abc import Callable, Sequence
from pathlib import Path

from subak.placement.schedulers import SCHEDULERS
from subak.workload.samples import sample_names

Offer = Callable[[str], list[str]]  # from what is typed so far to what it may become


def words(known: Sequence[str]) -> Offer:
    """Offer these words."""
    def offer(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return offer


def separated(each: Offer) -> Offer:
    """Offer what stands in a list separated by commas: none of it twice."""
    def offer(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + found for found in each(last) if found not in before.split(",")]

    return offer


def scheduler(incomplete: str) -> list[str]:
    """Offer the names of schedulers, and after a plus sign the options that one accepts."""
    before, plus, last = incomplete.rpartition("+")
    if not plus:
        return [name for name in SCHEDULERS if name.startswith(last)]
    name, *given = before.split("+")
    accepted = SCHEDULERS[name].accepts if name in SCHEDULERS else ()
    return [before + plus + option for option in sorted(accepted) if option.startswith(last) and option not in given]


def workload(incomplete: str) -> list[str]:
    """Offer the names of samples, and folders."""
    return [name for name in sample_names() if name.startswith(incomplete)] + _folders(incomplete)


def _folders(incomplete: str) -> list[str]:
    above, slash, last = incomplete.rpartition("/")
    try:
        inside = sorted(path.name for path in Path(above + slash or ".").iterdir() if path.is_dir())
    except OSError:
        return []
    return [above + slash + name for name in inside
            if name.startswith(last) and name.startswith(".") == last.startswith(".")]
