"""What the command line, a scenario and a run have under one name is handed on by that name: none may be lost."""
import inspect
from dataclasses import fields

import pytest

from subak.cli.options import ScenarioOptions, scenario_from
from subak.cli.usage.compare import compare
from subak.cli.usage.simulate import simulate
from subak.cli.usage.size import size
from subak.cli.usage.tune import tune
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation
from subak.simulator.engine.setup import Terms

OPTIONS = {row.name for row in fields(ScenarioOptions)}
SCENARIO, FEDERATION = set(Scenario.__struct_fields__), set(Federation.__struct_fields__)
OF_COMMANDS = {"schedulers", "seeds"}  # options of their own in each command
NOTED = {"workload_digest", "fleet_digest"}  # by the program
# What acts on a field that is no term of a run: what is read before it, what it is run with, and where terms say it.
READ_BEFORE = {"workload", "workload_digest", "fleet", "fleet_digest", "machines", "capacity", "scale", "remove",
               "add_machines", "faults", "failures", "gangs", "only_queues", "load"}
RUN_WITH = {"schedulers", "seeds", "federation", "check_policy", "parameters"}
SEARCH = {"search_seconds", "search_moves"}
MEASURED_BY = {"measure_from", "measure_until", "resample", "objectives", "energy"}


def test_an_option_fills_one_field():
    either, neither = SCENARIO & FEDERATION, OPTIONS - SCENARIO - FEDERATION
    assert sorted(either) == []
    assert sorted(neither) == ["scenario"]
    unasked = SCENARIO - OPTIONS
    assert unasked == OF_COMMANDS | NOTED


def test_a_field_reaches_the_run():
    ignored = SCENARIO - set(Terms._fields) - READ_BEFORE - RUN_WITH - SEARCH - MEASURED_BY
    assert sorted(ignored) == []
    assert {name for name in Terms._fields if not hasattr(Scenario(), name)} == {
        "ranking", "seed", "arrival_of_stage"}


@pytest.mark.parametrize("command", [simulate, compare, size, tune])
def test_a_command_takes_every_option(command):
    assert inspect.signature(command).parameters.keys() >= OPTIONS


def test_what_is_given_is_what_the_scenario_holds():
    given = ScenarioOptions(slow_start=0.6, heartbeat=7.0)
    scenario = scenario_from(ScenarioOptions(workload="W", machines=3, capacity=["cpu=2"], interval=4.0, until=5.0,
                                             slow_start=0.6), None, [2], ["best-fit"])
    assert (scenario.workload, scenario.machines, scenario.capacity) == ("W", 3, {"cpu": 2.0})
    assert (scenario.interval, scenario.until, scenario.slow_start) == (4.0, 5.0, 0.6)
    assert (scenario.schedulers, scenario.seeds) == (["best-fit"], [2])
    scenario = scenario_from(ScenarioOptions(heartbeat=7.0, shares=["a=0.8"], preemption="strict"), ["megha"], None, [])
    assert scenario.federation == Federation(heartbeat=7.0, shares={"a": 0.8}, preemption="strict")
    with pytest.raises(InputError, match="slow_start"):
        scenario_from(given, ["megha"], None, [])


def test_a_scenario_file_goes_with_no_other_option(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('schedulers = ["tetris"]\n')
    assert scenario_from(ScenarioOptions(scenario=file), None, None, []).schedulers == ["tetris"]
    for other in (ScenarioOptions(scenario=file, until=1.0), ScenarioOptions(scenario=file, capacity=["cpu=1"]),
                  ScenarioOptions(scenario=file, delay=0.0)):
        with pytest.raises(InputError, match="--scenario: holds everything"):
            scenario_from(other, None, None, [])
