"""Small trees of queues: from nested dictionaries, as the known answers have them, or drawn by hypothesis."""
import math

import numpy as np
import pytest
from hypothesis import strategies as st

from published import answers
from subak.queues.tree import Queue, TreeFile, tree_of_paths


def nested(tree, weights=None):
    """The tree of {"a": {"b": demand, ...}, ...} and the demands of its leaves."""
    demand, listed = {}, []

    def walk(node, above):
        for key, below in node.items():
            name = f"{above}/{key}" if above else key
            listed.append(Queue(name=name, weight=(weights or {}).get(name, 1.0)))
            if isinstance(below, dict):
                walk(below, name)
            else:
                demand[name] = below

    walk(tree, "")
    found = tree_of_paths(demand, TreeFile(queue=listed))
    return found, np.array([demand[name] for name in leaf_names(found)])


def leaf_names(tree):
    return [tree.names[leaf] for leaf in tree.leaves]


def by_leaf(tree, values):
    return dict(zip(leaf_names(tree), values, strict=True))


def truth(kind):
    """The known answers of one kind."""
    return [pytest.param(case, id=case["name"]) for case in answers("fairness")[kind]]


@st.composite
def problems(draw, resources=(2, 3), weights=(1, 2, 3, 0.5), limits=(math.inf,), ends=True, leaves_max=8):
    """A tree with the demands of its leaves, the capacity, and how many tasks each has, or None."""
    shape = draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=4))
    paths = []
    for top, groups in enumerate(shape):  # a group of 0 leaves is a leaf itself
        for group, leaves in enumerate(groups):
            name = f"{top}" if len(groups) == 1 and leaves == 0 else f"{top}/{group}"
            paths += [f"{name}/{leaf}" for leaf in range(leaves)] or [name]
    paths = paths[:leaves_max]
    names = tree_of_paths(paths).names[1:]
    queues = [Queue(name=name, weight=draw(st.sampled_from(weights)), limit=draw(st.sampled_from(limits)))
              for name in names]
    tree = tree_of_paths(paths, TreeFile(queue=queues))
    count = draw(st.sampled_from(resources))
    row = st.lists(st.sampled_from([0, 0, 1, 2, 3]), min_size=count, max_size=count).filter(any)
    demand = np.array(draw(st.lists(row, min_size=len(paths), max_size=len(paths))))
    capacity = np.array(draw(st.lists(st.sampled_from([60, 60, 90]), min_size=count, max_size=count)))
    tasks = None
    if ends and draw(st.booleans()):
        tasks = np.array(draw(st.lists(st.sampled_from([0, 3, 12, 10**9]), min_size=len(paths), max_size=len(paths))))
    return tree, demand, capacity, tasks
