"""One declaration for a setting: option, scenario file, keyword, refusal and the run follow from it."""
import inspect
import sys
from typing import Annotated

import msgspec
import pytest

from batches import batch, machines
from subak.api.keywords import Settings
from subak.cli.options import OPTIONS, Given, scenario_from
from subak.cli.usage.compare import compare
from subak.cli.usage.simulate import simulate as simulate_command
from subak.cli.usage.size import size
from subak.cli.usage.tune import tune
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation, supported_by
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import SCHEDULERS
from subak.policy import find_scheduler
from subak.resources import Resource
from subak.settings import EVERY, NOBODY, Setting, declared, refuse_unused, used_by, usual
from subak.simulator import simulate as module
from subak.simulator.engine.setup import Terms
from subak.simulator.settings import RunSettings

COMMANDS = [simulate_command, compare, size, tune]
OF_COMMANDS = {"schedulers", "seeds"}  # options of their own in each command
NOTED = {"workload_digest", "fleet_digest"}  # by the program
UNUSUAL = {
    "slow_start": 0.5, "locality_wait": 7.0, "search_seconds": 0.01, "search_moves": 3, "reclaims_per_hour": 60.0,
    "hold_back_after": 9.0, "lotes": LotesSettings(classes=2), "request_error": 0.2, "usage_swing": 0.2,
    "interference": 1.5,
}
VARIANTS = [*SCHEDULERS, "first-fit+backfill", "first-fit+easy", "best-fit+mch", "tetris+normalised", "lotes+mch"]
CORES = (Resource("cpu", 1.0, "cores"), Resource("memory", 1.0, "slots"))
JOBS = batch((1, 10, 1, 1), (3, 1, 1, 1), grouped=False, resources=CORES)
FLEET = machines((1, 0), (1, 0), (0, 1), resources=CORES)


class Lab(msgspec.Struct, kw_only=True):
    """Settings that nobody has."""

    asked: Annotated[int, Setting("Who uses it is said.", users=EVERY)] = 0
    forgotten: Annotated[int, Setting("Who uses it is not said.")] = 0


def test_every_field_of_a_scenario_declares_what_it_is():
    for kind in (Scenario, Federation, LotesSettings):
        assert declared(kind).keys() == set(kind.__struct_fields__)
        assert all(setting.help and setting.users is not NOBODY for setting in declared(kind).values())


def test_a_setting_is_an_option_a_keyword_or_of_the_command():
    assert {option.of for option in OPTIONS.values()} == {Scenario, Federation}
    assert set(Scenario.__struct_fields__) - OPTIONS.keys() == OF_COMMANDS | NOTED
    inputs = {"workload", "fleet", "machines", "capacity", "scale", "remove", "add_machines", "only_queues"}
    assert set(Scenario.__struct_fields__) - set(Settings.__annotations__) == OF_COMMANDS | NOTED | inputs


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_every_option(command):
    assert inspect.signature(command).parameters.keys() >= {*OPTIONS, "scenario"}


def test_the_unusual_values_are_of_every_setting_that_not_all_schedulers_use():
    assert UNUSUAL.keys() == {name for name, setting in declared(RunSettings).items() if setting.users is not EVERY}


@pytest.mark.parametrize("scheduler", VARIANTS)
def test_a_scheduler_reads_what_it_is_said_to_use_and_refuses_the_rest(scheduler, monkeypatch):
    """Who is said to use a setting, and never looks at it, would accept it and lie."""
    read = set()

    class Told(Terms, kw_only=True):
        def __getattribute__(self, name):
            read.add(name)
            return super().__getattribute__(name)

    def refused(settings, scheduler):
        refuse_told(settings, scheduler)
        read.clear()

    refuse_told = module.refuse_told
    monkeypatch.setattr(module, "Terms", Told)
    monkeypatch.setattr(module, "refuse_told", refused)
    one = find_scheduler(scheduler)
    for name, value in UNUSUAL.items():
        if declared(RunSettings)[name].users.why_not(one):
            with pytest.raises(InputError, match=f"^{name}: "):
                module.simulate(JOBS, FLEET, one, **{name: value})
        elif scheduler != "recorded":  # which needs a log
            module.simulate(JOBS, FLEET, one, **{name: value})
            assert name in read


