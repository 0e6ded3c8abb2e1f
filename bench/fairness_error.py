"""How far off MCH's and the collapsed weights are: the largest error of a leaf's dominant share, on random trees.

Allocations are fluid, so the errors are those of the weights alone. Kinds of trees:
- as the paper has them: two resources, all nodes weigh 1, a leaf asks for both resources or for one only;
- weighted: the same with node weights of 1 to 5;
- general: three resources, weights, any subset of them asked for.
"""
import random
from collections import defaultdict

import numpy as np

from subak.queues.flatten import (
    collapsed_weights,
    every_leaf_has_a_bottleneck,
    exact_weights,
    first_saturated,
    mch_weights,
    weighted_drf,
)
from subak.queues.tree import Queue, QueueTree, TreeFile, tree_of_file

TREES = 2_000
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
DEPTH_MAX, CHILDREN_MAX, LEAVES_MAX = 4, 4, 40
CAPACITY = 1_000
KINDS = {"paper": (2, 1), "weighted": (2, 5), "general": (3, 5)}  # resources, largest weight


def random_tree(draw: random.Random, weight_max: int) -> QueueTree:
    """Return a tree of 2 to LEAVES_MAX leaves."""
    while True:
        queues: list[Queue] = []
        _grow(draw, "", 1, weight_max, queues)
        tree = tree_of_file(TreeFile(queue=queues))
        if 2 <= len(tree.leaves) <= LEAVES_MAX:
            return tree


def _grow(draw: random.Random, above: str, depth: int, weight_max: int, queues: list[Queue]) -> None:
    for number in range(draw.randint(1, CHILDREN_MAX)):
        name = f"{above}/{number}" if above else str(number)
        queues.append(Queue(name=name, weight=draw.randint(1, weight_max)))
        if depth < DEPTH_MAX and draw.random() < 0.5:
            _grow(draw, name, depth + 1, weight_max, queues)


def random_demand(draw: random.Random, leaves: int, resources: int) -> np.ndarray:
    """Return int64[leaf, resource]; each leaf asks for a subset of the resources, any as likely."""
    rows = []
    for _ in range(leaves):
        asked = draw.randint(1, 2**resources - 1)
        rows.append([draw.randint(1, 10) if asked >> resource & 1 else 0 for resource in range(resources)])
    return np.array(rows, np.int64)


def main() -> None:
    print(f"largest error of a leaf's dominant share, {TREES:,} random trees a kind; quantiles")
    print(f"{'':>30}{'trees':>7}{'right':>8}" + "".join(f"{level:>8.0%}" for level in LEVELS))
    for kind, (resources, weight_max) in KINDS.items():
        errors = measured(random.Random(1), resources, weight_max)
        for name, values in errors.items():
            cells = "".join(f"{value:>8.3f}" for value in np.quantile(values, LEVELS))
            right = np.mean(np.array(values) < 1e-7)
            print(f"{kind + ', ' + name:>30}{len(values):>7,}{right:>8.1%}{cells}")


def measured(draw: random.Random, resources: int, weight_max: int) -> dict[str, list[float]]:
    """Return the errors by name of what was measured; checks the condition on the way."""
    errors: dict[str, list[float]] = defaultdict(list)
    capacity = np.full(resources, CAPACITY)
    for _ in range(TREES):
        tree = random_tree(draw, weight_max)
        demand = random_demand(draw, len(tree.leaves), resources)
        exact, weights = exact_weights(tree, demand, capacity), mch_weights(tree, demand, capacity)
        error = abs(weighted_drf(weights, demand, capacity) - exact).max()
        assert every_leaf_has_a_bottleneck(weights, exact, demand, capacity) == (error < 1e-7)
        all_ask = (demand[:, first_saturated(tree, demand, capacity)] > 0).all()
        errors["mch"].append(error)
        errors["mch, all ask for k'" if all_ask else "mch, some do not"].append(error)
        collapsed = weighted_drf(collapsed_weights(tree), demand, capacity)
        errors["collapsed"].append(abs(collapsed - exact).max())
    return errors


if __name__ == "__main__":
    main()
