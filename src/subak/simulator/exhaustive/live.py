"""Checks liveness: from every state, fault-free moves reach one in which the work is done."""
import numpy as np

from subak.simulator.exhaustive.graph import EDGES, NONE_THERE, STATES


def stuck(tables: dict[str, np.ndarray], is_done: np.ndarray) -> int:
    """Return the first state from which no done one can be reached, NONE_THERE if there is none.

    *is_done*: bool[state]. Of a state with a move that was not followed nothing is said.
    """
    states, edges = int(tables["tally"][STATES]), int(tables["tally"][EDGES])
    first = tables["edge_first"][: states + 1]
    leads_to = tables["edge"][:edges]
    order = np.argsort(leads_to, kind="stable")
    comes_from = np.repeat(np.arange(states, dtype=np.int32), np.diff(first))[order]
    into = np.concatenate([[0], np.cumsum(np.bincount(leads_to, minlength=states))])
    reaches = is_done | (tables["is_cut"][:states] != 0)
    frontier = np.flatnonzero(reaches)
    while frontier.size:
        before = comes_from[_ranges(into[frontier], into[frontier + 1])]
        frontier = np.unique(before[~reaches[before]])
        reaches[frontier] = True
    left = np.flatnonzero(~reaches)
    return int(left[0]) if left.size else NONE_THERE


def _ranges(first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the numbers from each of *first* to the one before its *end*."""
    sizes = end - first
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return starts + np.arange(int(sizes.sum()))
