"""Federated runs from the command line to the page: results, reasons, scenarios, explanations, and what is refused."""
import filecmp
import json
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from small import TWO, fleet_of, plain, staged
from subak.cli.main import main
from subak.cli.progress import COMPILE_TIME, compiling_notice
from subak.errors import InputError
from subak.experiment.parallel import in_good_order, jobs_of
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario, settings_of
from subak.federation.messages import KINDS, PROFILES, REFUSED, REPARTITION
from subak.federation.settings import Federation, supported_by
from subak.kernels.kernel import SETTINGS
from subak.measures.run_folders import load_runs
from subak.placement.claims import TASK_FINISHED
from subak.placement.schedulers import SCHEDULERS
from subak.policy import find_scheduler
from subak.report.comparison import messages_a_task, refused_share
from subak.report.explain import explain
from subak.settings import changed_settings
from subak.simulator.federated import engine
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated_results import PARTS
from subak.simulator.results import task_table, timeline_table
from subak.simulator.simulate import simulate

FEDERATED = [name for name, scheduler in SCHEDULERS.items() if scheduler.architecture]
SMALL = Federation(global_masters=2, local_masters=2)


def settings(**changes):
    return Federation(**{"global_masters": 2, "local_masters": 2, **changes})


def run(name, workload, fleet, federation=None, **options):
    """Simulate; return the outcome and the table of tasks."""
    outcome = simulate(workload, fleet, find_scheduler(name), federation=federation or SMALL, **options)
    return outcome, task_table(outcome, workload, fleet)


def busy(tasks=60, machines=4):
    """More tasks than machines: some wait."""
    return plain(*[(row / 4, 3 + row % 5, 1) for row in range(tasks)]), fleet_of(*[(1,)] * machines)


# -- names -------------------------------------------------------------------------------------------------------------


def test_every_architecture_has_a_name_and_its_settings():
    assert {SCHEDULERS[name].architecture for name in FEDERATED} == set(ARCHITECTURES)
    known = set(Federation.__struct_fields__)
    assert all(set(supported_by(SCHEDULERS[name])) <= known for name in FEDERATED)
    assert known == {setting for name in FEDERATED for setting in supported_by(SCHEDULERS[name])}


@pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")
def test_a_process_reads_the_kernels_of_its_first_run_and_no_more(monkeypatch):
    run("sparrow", *busy(tasks=3))
    monkeypatch.setattr(engine, "kernels_of", lambda jobs: pytest.fail(f"asked for {len(jobs)} kernels again"))
    outcome, _ = run("sparrow", *busy(tasks=4))
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()


def test_one_job_of_each_engine_goes_first():
    jobs = in_good_order(jobs_of(Scenario(schedulers=["central", "megha", "first-fit", "best-fit", "sparrow"])))
    assert [job.scheduler for job in jobs] == ["central", "first-fit", "sparrow", "megha", "best-fit"]


def test_the_notice_says_how_long_compiling_takes(monkeypatch):
    monkeypatch.setattr("subak.cli.progress.is_compiled", lambda kernel: kernel == "run_ordered")
    assert compiling_notice(["first-fit"]) == ""
    assert COMPILE_TIME in compiling_notice(["first-fit", "sparrow"])


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEDERATED)
@pytest.mark.parametrize("until", [float("inf"), 9.0])
def test_the_parts_add_up_to_the_allocation_time(name, until):
    outcome, tasks = run(name, *busy(), until=until)
    started = tasks.filter(pl.col("start").is_not_null())
    assert len(started) > 0
    whole = (started["start"] - started["ready"]).to_numpy()
    np.testing.assert_allclose(sum(started[part].to_numpy() for part in PARTS), whole, rtol=0, atol=1e-9)
    assert all(started[part].min() >= 0 for part in PARTS)
    network, rows = outcome.federated.network, tasks["start"].is_not_null().to_numpy()
    counted = network.processing + network.at_worker + network.communication
    assert (counted[rows] <= whole + 1e-9).all(), "without faults nothing is counted twice"
    assert tasks.filter(pl.col("start").is_null()).select(PARTS).null_count().sum_horizontal().sum() == 4 * (
        len(tasks) - len(started))


