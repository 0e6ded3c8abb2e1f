"""H-DRF, straight from its definition (Bhattacharya et al., SoCC 2013), in lists and exact fractions.

- A leaf is blocked when it has no task left, or its next does not fit: into what is free, or under the limit of a queue
  at or above it. A queue is blocked when all its children are.
- A resource is saturated when less of it is free than any leaf that has tasks, and asks for it, asks.
- A leaf's vector is what it holds. A queue's is the sum of its children's: those that are not blocked rescaled to the
  least share / weight among them, times their weight; the blocked as they are.
- A node's share is the largest entry of its vector over the resources that are not saturated.
- The next task is found from the root: to the child that is not blocked and has the least share / weight, the first
  listed of equals, down to a leaf.
"""
import math
from fractions import Fraction


def hdrf(tree, demand, capacity, tasks=None, order_max=10**6):
    """Return the leaves (row in demand) in the order in which they are given tasks, on one machine."""
    machine, order = Machine(tree, demand, capacity, tasks), []
    while len(order) < order_max:
        machine.look()
        if machine.is_blocked(0):
            break
        order.append(machine.give())
    return order


class Machine:
    def __init__(self, tree, demand, capacity, tasks):
        self.tree, self.children = tree, tree.children
        self.weight = [Fraction(float(weight)) for weight in tree.weight]
        self.leaf = {int(node): place for place, node in enumerate(tree.leaves)}
        self.demand = [[int(amount) for amount in line] for line in demand]
        self.capacity = [int(amount) for amount in capacity]
        self.left = [math.inf] * len(self.demand) if tasks is None else [int(count) for count in tasks]
        self.held = [[0] * len(self.capacity) for _ in self.demand]  # by leaf, in units
        wanted = [line for line, left in zip(self.demand, self.left, strict=True) if left > 0]
        self.least = [min((amount for amount in column if amount > 0), default=math.inf)
                      for column in zip(*wanted, strict=True)] or [0] * len(self.capacity)

    def look(self):
        """Find what is free and what is saturated, before each choice."""
        self.free = [size - sum(column) for size, column in zip(self.capacity, zip(*self.held, strict=True),
                                                                strict=True)]
        self.saturated = [free < least for free, least in zip(self.free, self.least, strict=True)]

    def give(self):
        node = 0
        while node not in self.leaf:
            moving = [child for child in self.children[node] if not self.is_blocked(child)]
            node = min(moving, key=lambda child: self.share(self.vector(child)) / self.weight[child])
        leaf = self.leaf[node]
        self.held[leaf] = [before + more for before, more in zip(self.held[leaf], self.demand[leaf], strict=True)]
        self.left[leaf] -= 1
        return leaf

    def is_blocked(self, node):
        if node not in self.leaf:
            return all(self.is_blocked(child) for child in self.children[node])
        leaf = self.leaf[node]
        fits = all(more <= free for more, free in zip(self.demand[leaf], self.free, strict=True))
        return self.left[leaf] == 0 or not fits or not self.is_under_limits(leaf, node)

    def is_under_limits(self, leaf, node):
        while node > 0:
            if math.isfinite(self.tree.limit[node]):
                limit = Fraction(float(self.tree.limit[node]))
                for held, more, size in zip(self.units(node), self.demand[leaf], self.capacity, strict=True):
                    if more > 0 and held + more > limit * size:
                        return False
            node = int(self.tree.parent[node])
        return True

    def units(self, node):
        if node in self.leaf:
            return self.held[self.leaf[node]]
        return [sum(column) for column in zip(*(self.units(child) for child in self.children[node]), strict=True)]

    def vector(self, node):
        if node in self.leaf:
            return [Fraction(held, size) for held, size in zip(self.units(node), self.capacity, strict=True)]
        vectors = {child: self.vector(child) for child in self.children[node]}
        share = {child: self.share(vectors[child]) for child in vectors if not self.is_blocked(child)}
        level = min((share[child] / self.weight[child] for child in share), default=0)
        for child, own in share.items():
            if own > 0:
                vectors[child] = [entry * level * self.weight[child] / own for entry in vectors[child]]
        return [sum(column) for column in zip(*vectors.values(), strict=True)]

    def share(self, vector):
        return max((entry for entry, full in zip(vector, self.saturated, strict=True) if not full), default=0)
