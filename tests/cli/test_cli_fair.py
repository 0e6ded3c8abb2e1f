"""`subak fair` and `subak queues` as a user meets them, and the tables beneath."""
import numpy as np
import polars as pl
import pytest

from small import CPU, staged
from subak.measures.fairness import fair_shares as shares_module
from subak.measures.fairness.fair_shares import EXACT, bundles, fair_shares, guaranteed, violations
from subak.measures.fairness.queue_facts import queue_facts
from subak.queues.fair_orders import share_out
from subak.queues.tree import read_tree, tree_of_paths
from subak.workload.table import make_workload
from trees import nested

COLUMNS = 120  # of the terminal

COLLAPSE = """
capacity = { cpu = 120, memory = 120 }

[[queue]]
name = "sci"
demand = { cpu = 1, memory = 1 }

[[queue]]
name = "eng/dev"
demand = { cpu = 1 }

[[queue]]
name = "eng/prod"
demand = { memory = 1 }
"""


@pytest.fixture
def tree_file(tmp_path):
    def write(text=COLLAPSE):
        (tmp_path / "tree.toml").write_text(text)
        return tmp_path / "tree.toml"
    return write


def rows_of(out):
    """The table's lines as lists of cells, by the first."""
    lines = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if line.startswith("│")]
    return {line[0]: line[1:] for line in lines}


# subak fair


def test_a_collapse_is_caught_below_the_guarantee(run, tree_file):
    """Two thirds for sci and a third for eng, whose weights are the same; H-DRF and MCH give both a half."""
    code, out, error = run("fair", tree_file())
    rows = rows_of(out)
    assert (code, error) == (0, "")
    assert rows["sci"] == ["1", "50 %", "50 %", "50 %", "50 %", "66.7 %", "66.7 %", "50 %"]
    assert rows["eng"] == ["1", "50 %", "50 %", "50 %", "50 %", "33.3 % !", "33.3 % !", "50 %"]
    assert rows["eng/dev"] == ["1", "25 %", "50 %", "50 %", "50 %", "33.3 %", "33.3 %", "50 %"]
    assert "C-CH leaves eng below the guarantee." in out
    assert "H-DRF leaves" not in out


def test_a_page_is_written_whole_and_works_offline(run, tree_file, tmp_path):
    code, _, error = run("fair", tree_file(), "--out", tmp_path / "page")
    assert code == 0
    assert error.startswith("Wrote ")
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == [
        "errors.png", "errors.svg", "index.html", "leaves.png", "leaves.svg", "queues.png", "queues.svg", "shares.csv"]
    page = (tmp_path / "page" / "index.html").read_text()
    assert page.count("<svg") == 3
    for forbidden in ("<script", 'src="http', "url(http", 'href="http'):
        assert forbidden not in page
    table = pl.read_csv(tmp_path / "page" / "shares.csv")
    assert table.columns == ["queue", "weight", "limit", "guarantee",
                             "H-DRF", "MCH", "MCH exact", "C-CH", "M-CH", EXACT]
    assert table["C-CH"].to_list() == pytest.approx([1.0, 2 / 3, 1 / 3, 1 / 3, 1 / 3])
    code, _, error = run("fair", tree_file(), "--out", tmp_path / "page")
    assert code == 2
    assert "exists already" in error
    assert run("fair", tree_file(), "--out", tmp_path / "page", "--overwrite")[0] == 0


def test_limits_and_ends_are_kept(run, tree_file):
    text = COLLAPSE.replace('name = "sci"\n', 'name = "sci"\nlimit = 0.25\n').replace(
        'name = "eng/dev"\n', 'name = "eng/dev"\ntasks = 12\n')
    code, out, _ = run("fair", tree_file(text))
    rows = rows_of(out)
    assert code == 0
    assert rows["sci"][1] == "25 %"  # what the limit leaves of a half
    assert rows["sci"][-1] == "25 %"
    assert rows["eng/dev"][-1] == "10 %"
    assert rows["eng/prod"][-1] == "75 %"
    assert "Limits are kept only in 'exact'" in out


def test_many_tasks_are_handed_out_in_bundles(run, tree_file, monkeypatch):
    monkeypatch.setattr(shares_module, "SHARED_TASKS_MAX", 30)
    code, out, _ = run("fair", tree_file())
    assert code == 0
    assert "up to 6 of a queue's were handed out as one" in out
    assert rows_of(out)["sci"] == ["1", "50 %", "50 %", "50 %", "50 %", "65 %", "65 %", "50 %"]


def test_bundles_keep_the_number_of_tasks_small():
    assert bundles(np.array([1e5, 3e5])).tolist() == [1, 1]
    count = np.array([1e9, 10.0, 2e7])
    assert bundles(count).tolist() == [3000, 1, 60]
    assert (count / bundles(count)).sum() <= shares_module.SHARED_TASKS_MAX


def test_a_collapse_is_made_for_each_resource(tree_file):
    """A resource that is not the first is brought to the front; nobody asks for a gpu, so all are one unit."""
    asked = []

    def record(tree, demand, capacity, order, tasks=None):
        asked.append((order, capacity.tolist(), demand.tolist()))
        return share_out(tree, demand, capacity, order, tasks)

    text = COLLAPSE.replace("memory = 120", "memory = 60, gpu = 7")
    found = fair_shares(read_tree(tree_file(text)), record)
    assert found.ways == ["H-DRF", "MCH", "MCH exact", "C-CH", "M-CH", "CH gpu", EXACT]
    assert [capacity for order, capacity, _ in asked if order == "c-ch"] == [[120, 60, 1], [60, 120, 1], [1, 120, 60]]
    assert asked[4][2] == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]


