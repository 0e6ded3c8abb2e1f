"""`subak reproduce dodoor`: what is drawn, what is measured, and the command on small numbers."""
import sys

import numpy as np
import polars as pl
import pytest

from subak.cli.main import main
from subak.errors import InputError
from subak.reproduce.claims import Figure, over_seeds
from subak.reproduce.dodoor import figures
from subak.reproduce.dodoor.experiments import (
    EACH,
    KINDS,
    LOADS_TRIED,
    SCHEDULERS,
    SIZES,
    Bench,
    Scale,
    _numbers,
    azure,
    chosen_figures,
    machines,
    requests,
)
from subak.reproduce.dodoor.published import CLAIMS


def test_requests_ask_for_the_cores_that_the_load_says():
    fleet, workload = machines(), requests(20_000, 0.8, 5)
    there = float((fleet.machines["cpu"] * 1e-3).sum())
    assert (len(fleet.machines), there) == (EACH * len(KINDS), EACH * sum(cores for cores, _ in KINDS))
    asked = (workload.stages["cpu"].to_numpy() * 1e-3)[workload.tasks["stage"].to_numpy()]
    over = workload.tasks["arrival"].max()
    assert (asked * workload.tasks["run_time"].to_numpy()).sum() / (there * over) == pytest.approx(0.8, rel=0.02)
    share = np.isclose(asked, 0.42).mean()
    assert share == pytest.approx(SIZES[0.42, 1.37], abs=0.005)
    assert np.quantile(workload.tasks["run_time"], 0.5) == pytest.approx(47.1, rel=0.02)


def test_numbers_are_those_of_the_load_at_which_dodoor_is_best():
    rows = [{"load (share)": load, "scheduler": name, "messages a task": messages, "tasks a second": rate,
             "mean (s)": mean, "95 % (s)": tail}
            for load, name, messages, rate, mean, tail in (
                (0.5, "dodoor", 2.0, 10.0, 40.0, 90.0), (0.5, "sparrow", 4.0, 10.0, 50.0, 90.0),
                (0.9, "dodoor", 2.0, 15.0, 60.0, 50.0), (0.9, "sparrow", 5.0, 10.0, 60.0, 100.0),
                (0.5, "fresh", 8.0, 1.0, 20.0, 1.0), (0.9, "fresh", 8.0, 1.0, 60.0, 1.0),
                (0.5, "random", 8.0, 1.0, 80.0, 1.0), (0.9, "random", 8.0, 1.0, 60.0, 1.0))]
    found = _numbers(pl.DataFrame(rows))
    assert {name: found[name] for name in found if name.endswith("load 0.9")} == {
        "messages: load 0.9": 0.4, "throughput: load 0.9": 10 / 15, "mean: load 0.9": 1.0, "tail: load 0.9": 0.5,
        "mean over fresh: load 0.9": 1.0, "mean over random: load 0.9": 1.0}
    best = over_seeds([Figure("azure", "", pl.DataFrame(), found)] * 2).numbers
    assert [best[claim.number].value for claim in CLAIMS] == [0.4, 10 / 15, 0.8, 0.5, 1.0, 0.5]


def test_a_small_run_has_every_number_and_its_chart():
    said = []
    figure = azure(Bench(Scale(seeds=2, requests=300), 1, lambda label, part: said.append(part)))
    assert {claim.number for claim in CLAIMS} <= set(figure.numbers)
    assert len(figure.table) == len(LOADS_TRIED) * len(SCHEDULERS)
    assert said == sorted(said)
    assert len(said) == 2 * len(figure.table)
    of = {row["scheduler"]: row["messages a task"] for row in figure.table.iter_rows(named=True)}
    assert of["sparrow"] == 6.0  # two of each of PROBE and FETCH, and ASSIGN and NOTHING_LEFT
    assert 2.0 < of["dodoor"] < 2.3  # ENQUEUE, SET_LOAD, and parts of ADD_LOAD and LOADS
    assert figures.draw(figure).to_dict()["data"]


def test_only_what_there_is_can_be_asked_for(monkeypatch, capsys):
    with pytest.raises(InputError, match="--only: must name figures among azure, not '1'"):
        chosen_figures("1", False)
    monkeypatch.setattr(sys, "argv", ["subak", "reproduce", "dodoor", "--only", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--only: must name figures among azure" in capsys.readouterr().err