CHECKS = {"refuse_values", "__post_init__", "_check_tables"}  # they read what any federation could have


@pytest.mark.parametrize("scheduler", [name for name, each in SCHEDULERS.items() if each.architecture])
def test_a_federation_reads_what_it_is_said_to_use(scheduler, monkeypatch):
    read = set()

    def traced(self, name):
        if sys._getframe(1).f_code.co_name not in CHECKS:
            read.add(name)
        return object.__getattribute__(self, name)

    one = find_scheduler(scheduler)
    monkeypatch.setattr(Federation, "__getattribute__", traced)
    supported = set(supported_by(one))
    module.simulate(JOBS, FLEET, one, federation=Federation(order="priority" if "order" in supported else "fifo"))
    assert supported <= read


def test_who_says_nothing_of_schedulers_is_refused_by_all():
    refuse_unused(Lab(asked=1), map(find_scheduler, SCHEDULERS))
    for name in SCHEDULERS:
        with pytest.raises(InputError, match=f"^forgotten: {name} does not use it"):
            refuse_unused(Lab(forgotten=1), [find_scheduler(name)])


def test_a_setting_of_how_to_decide_is_for_those_who_use_it():
    both = Scenario(schedulers=["first-fit", "best-fit+mch"], hold_back_after=9.0)
    assert used_by(both, find_scheduler("first-fit")) == {"schedulers": both.schedulers}
    assert used_by(both, find_scheduler("mch"))["hold_back_after"] == 9.0
    with pytest.raises(InputError, match=r"^hold_back_after: none of the schedulers first-fit, tetris has"):
        Scenario(schedulers=["first-fit", "tetris"], hold_back_after=9.0)
    with pytest.raises(InputError, match=r"^slow_start: megha is a federation"):
        Scenario(schedulers=["first-fit", "megha"], slow_start=0.5)


def test_an_option_says_its_default_where_that_is_not_in_its_words():
    for name, option in OPTIONS.items():
        if option.default is not None and option.default != usual(option.of)[name]:
            pytest.fail(f"{name}: the option's default is {option.default}")


def test_what_is_given_is_what_the_scenario_holds():
    given = Given(slow_start=0.6, heartbeat=7.0)
    scenario = scenario_from(Given(workload="W", machines=3, capacity=["cpu=2"], interval=4.0, until=5.0,
                                   slow_start=0.6), None, [2], ["best-fit"])
    assert (scenario.workload, scenario.machines, scenario.capacity) == ("W", 3, {"cpu": 2.0})
    assert (scenario.interval, scenario.until, scenario.slow_start) == (4.0, 5.0, 0.6)
    assert (scenario.schedulers, scenario.seeds) == (["best-fit"], [2])
    scenario = scenario_from(Given(heartbeat=7.0, shares=["a=0.8"], preemption="strict"), ["megha"], None, [])
    assert scenario.federation == Federation(heartbeat=7.0, shares={"a": 0.8}, preemption="strict")
    with pytest.raises(InputError, match="slow_start"):
        scenario_from(given, ["megha"], None, [])


def test_a_scenario_file_goes_with_no_other_option(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('schedulers = ["tetris"]\n')
    assert scenario_from(Given(scenario=file), None, None, []).schedulers == ["tetris"]
    for other in (Given(scenario=file, until=1.0), Given(scenario=file, capacity=["cpu=1"]),
                  Given(scenario=file, delay=0.0)):
        with pytest.raises(InputError, match="--scenario: holds everything"):
            scenario_from(other, None, None, [])
