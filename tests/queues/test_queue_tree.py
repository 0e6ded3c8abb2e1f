"""The tree of queues: its order, what a file and a workload's paths add up to, and every rule of a file."""
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings

from subak.errors import InputError
from subak.queues.tree import (
    Queue,
    TreeFile,
    amounts,
    queue_leaves,
    read_tree,
    task_counts,
    tree_of_file,
    tree_of_paths,
)
from trees import problems


@pytest.fixture
def read(tmp_path):
    def call(text):
        (tmp_path / "tree.toml").write_text(text)
        return read_tree(tmp_path / "tree.toml")
    return call


def queue(name, **fields):
    """One queue as TOML."""
    written = "".join(f"{key} = {value}\n" for key, value in {"name": f'"{name}"', **fields}.items())
    return f"[[queue]]\n{written}"


CPU = "capacity = { cpu = 4 }\n"


# The tree


def test_queues_below_follow_and_siblings_go_by_their_names():
    tree = tree_of_paths(["b/y/2", "a", "b/x", "b/y/1", "a"])
    assert tree.names == ["", "a", "b", "b/x", "b/y", "b/y/1", "b/y/2"]
    assert tree.parent.tolist() == [-1, 0, 0, 2, 2, 4, 4]
    assert tree.depth.tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert tree.leaves.tolist() == [1, 3, 5, 6]
    assert tree.children[2] == [3, 4]
    assert list(tree.above(5)) == [5, 4, 2]
    listed = tree_of_paths(["b", "a", "d"], TreeFile(queue=[Queue(name="d"), Queue(name="c")]))
    assert listed.names == ["", "d", "c", "a", "b"]


def test_an_empty_tree_has_no_leaves():
    tree = tree_of_paths([])
    assert tree.names == [""]
    assert tree.leaves.tolist() == []


def test_guarantees_are_products_over_the_path(read):
    file = read(queue("ads", weight=60) + queue("ads/prod", weight=90) + queue("ads/test", weight=10)
                + queue("dev", weight=40) + queue("dev/prod", weight=90) + queue("dev/test", weight=10))
    tree = tree_of_file(file)
    guarantee = dict(zip(tree.names, tree.guarantee(), strict=True))
    assert guarantee == pytest.approx({"": 1, "ads": 0.6, "ads/prod": 0.54, "ads/test": 0.06,
                                       "dev": 0.4, "dev/prod": 0.36, "dev/test": 0.04})
    only = tree.guarantee(tree.active(np.array([True, False, True, True])))
    assert dict(zip(tree.names, only, strict=True)) == pytest.approx(
        {"": 1, "ads": 0.6, "ads/prod": 0.6, "ads/test": 0, "dev": 0.4, "dev/prod": 0.36, "dev/test": 0.04})


@given(problems())
@settings(max_examples=30, deadline=None)
def test_guarantees_of_leaves_add_up_to_one(problem):
    tree = problem[0]
    assert tree.guarantee()[tree.leaves].sum() == pytest.approx(1)
    assert tree.sums(np.ones(len(tree.leaves), np.int64))[0] == len(tree.leaves)
    assert (tree.parent[1:] < np.arange(1, len(tree))).all()


def test_a_file_gives_weights_and_keeps_queues_without_jobs(read):
    file = read(queue("idle", weight=5) + queue("org/b", weight=2, limit=0.25) + queue("org", weight=3))
    tree = tree_of_paths(["org/a", "org/b"], file)
    assert tree.names == ["", "idle", "org", "org/b", "org/a"]
    assert tree.weight.tolist() == [1, 5, 3, 2, 1]
    assert tree.limit.tolist() == [math.inf, math.inf, math.inf, 0.25, math.inf]
    assert queue_leaves(tree, ["org/a", "org/b", "org/a"]).tolist() == [4, 3, 4]


def test_a_parent_may_be_any_queue(read):
    tree = tree_of_paths(["ann", "bob"], read(queue("research") + queue("ann", parent='"research"', weight=2)))
    assert tree.names == ["", "research", "ann", "bob"]
    assert tree.parent.tolist() == [-1, 0, 1, 0]


def test_jobs_of_a_queue_above_others_are_in_a_leaf_of_their_own(read):
    tree = tree_of_paths(["a", "a/b"])
    assert tree.names == ["", "a", "a/b", "a/"]
    assert queue_leaves(tree, ["a", "a/b"]).tolist() == [3, 2]
    listed = tree_of_paths(["a", "a/b"], read(queue("a/", weight=4)))
    assert listed.weight[listed.names.index("a/")] == 4


def test_amounts_are_whole_and_exact(read):
    file = read("capacity = { cpu = 0.5, memory = 30 }\n" + queue("a", demand="{ cpu = 0.1 }", tasks=7)
                + queue("b", demand="{ memory = 4.5, cpu = 0.2 }"))
    demand, capacity = amounts(file)
    assert capacity.tolist() == [5, 20]
    assert demand.tolist() == [[1, 0], [2, 3]]
    assert task_counts(file).tolist() == [7, np.iinfo(np.int64).max]
    assert task_counts(read(queue("a"))) is None


def test_amounts_are_needed_only_to_share_out(read):
    with pytest.raises(InputError, match="capacity: must be given"):
        amounts(read(queue("a")))
    with pytest.raises(InputError, match="queue 'a/b': must have a demand"):
        amounts(read(CPU + queue("a/b")))
    with pytest.raises(InputError, match="queue: must list at least one"):
        amounts(read(CPU))
    with pytest.raises(InputError, match=r"capacity.cpu: must be at most 2\^53 times the unit"):
        amounts(read("capacity = { cpu = 1e17 }\n" + queue("a", demand="{ cpu = 0.1 }")))


