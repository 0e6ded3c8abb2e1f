"""Every interleaving of a tiny federation of Megha, with few faults: a model checker over its handlers as they are."""