@pytest.mark.parametrize("name", FEDERATED)
def test_places_that_fill_partitions_up_appear_nowhere(name, tmp_path):
    workload, fleet = busy()
    outcome, tasks = run(name, workload, fleet)
    assert set(tasks["machine"].drop_nulls()) <= {"m0", "m1", "m2", "m3"}
    assert tasks["machine"].null_count() == 0
    timeline = timeline_table(outcome, workload)
    assert timeline["capacity_cpu"].drop_nans().max() == pytest.approx(4)
    summary = _summary(tmp_path / "R", name, workload, fleet)
    assert summary.federation.roles["worker"].roles == 4


@pytest.mark.parametrize("interval", [None, 0.3, 7.0])
@pytest.mark.parametrize("name", FEDERATED)
def test_the_messages_of_all_intervals_are_those_that_were_handled(name, interval):
    workload, fleet = busy()
    outcome, tasks = run(name, workload, fleet, interval=interval)
    timeline, handled = timeline_table(outcome, workload), outcome.federated.network.handled
    assert timeline["messages"].sum() == handled.sum() > 0
    assert timeline["refusals"].sum() == handled[REFUSED]
    assert timeline["repartitions"].sum() == handled[REPARTITION]
    assert timeline["preemptions"].sum() == 0
    if name == "megha":
        assert timeline["refusals"].sum() == tasks["refusals"].sum() > 0
        assert timeline["repartitions"].sum() == tasks["repartitions"].sum() > 0


def test_messages_are_counted_in_their_interval_while_nothing_waits_or_runs():
    workload, fleet = plain((0, 1, 1), (30, 1, 1)), fleet_of((1,), (1,))
    outcome, _ = run("megha", workload, fleet, settings(heartbeat=3.0, service_scale=0.0), interval=6.0)
    counted = timeline_table(outcome, workload)["messages"].to_list()
    beat = 1 + 2 * 2  # BEAT; to and from each of two global masters UPDATE and NOTED
    assert counted[1:5] == [2 * 2 * beat] * 4  # two local masters, a beat each 3 s
    assert counted[0] > 2 * 2 * beat


def test_tasks_preempted_are_counted_in_the_timeline():
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}],
                      [(0, 0, 50)] * 4 + [(1, 2, 1)] * 2)
    jobs = workload.jobs.with_columns(queue=pl.Series(["a", "b"]))
    workload = replace(workload, jobs=jobs)
    fair = settings(preemption="strict", local_masters=1, global_masters=1, shares={"a": 0.5, "b": 0.5})
    outcome, tasks = run("megha", workload, fleet_of(*[(1,)] * 4), fair, interval=1.0)
    timeline = timeline_table(outcome, workload)
    assert timeline["preemptions"].sum() == tasks["preemptions"].sum() > 0
    first = timeline.filter(pl.col("preemptions") > 0)["time"][0]
    assert first == 2.0


def test_megha_says_which_masters_and_how_often_refused():
    workload, fleet = busy()
    outcome, tasks = run("megha", workload, fleet)
    assert tasks.columns[-5:] == ["global_master", "local_master", "refusals", "repartitions", "preemptions"]
    assert set(tasks["global_master"]) == {0, 1}
    cluster = dict(zip(["m0", "m1", "m2", "m3"], ["0", "1", "0", "1"], strict=True))
    assert [cluster[machine] for machine in tasks["machine"]] == tasks["local_master"].cast(pl.String).to_list()
    refused = sum(local.tally.refused_not_free + local.tally.refused_other for local in outcome.federated.roles.locals)
    assert tasks["refusals"].sum() == refused > 0
    assert tasks["repartitions"].sum() > 0


def test_a_central_run_has_no_columns_of_a_federation():
    _, tasks = run("first-fit", *busy())
    assert tasks.columns[-4:] == list(PARTS)


# -- reasons -----------------------------------------------------------------------------------------------------------


def reasons(tasks):
    return set(tasks.filter(pl.col("status") == "WAITING")["reason"].cast(pl.String))


