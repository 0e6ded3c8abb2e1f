"""`subak reproduce mch`: jobs and trees, the loop against its definition, shares by hand, claims, and small runs."""
import html
import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from subak.queues.fair_orders import least_requests
from subak.reproduce.mch import sharing
from subak.reproduce.mch.experiments import DEFAULT, FIGURES, _of_rounds, chosen_figures, exponent
from subak.reproduce.mch.published import CLAIMS, PAPER_SHARES
from subak.reproduce.mch.timing import Jobs, binary_tree, full_tree, jobs_of
from subak.reproduce.workloads import shipped_google

COLUMNS = 200  # of the terminal

# Jobs and trees


def test_two_levels_are_six_nodes_and_four_leaves():
    parent = full_tree(2)
    assert parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert len(full_tree(5)) == 1 + 62
    depth = np.zeros(1_001, int)
    for node, above in enumerate(binary_tree(1_001)[1:], start=1):
        depth[node] = depth[above] + 1
    assert depth.max() + 1 == 10


def test_jobs_are_those_of_the_trace():
    google = shipped_google()
    jobs = jobs_of(google, 2_000, 30, seed=1)
    asked = {tuple(row) for row in google.stages.select("cpu", "memory").rows()}
    assert {tuple(row) for row in jobs.request.tolist()} <= asked
    assert (jobs.request.max(axis=1) > 0).all()
    assert (jobs.tasks.min(), jobs.tasks.max()) == (1, 30)
    fewer = jobs_of(google, 500, 30, seed=1)
    assert fewer.tasks.tolist() == jobs.tasks[:500].tolist()
    assert (fewer.request[fewer.shape] == jobs.request[jobs.shape[:500]]).all()
    assert jobs_of(google, 500, 30, seed=2).tasks.tolist() != fewer.tasks.tolist()


def test_an_exponent_and_its_interval():
    """Of exact powers it is the power; over rounds it has Student's interval, here 12.706 / sqrt(2) deviations."""
    size = np.array([100.0, 200, 500, 1_000, 2_000])
    assert exponent(size, 3e-7 * size**1.5) == pytest.approx(1.5)
    assert np.isnan(exponent(size[:2], size[:2]))
    rounds = pl.DataFrame({"round": [0] * 5 + [1] * 5, "size": [*size, *size], "time": [*size**1.0, *size**1.2]})
    found = _of_rounds(rounds, lambda each: exponent(each["size"].to_numpy(), each["time"].to_numpy()))
    half = 12.706 * 0.2 / 2**0.5 / 2**0.5
    assert found == pytest.approx((1.1, 1.1 - half, 1.1 + half), rel=1e-3)


# Fig. 4


def test_exact_shares_are_the_papers():
    for active, shares in PAPER_SHARES.items():
        known = ~np.isnan(shares)
        assert sharing.exact_shares(active)[known] == pytest.approx(np.array(shares)[known], abs=0.004)


def test_a_phase_is_named_and_settles_first():
    assert sharing.name_of((0, 1, 2, 3, 4, 5)) == "all"
    assert sharing.name_of((1, 2, 3, 4, 5)) == "all but n1,1"
    assert sharing.name_of((2, 3)) == "n2,1; n2,2"
    starts = [np.array([0.0, 500.0]), *[np.array([sharing.ARRIVAL_S[leaf]]) for leaf in range(1, 6)]]
    shares = sharing.Shares(4, starts, [np.array([100.0, 600.0]), *[start + 10.0 for start in starts[1:]]])
    found = sharing.phases(shares)  # n1,1 alone: it holds a task until 100 s, none until 500 s
    assert [(phase.active, phase.begin, phase.end) for phase in found] == [
        ((0,), 0, 100), ((0,), 100, 200), ((0,), 200, 500)]
    assert [phase.share[0] for phase in found] == [0.25, 0.0, 0.0]
    assert shares.at(np.array([50.0, 550.0]))[:, 0].tolist() == [0.25, 0.25]


def test_nobody_asks_for_less_than_is_asked_for():
    """Amounts of a simulation are int32: the least request of those who ask, not of those who do not."""
    assert least_requests(np.array([[1, 0], [0, 3]], np.int32)).tolist() == [1, 3]
    assert least_requests(np.array([[0, 0]], np.int32))[0] > 2**31