def test_guarantees_are_cut_at_limits_above():
    tree, _ = nested({"a": {"1": [1], "2": [1]}, "b": [1]})
    tree.limit[1] = 0.2
    assert guaranteed(tree, np.array([True, True, True])) == pytest.approx([1, 0.2, 0.1, 0.1, 0.5])
    assert guaranteed(tree, np.array([True, False, True])) == pytest.approx([1, 0.2, 0.2, 0, 0.5])


def test_a_violation_is_more_than_a_task_and_of_who_wants_more():
    tree, _ = nested({"a": {"1": [1], "2": [1]}, "b": [1]})
    share, guarantee = np.array([0.9, 0.4, 0.3, 0.1, 0.5]), tree.guarantee()
    every, grain = np.ones(3, bool), np.array([0.01, 0.01, 0.01])
    assert violations(tree, share, guarantee, every, grain).tolist() == [False, True, False, True, False]
    assert not violations(tree, share, guarantee, np.zeros(3, bool), grain).any()
    assert not violations(tree, share, guarantee, every, np.full(3, 0.2)).any()


@pytest.mark.parametrize(("text", "words"), [
    (COLLAPSE.replace("capacity = { cpu = 120, memory = 120 }", ""), "(none)"),
    ('capacity = { cpu = 1 }\n[[queue]]\nname = "a"\n', "queue 'a': must have a demand"),
    ("capacity = { cpu = 1 }\n", "queue: must list at least one"),
    ('[[queue]]\nname = "a"\n', "capacity: must be given"),
    (COLLAPSE.replace('name = "sci"', 'name = "sci"\nweight = -1'), "queue 'sci': weight must be"),
    (COLLAPSE.replace('name = "sci"', 'name = "eng"'), "only a queue without children may have a demand"),
])
def test_mistakes_in_a_file_are_one_line(run, tree_file, text, words):
    code, out, error = run("fair", tree_file(text))
    assert (code, out) == (2, "")
    assert words in error
    assert "tree.toml: " in error
    assert error.count("\n") == 1


def test_mistakes_on_the_command_line_are_one_line(run, tree_file, tmp_path):
    for arguments, words in ((("fair", tmp_path / "none.toml"), "no such file"), (("fair",), "Missing argument"),
                             (("queues", tmp_path / "none.toml"), "no such file"),
                             (("queues", tmp_path / "none"), "no such folder, and not the name of a sample"),
                             (("queues", tree_file(), "--queues", tree_file()), "--queues: goes with a workload")):
        code, out, error = run(*arguments)
        assert (code, out) == (2, "")
        assert words in error
        assert error.count("\n") == 1


# subak queues


def workload():
    """Jobs in a/x, in a itself, in b and in b; one core each, of which two run at a time in b."""
    made = staged([{"job": job, "request": (1,)} for job in range(4)],
                  [(0, 0.0, 10.0), (1, 0.0, 5.0), (2, 0.0, 10.0), (2, 10.0, 10.0), (3, 5.0, 5.0)], jobs=list("wxyz"))
    jobs = made.jobs.with_columns(pl.Series("queue", ["a/x", "a", "b", "b"]))
    stages = made.stages.with_columns(pl.col("cpu").cast(pl.Float64))
    return make_workload(jobs, stages, made.tasks, CPU)


def test_what_is_asked_for_adds_up():
    made = workload()
    tree = tree_of_paths(made.jobs["queue"].to_list())
    assert tree.names == ["", "a", "a/x", "a/", "b"]
    found = queue_facts(made, tree)
    assert found.jobs.tolist() == [4, 2, 1, 1, 2]
    assert found.tasks.tolist() == [5, 2, 1, 1, 3]
    assert found.volume["cpu"] == pytest.approx(np.array([40, 15, 10, 5, 25]) / 40)
    assert found.peak["cpu"].tolist() == [3, 2, 1, 1, 2]


def test_queues_of_a_workload(run, tree_file, tmp_path):
    (tmp_path / "W").mkdir()
    workload().write(tmp_path / "W")
    code, out, error = run("queues", tmp_path / "W")
    assert (code, error) == (0, "")
    assert "4 queues, 3 without children" in out
    assert rows_of(out.split("What is asked for")[0])["a/"] == ["1", "25 %", "1", "1"]
    assert rows_of(out.split("What is asked for")[1])["b"] == ["62.5 %", "2"]
    weights = tree_file('[[queue]]\nname = "a"\nweight = 3\nlimit = 0.5\n[[queue]]\nname = "idle"\n')
    code, out, _ = run("queues", tmp_path / "W", "--queues", weights)
    table = rows_of(out.split("What is asked for")[0])
    assert table["a"] == ["3", "50 %", "60 %", "2", "2"]
    assert table["idle"] == ["1", "–", "20 %", "0", "0"]  # noqa: RUF001  (as in report/number_text.py)


def test_only_the_largest_queues_are_listed(run, tmp_path):
    (tmp_path / "W").mkdir()
    workload().write(tmp_path / "W")
    code, out, _ = run("queues", tmp_path / "W", "--rows", "1")
    assert code == 0
    assert set(rows_of(out)) == {"all", "b"}
    assert "3 more queues; --rows lists more." in out


def test_queues_of_a_file(run, tree_file):
    code, out, _ = run("queues", tree_file())
    assert code == 0
    assert "4 queues, 3 without children" in out
    assert rows_of(out)["eng/dev"] == ["1", "25 %"]