def test_a_task_that_nothing_can_hold_now_lacks_a_resource():
    lacking = "no machine has free cpu 1 core (at most 0 is free on one machine)"
    workload, fleet = plain((0, 100, 1), (1, 5, 1)), fleet_of((1,))
    _, tasks = run("megha", workload, fleet, settings(local_masters=1, global_masters=1), until=50.0)
    assert reasons(tasks) == {lacking}
    _, tasks = run("megha", workload, fleet, settings(local_masters=1), until=50.0)  # whose other master did not know
    assert reasons(tasks) == {f"refused by a newer state, and by now {lacking}"}


def test_a_task_whose_constraints_nobody_meets_any_more_says_so():
    workload = staged([{"request": (1,), "constraints": [("rack", "=", "a")]}], [(0, 5, 3)])
    fleet = fleet_of((1,), (1,), attributes=[(0, "rack", "a")], changes=[(1, 0, False, 1)])
    for name in ("megha", "sparrow"):
        _, tasks = run(name, workload, fleet, until=50.0)
        assert len(reasons(tasks)) == 1
        assert reasons(tasks) <= {"no machine that meets its constraints is present",
                                  "no worker that is there could hold it; its scheduler keeps it until one comes"}


def test_messages_under_way_are_reasons_too():
    workload, fleet = plain((0, 5, 1)), fleet_of((1,))
    slow = settings(delay=1.0, service_scale=0.0, local_masters=1)
    said = [reasons(run("megha", workload, fleet, slow, until=until)[1]) for until in (0.5, 1.5, 2.5)]
    assert said == [{"its global master has not heard of it yet"},
                    {"it is requested, and its local master has not answered yet"},
                    {"it is requested, and its local master has not answered yet"}]


def test_a_view_that_is_behind_is_a_reason():
    # the second global master hears of the end of the first task only with a heartbeat
    workload, fleet = plain((0, 4, 1), (1, 4, 1)), fleet_of((1,))
    _, tasks = run("megha", workload, fleet, settings(local_masters=1, heartbeat=1000.0), until=10.0)
    assert reasons(tasks) == {"a machine could take it by now, which its global master's view does not show yet"}


def test_a_queue_that_has_used_up_its_share_is_told():
    workload = staged([{"job": row, "request": (1,)} for row in range(4)], [(row, row / 10, 100) for row in range(4)])
    fair = settings(preemption="strict", shares={"all/of/us": 0.5}, local_masters=1, global_masters=1)
    _, tasks = run("megha", workload, fleet_of((2,)), fair, until=20.0)
    assert {text.split(",")[0] for text in reasons(tasks)} == {"its queue has used up its share"}


def test_a_gang_that_does_not_fit_is_told():
    workload = staged([{"request": (1,)}], [(0, 0, 10), (0, 0, 10), (0, 0, 10)])
    workload = type(workload)(workload.resources, workload.jobs, workload.stages.with_columns(gang=True),
                              workload.tasks, workload.provenance)
    _, tasks = run("megha", workload, fleet_of((2,)), settings(local_masters=1), until=5.0)
    assert reasons(tasks) == {"there is no room for all of its gang at once"}


# -- run folders -------------------------------------------------------------------------------------------------------


def _summary(folder, name, workload, fleet, **options):
    scenario = Scenario(schedulers=[name], federation=settings_of(
        Scenario(schedulers=["megha", "sparrow"], federation=SMALL), name), **options)
    return simulate_into(folder, scenario, name, 1, (workload, fleet))


def test_the_summary_counts_messages_roles_and_shares(tmp_path):
    workload, fleet = busy()
    facts = _summary(tmp_path / "R", "megha", workload, fleet, until=9.0).federation
    assert facts.messages["SUBMIT"] == 36
    assert facts.counts["launches"] + facts.counts["repartitions"] == facts.messages["LAUNCH"] + facts.messages[
        "REPARTITION"]
    assert facts.settings["global_masters"] == 2
    assert "probe_ratio" not in facts.settings
    assert set(facts.roles) == {"submitter", "global master", "local master", "worker"}
    assert facts.roles["global master"].roles == 2
    assert 0 < facts.roles["global master"].busy <= facts.roles["global master"].busy_max < 1
    (queue,) = facts.queues
    assert queue.used_at_end == 1.0
    assert 0 < queue.used <= 1.0
    summary = load_runs(tmp_path / "R")[0].summary
    assert summary.federation == facts
    assert messages_a_task(summary) > 1
    assert 0 <= refused_share(summary) < 1


