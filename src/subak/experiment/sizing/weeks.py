"""Repeats a sizing on redrawn days of the trace, for intervals over other weeks.

The trace's own answer is the estimate; the logarithms of the answers on draws tell the spread (measures/intervals.py).
The next week varies once more, so that its interval is wider by the root of 2. What to buy is its upper end, 95 % from
one side. Source: docs/decisions/0069-days-of-a-trace.md.
"""
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

import numpy as np

from subak.experiment.sizing.answer import Size, Weeks
from subak.experiment.sizing.search import bisection
from subak.experiment.sizing.trials import Tried
from subak.measures.intervals import LEVEL, Redrawn, Spread, TraceDays
from subak.workload.days import USERS_DAYS, WHOLE_DAYS, drawn_by


class Draw(NamedTuple):
    """How one draw is searched."""

    start: int
    limit: int
    keeps: Callable[[Size], bool]
    size: Callable[[int, Tried], Size]  # from a number of machines, and what came of them


def answers_on(
    seeds: Sequence[int], search: Draw, submit: Callable[[int, int], "Future[Tried]"], notify: Callable[[int], None]
) -> dict[int, int | None]:
    """Return the fewest machines on the draw of each seed; *submit* begins a trial of a number of them with a seed."""
    found: dict[int, int | None] = {}
    tried: dict[int, dict[int, Size]] = {seed: {} for seed in seeds}
    searches = {seed: bisection(search.keeps, tried[seed], search.start, search.limit) for seed in seeds}
    waiting: dict[Future[Tried], tuple[int, int]] = {}

    def go_on(seed: int) -> None:
        try:
            machines = next(searches[seed])
        except StopIteration as ended:
            found[seed] = ended.value
            notify(len(found))
            return
        waiting[submit(machines, seed)] = seed, machines

    for seed in seeds:
        go_on(seed)
    while waiting:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            seed, machines = waiting.pop(future)
            tried[seed][machines] = search.size(machines, future.result())
            go_on(seed)
    return found


def weeks_of(own: int, found: dict[int, int | None], of: TraceDays) -> Weeks:
    """Return what weeks take, from the trace's *own* answer and those on draws by seed."""
    whole, users = (tuple(answer for seed, answer in found.items() if drawn_by(seed) == kind)
                    for kind in (WHOLE_DAYS, USERS_DAYS))
    if None in found.values():
        return Weeks(whole, users)
    every = {1: own, **found}
    spread = Redrawn(tuple(every), of).spread(np.log(np.array(list(every.values()), np.float64)))
    if spread is None:
        return Weeks(whole, users)
    apart = [float(np.log(np.array(each, np.float64)).std(ddof=1)) for each in (whole, users)]
    return Weeks(whole, users, _ends(spread, 1.0), _ends(spread, math.sqrt(2.0)),
                 math.ceil(_times(own, spread.half(LEVEL) * math.sqrt(2.0))), *apart)


def _ends(spread: Spread, wider: float) -> tuple[int, int]:
    """Return an interval of machines, rounded outwards."""
    own, half = math.exp(spread.value), spread.half((1 + LEVEL) / 2) * wider
    return max(math.floor(_times(own, -half)), 1), math.ceil(_times(own, half))


def _times(own: float, logarithm: float) -> float:
    """Return machines, without what rounding adds to a whole number of them."""
    return round(own * math.exp(logarithm), 9)