# The rules of a file


@pytest.mark.parametrize(("text", "words"), [
    (queue("a", parent='"b"') + queue("b", parent='"c"') + queue("c", parent='"a"'),
     "queue 'a': must not be above itself, as in a -> b -> c -> a"),
    (queue("a", parent='"a"'), "as in a -> a"),
    (queue("a/b") + queue("a", parent='"a/b"'), "as in a/b -> a -> a/b"),
    (queue("a", parent='"nobody"'), "queue 'a': its parent must be listed, 'nobody' is not"),
    (queue("a", weight=0), "queue 'a': weight must be a number more than 0, not 0"),
    (queue("a", weight=-1.5), "weight must be a number more than 0, not -1.5"),
    (queue("a", weight="nan"), "weight must be a number more than 0, not nan"),
    (queue("a", weight="inf"), "weight must be a number more than 0, not inf"),
    (queue("a", limit=0), "limit must be a share more than 0 and at most 1, not 0"),
    (queue("a", limit=1.5), "limit must be a share more than 0 and at most 1, not 1.5"),
    (queue("a", limit="nan"), "limit must be a share more than 0 and at most 1, not nan"),
    (queue("a") + queue("b") + queue("a"), "queue 'a': must be listed once, it comes again"),
    (queue("a") + "[[change]]\ntime = -1\n", "change at -1 s: its time must be a number of seconds from 0 on"),
    (queue("a") + "[[change]]\ntime = inf\n", "change at inf s: its time must be a number of seconds from 0 on"),
    (queue("a") + "[[change]]\ntime = 9\n[[change]]\ntime = 8\n", "change at 8 s: must come before the one at 9 s"),
    (queue("a") + '[[change]]\ntime = 9\n[[change.queue]]\nname = "a"\nweight = 0\n',
     "change at 9 s: queue 'a': weight must be a number more than 0, not 0"),
    (queue("a") + "[[change]]\nweight = 9\n", "unknown field `weight`"),
    (CPU + queue("a", demand="{ cpu = 1 }") + queue("a/b"),
     "queue 'a': only a queue without children may have a demand, give it to a queue 'a/'"),
    (CPU + queue("a", tasks=3) + queue("a/b"), "only a queue without children may have tasks"),
    (CPU + queue("a", demand="{ cpu = 0 }"), "queue 'a': demand must ask for something, it is 0 of cpu"),
    ("capacity = { cpu = 0 }\n" + queue("a"), "capacity.cpu: must be a number more than 0, not 0"),
    ("capacity = { cpu = nan }\n" + queue("a"), "capacity.cpu: must be a number more than 0, not nan"),
    (CPU + queue("a", demand="{ cpu = 5 }"), "demand.cpu must be at most the capacity of 4, not 5"),
    (CPU + queue("a", demand="{ cpu = -1 }"), "demand.cpu must be a number, 0 or more, not -1"),
    (CPU + queue("a", demand="{ gpu = 1 }"), "demand must be of resources in capacity (cpu), not of 'gpu'"),
    (queue("a", demand="{ cpu = 1 }"), "demand must be of resources in capacity (none), not of 'cpu'"),
    (queue("a", tasks=-1), "queue 'a': tasks must be from 0 to 2^63 - 1, not -1"),
    (queue("/a"), "queue '/a': its name must be a path such as organisation/department/user"),
    (queue(""), "queue '': its name must be a path"),
    (queue("a/", parent='"b"') + queue("b"), "queue 'a/': holds the jobs of 'a', which must be its parent, not 'b'"),
    (queue("a", wieght=2), "wieght"),
    ("capacities = 3\n", "capacities"),
    (queue("a", weight='"heavy"'), "queue[0].weight"),
    ("[[queue]]\nweight = 2\n", "name"),
    ("[[queue", "tree.toml: "),
])
def test_a_mistake_is_one_line_that_names_the_rule_and_the_value(read, text, words):
    with pytest.raises(InputError) as caught:
        read(text)
    assert words in str(caught.value)
    assert str(caught.value).count("tree.toml: ") == 1
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_tree(tmp_path / "none.toml")


def test_a_tree_has_64_levels_at_most():
    tree = tree_of_paths(["/".join("a" * 64)], TreeFile(queue=[Queue(name="a")]))
    assert len(tree) == 65
    assert tree.guarantee()[-1] == 1
    with pytest.raises(InputError, match="must be at most 64 levels deep"):
        tree_of_paths(["/".join("a" * 65)])


@pytest.mark.parametrize("queues", [
    [Queue(name=f"q{level}", parent=f"q{level - 1}" if level else None) for level in range(10_000)],
    [Queue(name="/".join("a" * 10_000))],
    [Queue(name=f"q{level}", parent=f"q{(level + 1) % 10_000}") for level in range(10_000)],
], ids=["chain", "path", "ring"])
def test_a_tree_of_10_000_levels_is_refused_at_once(queues):
    """It took 29 s: what is done for each queue is done for all above it."""
    began = time.process_time()
    with pytest.raises(InputError, match="must be at most 64 levels deep"):
        tree_of_paths([], TreeFile(queue=queues))
    assert time.process_time() - began < 2


def test_queues_of_a_file_and_of_a_workload_together_are_not_too_deep():
    below = TreeFile(queue=[Queue(name=f"q{level}", parent=f"q{level - 1}" if level else None) for level in range(60)]
                     + [Queue(name="jobs", parent="q59")])
    assert len(tree_of_paths(["jobs/a/b/c"], below)) == 65
    with pytest.raises(InputError, match="must be at most 64 levels deep"):
        tree_of_paths(["jobs/a/b/c/d"], below)