def test_the_page_has_a_section_for_federations(tmp_path):
    from subak.report.charts.runs import allocation_distribution
    from subak.report.page import write_report

    for name in ("megha", "sparrow", "first-fit"):
        _summary(tmp_path / "runs" / name, name, *busy())
    spec = allocation_distribution(load_runs(tmp_path)).to_dict()
    rows = spec["datasets"][spec["data"]["name"]]
    for line in spec["usermeta"]["lines"]:
        shares = [row[line["line"]] for row in rows]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
    assert [line["run"] for line in spec["usermeta"]["lines"]] == ["megha", "sparrow"]
    text = write_report(tmp_path, images=tmp_path / "pictures", formats=["svg"]).read_text()
    drawn = ("federation", "chart-allocation-parts", "chart-messages-over-time")
    assert all(f'id="{name}"' in text for name in drawn)
    assert "Shares of queues" in text
    assert (tmp_path / "pictures" / "allocation-distribution.svg").read_text().startswith("<svg")


def test_a_page_without_federations_has_none(tmp_path):
    from subak.report.page import write_report

    _summary(tmp_path / "R", "first-fit", *busy())
    text = write_report(tmp_path / "R").read_text()
    assert not any(f'id="{name}"' in text for name in ("federation", "chart-messages-over-time"))


# -- scenarios ---------------------------------------------------------------------------------------------------------