# Claims


def test_figures_are_chosen():
    assert chosen_figures(None, past_the_paper=False) == list(DEFAULT)
    assert chosen_figures(None, past_the_paper=True) == list(FIGURES)
    assert chosen_figures("large, 4", past_the_paper=False) == ["4", "large"]
    assert {claim.figure for claim in CLAIMS} == set(FIGURES)


def test_a_bound_in_words_is_named():
    for claim in CLAIMS:
        bounded = claim.least is not None or claim.most is not None
        assert bounded != claim.says.startswith("not in the paper"), claim.says


# Small runs; most of their kernels other tests compile, too


SMALL = """
import json
import sys
import numpy as np
from subak.cli.main import main
from subak.queues.orders import FAIR_ORDERS
from subak.queues.hierarchy import refresh_all
from subak.reproduce.mch import experiments as mch
from subak.reproduce.mch import timing as mch_loop
from subak.reproduce.mch import study as mch_study
from subak.reproduce.mch.timing import decide, full_tree, jobs_of, make_pool

mch_loop.REPETITIONS_MAX = mch_loop.PARTS = mch.TREE_ROUNDS = 1
mch.TIMING_ROUNDS = 2
mch_study.QUICK = mch_study.Scale(12, 120, (2, 3, 4, 5), (4, 8, 12), 9.0, (2, 3, 4), 40, 30, 20, 8, 80,
                                  (60.0,), (1,), (0.99,))
kept, reproduce = [], mch.reproduce
mch.reproduce = lambda bench, keys: kept.append(reproduce(bench, keys)) or kept[0]
folder = sys.argv[1]
sys.argv = ["subak", "reproduce", "mch", "--quick", "--only", ",".join(mch.FIGURES), "--out", folder + "/page"]
try:
    main()
except SystemExit as ended:
    assert not ended.code
found, google = kept[0], mch_study.Bench(mch_study.QUICK, 1, print).google
loop = {}
for order in FAIR_ORDERS:
    jobs = jobs_of(google, 20, 8, 1)
    pool = make_pool(full_tree(2), jobs, order)
    capacity = pool.free.copy()
    refresh_all(pool.tree)
    least, choices = capacity.copy(), 0
    while decide(pool, 1):
        choices += 1
        least = np.minimum(least, pool.free)
        held = pool.tree.running @ pool.request[pool.tree.shape]
        assert (held + pool.free == capacity).all()
    loop[order] = {"choices": choices, "tasks": int(jobs.tasks.sum()), "least": int(least.min()),
                   "started": pool.started.tolist(), "waiting": int(pool.tree.waiting.sum()),
                   "filled": float((least / capacity).min())}
open(folder + "/found.json", "w").write(json.dumps({
    "keys": [figure.key for figure in found.figures], "titles": [figure.title for figure in found.figures],
    "rows": [[row.figure, row.claim, row.measured, row.verdict] for row in found.rows], "loop": loop,
    "numbers": {figure.key: figure.numbers for figure in found.figures},
    "tables": {figure.key: figure.table.to_dicts() for figure in found.figures},
    "points": {figure.key: len(figure.points) for figure in found.figures if figure.points is not None}}))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    done = subprocess.run([sys.executable, "-c", SMALL, str(folder)], capture_output=True, text=True, check=False,
                          env={**os.environ, "COLUMNS": "200"}, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return {**json.loads((folder / "found.json").read_text()), "page": folder / "page", "out": done.stdout,
            "error": done.stderr}


def test_every_figure_is_measured_and_judged(small):
    assert small["keys"] == list(FIGURES)
    assert small["titles"][0].startswith("Shares of six jobs of 120 tasks")
    assert len(small["rows"]) == len(CLAIMS)
    assert not [row for row in small["rows"] if row[2] is None]
    assert {claim.number for claim in CLAIMS} <= {name for numbers in small["numbers"].values() for name in numbers}


def test_the_loop_serves_every_task_and_never_oversubscribes(small):
    for order, loop in small["loop"].items():
        assert loop["choices"] == loop["tasks"], order
        assert loop["waiting"] == 0
        assert loop["least"] >= 0
        assert loop["filled"] < 0.2  # the machine was nearly full
    assert small["loop"]["hdrf"]["started"] == small["loop"]["hdrf-fast"]["started"]
    assert small["loop"]["hdrf"]["started"] != small["loop"]["drf"]["started"]


def test_hierarchical_orders_share_as_the_exact_solution_says(small):
    """A machine of 12, of which the exact shares are whole units: a mean is off by what ends at its beginning."""
    numbers = small["numbers"]["4"]
    for order in ("hdrf", "hdrf-fast", "mch", "mch-exact"):
        assert numbers[f"{order} error"] < 0.01, order
    for order in ("drf", "c-ch", "m-ch"):
        assert numbers[f"{order} error"] > 0.05, order
    assert numbers["rises"] == pytest.approx(1.0, abs=0.01)
    rows = small["tables"]["4"]
    full = {row["order"]: row for row in rows if row["jobs"] == "all"}
    assert list(full) == ["exact", "paper", "hdrf", "hdrf-fast", "mch", "mch-exact", "drf", "c-ch", "m-ch"]
    assert full["exact"]["n2,1 (share)"] == pytest.approx(1 / 6)
    assert full["hdrf"]["from (s)"] == 200
    assert full["hdrf"]["to (s)"] > 500


def test_every_order_is_timed_at_every_size(small):
    assert small["points"]["5"] == 4 * 3 * 5
    rows = small["tables"]["5"]
    assert {row["largest point, jobs"] for row in rows} == {12}
    for row in small["tables"]["root"]:
        whole = row["implementation: H-DRF / hdrf-fast (times)"] * row["algorithm: hdrf-fast / MCH (times)"]
        assert whole == pytest.approx(row["H-DRF / MCH (times)"])


def test_fair_turns_are_measured_with_every_rule(small):
    rows = small["tables"]["federation"]
    assert len(rows) == 3 * 2 * 3
    assert {row["queue_order"] for row in rows} == {"round-robin", "hdrf-fast", "mch"}
    assert all(0 <= row["unfairness (share)"] <= 1 for row in rows)
    assert any(row["unfairness (share)"] > 0 for row in rows)


# The command line


def test_the_paper_is_listed(run):
    code, out, _ = run("reproduce")
    assert code == 0
    assert "mch  You, Wang" in out


def test_figures_are_printed(small):
    assert "claims hold" in small["out"]
    assert ", seed 1. This is the quick version" in small["out"]
    assert small["error"].startswith("Wrote ")
    for words in ("largest error", "as far as", "decisions a second", "unfairness"):
        assert words in small["out"]


def test_the_page_is_whole(run, small):
    """It holds every figure, claim and note, and what was drawn and measured is beside it."""
    names = {f"figure-{key}.{kind}" for key in FIGURES for kind in ("csv", "svg", "png")}
    assert {path.name for path in small["page"].iterdir()} == names | {
        "index.html", "figure-4-points.csv", "figure-5-points.csv"}
    page = html.unescape((small["page"] / "index.html").read_text())
    assert page.count("<svg") == len(FIGURES)
    assert "MCH, reproduced" in page
    for claim in CLAIMS:
        assert claim.says in page
    for forbidden in ("<script", 'src="http', "url(http", 'href="http'):
        assert forbidden not in page
    code, _, error = run("reproduce", "mch", "--quick", "--only", "5", "--out", small["page"])
    assert code == 2
    assert "exists already" in error


def test_mistakes_are_one_line(run, tmp_path):
    for arguments, words in ((("--only", "6"), "must name figures among 4, 5, root"), (("--only", ""), "must name"),
                             (("--trace", tmp_path / "no"), "no such folder")):
        code, out, error = run("reproduce", "mch", "--quick", *arguments)
        assert (code, out) == (2, "")
        assert words in error
        assert error.count("\n") == 1


def test_a_request_is_kept_as_given():
    """Jobs are what the loop trusts: one row a job, and no amount below nothing."""
    jobs = jobs_of(shipped_google(), 50, 5, seed=3)
    assert isinstance(jobs, Jobs)
    assert len(jobs.shape) == len(jobs.tasks) == 50
    assert jobs.request.min() >= 0
