"""Orders the stages of a job: each after those it depends on, otherwise as written."""
from collections.abc import Sequence
from heapq import heapify, heappop, heappush


def in_order(earlier: Sequence[Sequence[int]]) -> list[int]:
    """Return the stages that can be done, given for each those that come before it; those of or behind a cycle not."""
    later: list[list[int]] = [[] for _ in earlier]
    for stage, before in enumerate(earlier):
        for other in before:
            later[other].append(stage)
    left = [len(before) for before in earlier]
    ready = [stage for stage, count in enumerate(left) if count == 0]
    heapify(ready)
    order = []
    while ready:
        order.append(stage := heappop(ready))
        for other in later[stage]:
            left[other] -= 1
            if left[other] == 0:
                heappush(ready, other)
    return order


def cycle(earlier: Sequence[Sequence[int]]) -> list[int]:
    """Return stages of a cycle, each before the next and the last before the first; [] where there is none."""
    left = set(range(len(earlier))) - set(in_order(earlier))
    if not left:
        return []
    way = [min(left)]
    while (before := min(left.intersection(earlier[way[-1]]))) not in way:
        way.append(before)
    return way[way.index(before):][::-1]
