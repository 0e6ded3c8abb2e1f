"""Runs side by side: labelled by what differs between their scenarios, refused where their workloads differ."""
import pytest

from fake_runs import write_run
from subak.errors import InputError
from subak.measures.run_folders import load_runs
from subak.measures.runs import groups
from subak.measures.side_by_side import differences
from subak.report.notes import notes
from subak.report.page import write_report
from subak.report.tables.differences import compared
from subak.report.verdict.facts import judged

COMMON = 'workload = "/w/site"\nworkload_digest = "aa"\nresample = "none"\n'


def ran(folder, label="first-fit", scenario="", seed=1, **changes):
    """Write a run with the scenario that it was made by."""
    run = write_run(folder, label, seed, tasks=300, **changes)
    (run / "scenario.toml").write_text((COMMON if "workload_digest" not in scenario else "") + scenario)
    return run


def labels(*folders):
    return [run.label for run in load_runs(*folders)]


def test_fleets_that_differ_are_said_in_the_labels(tmp_path):
    folders = [ran(tmp_path / "a"), ran(tmp_path / "b", scenario="scale = 1.5\n"),
               ran(tmp_path / "c", scenario='remove = ["30%", "10:cpu=1"]\n'),
               ran(tmp_path / "d", scenario="machines = 7\n[capacity]\ncpu = 2.0\n")]
    assert labels(*folders) == ["first-fit", "first-fit scale=1.5", "first-fit remove=30% 10:cpu=1",
                                "first-fit machines=7 cpu=2"]
    assert labels(folders[1]) == ["first-fit"]  # alone it needs no more


def test_what_all_have_alike_is_not_said(tmp_path):
    folders = [ran(tmp_path / "a", scenario="scale = 1.5\nuntil = 5.0\n"),
               ran(tmp_path / "b", "tetris", scenario="scale = 1.5\nuntil = 5.0\n")]
    assert labels(*folders) == ["first-fit", "tetris"]
    assert differences(load_runs(*folders)) == {}


def test_other_fleet_folders_are_named(tmp_path):
    folders = [ran(tmp_path / "a", scenario='fleet_digest = "0123456789"\n'),
               ran(tmp_path / "b", scenario='fleet = "/f/large"\nfleet_digest = "9876543210"\n'),
               ran(tmp_path / "c", scenario='fleet = "/elsewhere/fleet"\nfleet_digest = "5555555555"\n')]
    assert labels(*folders) == [f"first-fit fleet={name}" for name in (
        "site (012345)", "large (987654)", "elsewhere (555555)")]


def test_settings_of_one_scheduler_tell_its_runs_apart_and_no_others(tmp_path):
    slow, quick = "[federation]\nheartbeat = 30.0\n", "[federation]\nheartbeat = 5.0\n"
    folders = [ran(tmp_path / "a"), ran(tmp_path / "b", "megha", slow), ran(tmp_path / "c", "megha", quick)]
    assert labels(*folders) == ["first-fit", "megha heartbeat=30", "megha heartbeat=5"]
    assert labels(*folders[:2]) == ["first-fit", "megha"]


def test_seeds_of_one_setting_stay_together(tmp_path):
    folders = [ran(tmp_path / f"{seed}{scale}", f"first-fit-s{seed}", f"scale = {scale}\n", seed)
               for scale in (1.5, 2.0) for seed in (1, 2)]
    assert {name: len(runs) for name, runs in groups(load_runs(*folders)).items()} == {
        "first-fit scale=1.5": 2, "first-fit scale=2": 2}


def test_moves_that_a_limit_in_time_came_to_are_no_setting(tmp_path):
    folders = [ran(tmp_path / str(seed), f"hmhs-search-s{seed}", f"search_moves = {100 + seed}\n", seed)
               for seed in (1, 2)]
    assert list(groups(load_runs(*folders))) == ["hmhs-search"]
    again = ran(tmp_path / "again", "hmhs-search-s1", "search_moves = 5\n", 1)
    assert list(groups(load_runs(folders[0], again))) == ["hmhs-search search_moves=101", "hmhs-search search_moves=5"]


def test_files_count_by_what_they_hold(tmp_path):
    folders = [ran(tmp_path / name, scenario='faults = "faults.toml"\n') for name in ("a", "b")]
    for folder, text in zip(folders, ("x", "y"), strict=True):
        (folder / "faults.toml").write_text(text)
    assert [label.partition("=")[0] for label in labels(*folders)] == ["first-fit faults"] * 2
    (folders[1] / "faults.toml").write_text("x")
    with pytest.raises(InputError, match="nothing in their scenarios tells them apart"):
        load_runs(*folders)


@pytest.mark.parametrize(("scenario", "said"), [
    ('workload_digest = "bb"\nresample = "none"\n', "two workloads Synthetic month .aa and bb. cannot be compared"),
    ('workload_digest = "aa"\nresample = "sessions"\n', "seeds redraw the workload in one .resample none."),
])
def test_runs_of_different_workloads_are_refused(tmp_path, scenario, said):
    with pytest.raises(InputError, match=said):
        load_runs(ran(tmp_path / "a"), ran(tmp_path / "b", "tetris", scenario))


def test_workloads_of_other_names_are_refused(tmp_path):
    other = ran(tmp_path / "b", "tetris", workload={"name": "another", "tasks": 1, "jobs": 1})
    with pytest.raises(InputError, match="different workloads, Synthetic month and another, cannot be compared"):
        load_runs(ran(tmp_path / "a"), other)


def test_the_page_says_what_differs_and_recommends_nobody_of_another_fleet(tmp_path):
    folders = [ran(tmp_path / "a"), ran(tmp_path / "b", scenario="scale = 1.5\n",
                                        fleet={"name": "four clusters × 1.5", "machines": 960})]  # noqa: RUF001
    runs = load_runs(*folders)
    assert "differ in more than the scheduler: scale (as usual, 1.5)." in notes(runs)[0]
    assert (judged(runs, compared(runs)).headline, judged(runs, compared(runs)).chosen) == (
        "Not of the same machines", None)
    with pytest.raises(InputError, match="--out: must be given for several folders"):
        write_report(folders)
    page = write_report(folders, tmp_path / "both.html").read_text()
    for words in ("640 or 960 machines", "Beware: the runs differ in scale", "first-fit scale=1.5"):
        assert words in page


def test_settings_that_differ_leave_the_recommendation(tmp_path):
    folders = [ran(tmp_path / "a", "megha", "[federation]\nheartbeat = 30.0\n", severity=1.0),
               ran(tmp_path / "b", "megha", "[federation]\nheartbeat = 5.0\n", severity=0.2)]
    runs = load_runs(*folders)
    assert judged(runs, compared(runs)).headline == "megha heartbeat=5"
