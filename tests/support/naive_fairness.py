"""The plain twins of measures/fairness: every queue looked at in every span between two events."""
import math
from itertools import pairwise


def plain_fairness(trail, request, tree, capacity, edges, end):  # noqa: C901  (one long loop is plain)
    """Return what `sweep` measures, as dictionaries and lists: one long loop over spans of time, in plain Python.

    *trail* is a list of (leaf, stage, waits, starts, ends), *capacity* of (time, amounts).
    """
    nodes, resources, levels = range(1, len(tree)), range(len(request)), range(1, max(tree.depth.tolist()) + 1)
    path = {node: list(tree.above(node)) for node in nodes}
    times = {0.0, end, *edges, *(time for time, _ in capacity)}
    times |= {time for row in trail for time in row[2:]}
    times = sorted(time for time in times if 0 <= time <= end)
    zero = {node: 0.0 for node in nodes}
    found = {name: dict(zero) for name in ("share", "guarantee", "shortfall", "demanding", "starved")}
    starving, jain, jain_time = dict(zero), dict.fromkeys(levels, 0.0), dict.fromkeys(levels, 0.0)
    binned = {node: [[0.0] * (len(resources) + 3) for _ in edges[1:]] for node in nodes}
    for begin, until in pairwise(times):
        seconds = until - begin
        there = next(amounts for time, amounts in reversed(capacity) if time <= begin)
        held, waiting = {node: [0] * len(resources) for node in nodes}, dict.fromkeys(nodes, 0)
        for leaf, stage, waits, starts, ends in trail:
            for node in path[leaf]:
                waiting[node] += (waits <= begin) - (starts <= begin)
                for row in resources:
                    held[node][row] += ((starts <= begin) - (ends <= begin)) * int(request[row][stage])
        shares = {node: [each / all_of_it if all_of_it > 0 else 0.0
                         for each, all_of_it in zip(held[node], there, strict=True)] for node in nodes}
        active = {node: waiting[node] > 0 or any(held[node]) for node in nodes}
        guarantee = {0: 1.0}
        for node in nodes:
            parent = int(tree.parent[node])
            siblings = sum(tree.weight[each] for each in tree.children[parent] if active[each])
            guarantee[node] = guarantee[parent] * tree.weight[node] / siblings if active[node] else 0.0
        place = max(number for number, edge in enumerate(edges[:-1]) if edge <= begin)
        for node in nodes:
            found["share"][node] += max(shares[node]) * seconds
            found["guarantee"][node] += guarantee[node] * seconds
            if waiting[node] > 0:
                found["demanding"][node] += seconds
                found["shortfall"][node] += max(guarantee[node] - max(shares[node]), 0.0) * seconds
            starves = waiting[node] > 0 and not any(held[node])
            starving[node] = starving[node] + seconds if starves else 0.0
            found["starved"][node] = max(found["starved"][node], starving[node])
            for row, value in enumerate((*shares[node], max(shares[node]), guarantee[node], waiting[node])):
                binned[node][place][row] += value * seconds
        for parent in range(len(tree)):
            demanding = [node for node in tree.children[parent] if waiting[node] > 0]
            if len(demanding) > 1:
                level = int(tree.depth[parent]) + 1
                ratio = [max(shares[node]) / guarantee[node] for node in demanding]
                squares = sum(value * value for value in ratio)
                jain[level] += (sum(ratio) ** 2 / (len(ratio) * squares) if squares > 0 else 1.0) * seconds
                jain_time[level] += seconds
    assert all(math.isfinite(value) for values in found.values() for value in values.values())
    return {**found, "jain": jain, "jain_time": jain_time, "binned": binned}


def plain_rows(events, last):
    """Return (node, begin, end, *amounts) of what `rows_of` returns; *events* are (node, instant, *deltas)."""
    found = []
    for node in sorted({node for node, *_ in events} - {-1}):
        begins = sorted({instant for its, instant, *_ in events if its == node})
        for begin, end in zip(begins, [*begins[1:], last], strict=True):
            deltas = [deltas for its, instant, *deltas in events if its == node and instant <= begin]
            found.append((node, begin, end, *map(sum, zip(*deltas, strict=True))))
    return found
