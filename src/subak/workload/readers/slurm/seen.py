"""Says what an accounting of Slurm's shows of its cluster: the most in use at once, the widest job, names of nodes."""
import re
from collections.abc import Iterable

import polars as pl

from subak.resources import Resource
from subak.workload.readers.files.times import instant_text

NODE_NAMES_MAX = 100_000  # that names are counted to
GIB = 1024.0  # in MiB
LIST = re.compile(r"[^,\[\]]+(?:\[[^\[\]]*\][^,\[\]]*)*")  # one name, or several as rack[1-2]n[01-16,20]
BRACKET = re.compile(r"\[([^\[\]]*)\]")
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
WORDS = {"cpu": "cores", "memory": "GiB of memory", "gpu": "GPUs"}


def seen(kept: pl.DataFrame, origin: float, resources: Iterable[Resource]) -> dict[str, int | str]:
    """Return remarks on the cluster that ran the jobs of an accounting; *origin* is time 0, s since 1970."""
    said: dict[str, int | str] = {}
    asked = [each.name for each in resources if kept[each.name].sum() > 0]
    peaks = [(name, *peak(kept, name)) for name in asked]
    if peaks:
        zoneless = "+00:00" if kept["zoneless"].any() else ""
        said["most in use at once"] = "; ".join(
            f"{_amount(name, most)} at {instant_text(origin + at).removesuffix(zoneless)}" for name, at, most in peaks)
        widest = kept.sort(pl.col("cpu") * pl.col("count"), descending=True, maintain_order=True).row(0, named=True)
        amounts = ", ".join(_amount(name, widest[name] * widest["count"]) for name in asked if widest[name] > 0)
        nodes = f" on {widest['count']:,} nodes" if widest["count"] > 1 else ""
        said["widest job"] = f"{widest['JobID']}: {amounts}{nodes}"
    nodes_named = count_nodes(kept["NodeList"].drop_nulls().unique())
    return said | ({"nodes named in NodeList": nodes_named} if nodes_named else {})


def peak(kept: pl.DataFrame, name: str) -> tuple[float, float]:
    """Return when the jobs held the most of a resource, s, and how much that was."""
    amount = pl.col(name) * pl.col("count")
    begins = kept.select(time="recorded_start", change=amount)
    ends = kept.select(time=pl.col("recorded_start") + pl.col("run_time"), change=-amount)
    held = pl.concat([begins, ends]).group_by("time").agg(pl.col("change").sum()).sort("time").with_columns(
        held=pl.col("change").cum_sum())
    most = held.row(int(held["held"].arg_max() or 0), named=True)
    return float(most["time"]), float(most["held"])


def count_nodes(lists: Iterable[str]) -> int:
    """Return how many names of nodes stand in lists of Slurm's, as n[01-04,7],gpu1; 0 where they are too many."""
    names: set[str] = set()
    for text in lists:
        for part in LIST.findall(text):
            if _size(part) + len(names) > NODE_NAMES_MAX:
                return 0
            names.update(_names(part))
    return len(names)


def _size(part: str) -> int:
    """Return how many names a part of a list stands for."""
    size = 1
    for inside in BRACKET.findall(part):
        size *= sum(_last(found) - int(found[1]) + 1 if (found := RANGE.fullmatch(each)) else 1
                    for each in inside.split(","))
    return size


def _names(part: str) -> list[str]:
    found = BRACKET.search(part)
    if found is None:
        return [part]
    rest = _names(part[found.end():])
    return [part[:found.start()] + number + behind for each in found[1].split(",") for number in _numbers(each)
            for behind in rest]


def _numbers(text: str) -> list[str]:
    found = RANGE.fullmatch(text)
    if found is None:
        return [text]
    return [str(number).zfill(len(found[1])) for number in range(int(found[1]), _last(found) + 1)]


def _last(found: re.Match[str]) -> int:
    return max(int(found[2] or found[1]), int(found[1]))


def _amount(name: str, amount: float) -> str:
    value = round(amount / GIB if name == "memory" else amount, 3)
    return f"{value:,.10g} {WORDS[name].removesuffix('s') if value == 1 else WORDS[name]}"