def test_only_settings_that_some_scheduler_supports_are_taken():
    with pytest.raises(InputError, match=r"federation\.heartbeat: none of the schedulers sparrow supports it; megha"):
        Scenario(schedulers=["sparrow"], federation=Federation(heartbeat=5))
    with pytest.raises(InputError, match="faults: first-fit does not support them"):
        Scenario(schedulers=["megha", "first-fit"], faults="plan.toml")
    both = Scenario(schedulers=["sparrow", "megha"], federation=Federation(heartbeat=5, probe_ratio=3))
    assert changed_settings(settings_of(both, "megha")) == {"heartbeat": 5}
    assert changed_settings(settings_of(both, "sparrow")) == {"probe_ratio": 3}


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command in this process; return its exit code, what it printed and what it remarked."""

    def _run(*arguments):
        monkeypatch.setattr(sys, "argv", ["subak", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return _run


@pytest.fixture
def site(command, tmp_path):
    """A workload of 150 tasks, without a fleet."""
    (tmp_path / "site.tr").write_text("".join(f"{second} 3 2.5 2 {second % 7 + 1} 3\n" for second in range(50)))
    assert command("convert", "tr", tmp_path / "site.tr", "--out", tmp_path / "W")[0] == 0
    return tmp_path / "W"


MACHINES = ("--machines", 6, "--capacity", "slot=1")
MASTERS = ("--global-masters", 2, "--local-masters", 3)


def test_a_run_repeats_itself_to_the_byte_with_settings_and_faults(command, site, tmp_path):
    (tmp_path / "f.toml").write_text("preemptions_max = 1\nservice = {LAUNCH = 0.001}\n")
    (tmp_path / "plan.toml").write_text(
        'seed = 3\nloss = 0.1\n[[crash]]\nrole = "global master 0"\nat = 5.0\nrestart_after = 2.0\n')
    first, second = tmp_path / "first", tmp_path / "second"
    code, _, said = command("simulate", site, *MACHINES, *MASTERS, "--scheduler", "megha", "--heartbeat", 3, "--delay",
                            0.002, "--federation", tmp_path / "f.toml", "--faults", tmp_path / "plan.toml",
                            "--until", 60, "--out", first)
    assert code == 0, said
    assert (first / "faults.toml").read_bytes() == (tmp_path / "plan.toml").read_bytes()
    assert command("simulate", "--scenario", first / "scenario.toml", "--out", second)[0] == 0
    names = sorted(path.name for path in first.iterdir() if path.name != "summary.json")
    assert names == ["attempts.parquet", "faults.toml", "groups.parquet", "scenario.toml", "tasks.parquet",
                     "timeline.parquet", "views.parquet", "waiting.parquet"]
    assert filecmp.cmpfiles(first, second, names, shallow=False) == (names, [], [])
    settings = json.loads((first / "summary.json").read_bytes())["federation"]["settings"]
    assert (settings["heartbeat"], settings["preemptions_max"], settings["service"]) == (3, 1, {"LAUNCH": 0.001})


def test_masters_are_as_fast_as_the_profile_of_service_times_says(command, site, tmp_path):
    (tmp_path / "f.toml").write_text('service_profile = "python"\nservice = {LAUNCH = 0.001}\n')
    times = {}
    for name, more in (("compiled", ()), ("python", ("--service-profile", "python")),
                       ("file", ("--federation", tmp_path / "f.toml"))):
        code, _, said = command("simulate", site, *MACHINES, *MASTERS, "--scheduler", "megha", *more, "--until", 60,
                                "--out", tmp_path / name)
        assert code == 0, said
        facts = json.loads((tmp_path / name / "summary.json").read_bytes())["federation"]
        times[name] = (facts["settings"]["service_profile"], facts["service"]["PLACE"], facts["service"]["LAUNCH"])
    assert times == {"compiled": ("compiled", 1e-6, 1.2e-6), "python": ("python", 130e-6, 75e-6),
                     "file": ("python", 130e-6, 0.001)}
    assert 'service_profile = "python"' in (tmp_path / "python" / "scenario.toml").read_text()
    code, _, said = command("simulate", site, *MACHINES, "--scheduler", "megha", "--service-profile", "java")
    assert code == 2
    assert "service_profile: must be one of compiled, python, not 'java'" in " ".join(said.split())


def test_profiles_charge_for_the_same_messages_and_compiled_masters_are_faster():
    compiled, python = PROFILES["compiled"], PROFILES["python"]
    for fast, slow in ((compiled.service, python.service), (compiled.part, python.part)):
        assert fast.keys() == slow.keys() <= set(KINDS)
        assert all(0 < 5 * fast[kind] < slow[kind] for kind in fast)


def test_compare_federations_with_another(command, site, tmp_path):
    code, out, said = command("compare", site, *MACHINES, *MASTERS, "--schedulers", "first-fit,megha,pigeon",
                              "--processes", 1, "--heartbeat", 3, "--out", tmp_path / "C")
    assert code == 0, said
    assert "Its parts, mean" in out
    assert "Allocation time" not in out  # without preemption it is the wait time
    assert "messages a task" in out
    scenario = (tmp_path / "C" / "runs" / "pigeon" / "scenario.toml").read_text()
    assert "local_masters = 3" in scenario
    assert "heartbeat" not in scenario
    assert "[federation]" not in (tmp_path / "C" / "runs" / "first-fit" / "scenario.toml").read_text()


@pytest.mark.parametrize(("arguments", "said"), [
    (("--heartbeat", 3), "federation.heartbeat: none of the schedulers first-fit supports it; megha, central do"),
    (("--scheduler", "sparrow", "--heartbeat", 3), "federation.heartbeat: none of the schedulers sparrow supports it"),
    (("--scheduler", "megha", "--share", "q=0.5"), "federation.shares (--share): go with preemption"),
    (("--scheduler", "megha", "--heartbeat", 0), "heartbeat: must be 0.001 or more, not 0"),
    (("--scheduler", "megha", "--updates", "some"), "updates: must be one of changes, full, not 'some'"),
    (("--scheduler", "megha", "--share", "x"), "--share: must be QUEUE=SHARE"),
    (("--scheduler", "megha", "--preemption", "strict", "--share", "x=0.5"),
     "the workload has no queue 'x'; it has all"),
    (("--scheduler", "megha", "--local-masters", 50), "local_masters: must be at most the number of machines, 6"),
    (("--scheduler", "megha", "--federation", "bad.toml"), "unknown field `bla`"),
    (("--scheduler", "megha", "--federation", "no.toml"), "no.toml: no such file"),
    (("--scheduler", "megha", "--faults", "no.toml"), "no.toml: no such file"),
    (("--scheduler", "megha", "--faults", "loss.toml"), "loss.toml: loss: must be a probability from 0 to 1, not 2"),
    (("--scheduler", "megha", "--faults", "cut.toml"), "cut.toml: cut.between: must name two sides, not 1"),
    (("--scheduler", "megha", "--faults", "role.toml"), "role.toml: role: there is no global master 99; numbers are 0"),
    (("--scheduler", "megha", "--faults", "many.toml"), "many.toml: role: must be submitter, or one of global master"),
    (("--scheduler", "megha", "--faults", "who.toml"), "who.toml: crash.role: the submitter stands for those who"),
    (("--scheduler", "pigeon", "--faults", "no.toml"), "faults: pigeon does not support them"),
    (("--scheduler", "megha", "--queues", "limits.toml"), "queues: all has the limit 0.5; a federation heeds the"),
    (("--scheduler", "sparrow", "--queues", "limits.toml"), "queues: all has the limit 0.5; a federation heeds the"),
])
def test_what_is_refused(command, site, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("bla = 3\n")
    (tmp_path / "limits.toml").write_text('[[queue]]\nname = "all"\nlimit = 0.5\n')
    (tmp_path / "loss.toml").write_text("loss = 2\n")
    (tmp_path / "cut.toml").write_text('[[cut]]\nbetween = ["workers"]\n')
    for name, role in (("role", "global master 99"), ("many", f"worker {'9' * 5000}"), ("who", "submitter")):
        (tmp_path / f"{name}.toml").write_text(f'[[crash]]\nrole = "{role}"\nat = 1.0\n')
    code, out, error = command("simulate", site, *MACHINES, *arguments)
    assert (code, out) == (2, ""), error
    assert said in error.splitlines()[-1]


def test_a_scenario_with_an_unknown_setting_names_it(command, tmp_path):
    (tmp_path / "s.toml").write_text('schedulers = ["megha"]\n[federation]\nnope = 1\n')
    assert "s.toml: Object contains unknown field `nope`" in command("simulate", "--scenario", tmp_path / "s.toml")[2]
    (tmp_path / "t.toml").write_text('schedulers = ["megha"]\n')
    assert "--scenario: holds everything" in command("simulate", "--scenario", tmp_path / "t.toml", "--delay", 1)[2]


# -- explanations ------------------------------------------------------------------------------------------------------


@pytest.fixture
def explained(command, site, tmp_path):
    """Explain tasks of a run that ended early."""
    code, _, said = command("simulate", site, *MACHINES, *MASTERS, "--scheduler", "megha", "--until", 30, "--out",
                            tmp_path / "R")
    assert code == 0, said

    def _explain(task):
        code, out, error = command("explain", tmp_path / "R", task)
        return " ".join((out if code == 0 else error).split())

    return _explain, pl.read_parquet(tmp_path / "R" / "tasks.parquet").with_row_index("row")


def test_explain_every_state(explained, tmp_path):
    explain_task, tasks = explained
    row = {status: tasks.filter(pl.col("status") == status)["row"][0] for status in tasks["status"].unique()}
    assert set(row) == {"FINISHED", "RUNNING", "WAITING", "NOT_ARRIVED"}
    finished = explain_task(row["FINISHED"])
    assert "is finished" in finished
    assert "Asked slot 1" in finished
    assert "after it was ready: " in finished
    waiting = explain_task(row["WAITING"])
    assert "No machine has free slot 1 (at most 0 is free on one machine)." in waiting
    assert "too little free slot (slot 1 asked, at most 0 free): 6 partitions (own in clusters 0, 1, 2; 3 of other" in (
        waiting)
    assert "It arrives after the end of the run." in explain_task(row["NOT_ARRIVED"])
    views = pl.read_parquet(tmp_path / "R" / "views.parquet")
    assert views["machines"].sum() == 6 * views["global_master"].n_unique()
    assert views["view_age"].is_between(0, 10).all()
    assert len(pl.read_parquet(tmp_path / "R" / "waiting.parquet")) == tasks["status"].eq("WAITING").sum()


def test_a_task_is_named_by_job_and_index_or_by_row(explained):
    explain_task, tasks = explained
    values = tasks.row(7, named=True)
    assert explain_task(f"{values['job']}/{values['index']}") == explain_task("7")
    assert "a job's name, with its index or alone; there is no job 'first'" in explain_task("first")
    assert "there is no row 999; rows are 0 to 149" in explain_task("999")
    assert "there is no job 99; jobs are 0 to 49" in explain_task("99/0")
    assert "job 3 has no task 8; its indices are 0 to 2" in explain_task("3/8")


def test_a_task_is_named_by_the_name_of_its_job(tmp_path):
    """A name that is a number is a row where there is one, else the name of a job; after job= it is always a name."""
    stages = [{"request": (1, 1)}, {"job": 1, "request": (1, 1)}, {"job": 2, "request": (1, 1)}]
    workload = staged(stages, [(0, 0, 5), (0, 0, 5), (1, 0, 5), (2, 0, 5)], TWO)
    named = workload.jobs.with_columns(job=pl.Series(["train", "7", "a/0"]))
    workload, fleet = replace(workload, jobs=named), fleet_of((4, 4), resources=TWO)
    (tmp_path / "in" / "fleet").mkdir(parents=True)
    workload.write(tmp_path / "in")
    fleet.write(tmp_path / "in" / "fleet")
    scenario = Scenario(workload=str(tmp_path / "in"), schedulers=["first-fit"])
    simulate_into(tmp_path / "R", scenario, "first-fit", 1, (workload, fleet))
    rows = {task: explain(tmp_path / "R", task).title.split("(")[1].split(")")[0]
            for task in ("train/1", "7", "job=7", "job=7/2", "2", "a/0", "a/0/3", "job=a/0")}
    assert rows == {"train/1": "row 1", "7": "row 2", "2": "row 2", "job=7": "row 2", "job=7/2": "row 2",
                    "a/0": "row 3", "a/0/3": "row 3", "job=a/0": "row 3"}
    with pytest.raises(InputError, match="job train has 2 tasks: name one, from train/0 to train/1"):
        explain(tmp_path / "R", "train")
    with pytest.raises(InputError, match="job 0 has no task 8"):
        explain(tmp_path / "R", "train/8")
    with pytest.raises(InputError, match="there is no row 9"):
        explain(tmp_path / "R", "9")
    (tmp_path / "in" / "jobs.parquet").unlink()
    with pytest.raises(InputError, match="which has the jobs' names, has gone or changed"):
        explain(tmp_path / "R", "train/1")


def test_explain_what_no_machine_can_hold_and_what_waits_for_a_stage(tmp_path):
    stages = [{"request": (1, 1)}, {"request": (1, 1), "depends_on": [0]}, {"job": 1, "request": (1, 9)}]
    workload = staged(stages, [(0, 0, 50), (1, 0, 5), (2, 1, 5)], TWO)
    folder, fleet = tmp_path / "in", fleet_of((4, 4), resources=TWO)
    (folder / "fleet").mkdir(parents=True)
    workload.write(folder)
    fleet.write(folder / "fleet")
    scenario = Scenario(workload=str(folder), schedulers=["megha"], until=20.0, federation=settings(
        local_masters=1, global_masters=1))
    simulate_into(tmp_path / "R", scenario, "megha", 1, (workload, fleet))
    blocked, hopeless = explain(tmp_path / "R", "1"), explain(tmp_path / "R", "2")
    assert blocked.why == ["Its stage waits for others to end.", "It waits for stage s0: 1 running."]
    assert hopeless.why == ["Asks memory 9 GB, the largest machine has 4."]
    (folder / "jobs.parquet").unlink()
    assert ("Asked", "not known: the workload of the run is not there any more, or has changed") in explain(
        tmp_path / "R", "0").facts


def test_a_comparison_is_not_a_run(tmp_path):
    for name in ("first-fit", "best-fit"):
        simulate_into(tmp_path / "runs" / name, Scenario(schedulers=[name]), name, 1, busy())
    with pytest.raises(InputError, match=r"holds several runs; name one of them: .*best-fit"):
        explain(tmp_path, "0")
