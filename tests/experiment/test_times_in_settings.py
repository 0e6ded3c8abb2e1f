"""Every setting that is a time takes a duration: in files, studies, lists of options and ranges to tune."""
from typing import get_args, get_origin, get_type_hints

import msgspec
import pytest

from subak.cli.options import OPTIONS, Given
from subak.cli.sweeps import study_from
from subak.errors import InputError
from subak.experiment.scenario import Scenario, read_scenario
from subak.experiment.study.document import study_of
from subak.experiment.study.points import points_of
from subak.experiment.tuning.question import Question, space_of
from subak.federation.settings import Federation
from subak.measures.energy.settings import Energy
from subak.placement.lotes.settings import LotesSettings
from subak.quantities import times_of
from subak.queues.tree import TreeChange
from subak.settings import DURATION, WHEN
from subak.simulator.failures.plan import FailurePlan, Rule
from subak.simulator.federated.fault_plan import Crash, Cut, FaultPlan
from subak.toml_files import convert, read_toml
from subak.workload.google_like.parameters import Diurnal, Makespans, Parameters

READ = {  # what files are read into, and what else must be said there
    Federation: {}, Scenario: {}, LotesSettings: {}, Rule: {}, FaultPlan: {}, Parameters: {}, TreeChange: {},
    Cut: {"between": ["worker 0", "worker 1"]}, Crash: {"role": "worker 0", "at": 1.0}, Diurnal: {"amplitude": 0.5},
    Makespans: {"disparity": 4.0, "mass": 1.0}, Energy: {"kind": [{"name": "a", "watts": [10.0, 20.0]}]},
}
BESIDE = {  # what a time goes with
    (Federation, "timer_slack"): {"lease": "1h"}, (Federation, "delay_spread"): {"delay": "1h"},
    (Rule, "cancel_after"): {"cancel": 0.5}, (Energy, "price_every"): {"price": [[0, 0.2], ["30s", 0.3]]},
    (Energy, "carbon_every"): {"carbon": [["10s", 0.2]]},
    (Scenario, "hold_back_after"): {"schedulers": ["megha"]},
    (Scenario, "answer_timeout"): {"schedulers": ["pipe:python3 s.py"]},
    (Scenario, "search_seconds"): {"schedulers": ["hmhs-search"]},
    (Scenario, "locality_wait"): {"schedulers": ["delay-scheduling"]},
}
# floats that are no times: counts, shares, factors, amounts
OTHERS = {
    Federation: {"service_scale", "probe_ratio", "short_share", "push_ratio", "duration_weight"},
    Scenario: {"scale", "load", "reclaims_per_hour", "request_error", "usage_swing", "interference", "slow_start"},
    Rule: {"fail", "overrun", "cancel", "fail_after"}, LotesSettings: {"usage"}, Diurnal: {"amplitude"},
    FaultPlan: {"loss", "heartbeat_loss", "duplication", "reordering", "spike", "replay"}, Makespans: {"disparity"},
    Parameters: {"gap_shape", "type", "task_priority_rate", "service_priority_rate", "gangs"},
    Energy: {"price", "carbon"},
}
ALL = [(kind, name) for kind in READ for name in sorted(times_of(kind))]


@pytest.mark.parametrize(("kind", "name"), ALL, ids=lambda what: what if isinstance(what, str) else what.__name__)
def test_a_time_in_a_file_is_seconds_or_a_duration(kind, name):
    key = next(each.encode_name for each in msgspec.structs.fields(kind) if each.name == name)
    beside = READ[kind] | BESIDE.get((kind, name), {})
    for text, seconds in (("1m", 60.0), (90, 90.0), ("1h30m", 5400.0)):
        beside |= {"lease": "10h"} if name == "timer_slack" else {"delay": "2h"} if name == "delay_spread" else {}
        assert getattr(convert({**beside, key: text}, kind), name) == seconds
    with pytest.raises(InputError, match=rf"^{key}: a duration must be a number of seconds, or like .*, not '1 hour'"):
        convert({**beside, key: "1 hour"}, kind)


@pytest.mark.parametrize("kind", READ)
def test_each_float_is_a_time_or_known_to_be_none(kind):
    """A setting that is added must say which it is: seconds alone are no type."""
    floats = {name for name, hint in get_type_hints(kind).items()
              if name in kind.__struct_fields__ and float in (hint, *get_args(hint)) and get_origin(hint) is not dict}
    assert floats == times_of(kind) | OTHERS.get(kind, set())


def test_times_within_tables_and_lists_are_read_too(tmp_path):
    (tmp_path / "f.toml").write_text("[service]\nPLACE = '5ms'\n[part]\nUPDATE = '18us'\n")
    with pytest.raises(InputError, match=r"part\.UPDATE: a duration must be .*, not '18us'"):
        read_toml(tmp_path / "f.toml", Federation)
    (tmp_path / "f.toml").write_text("lease = '1m'\n[service]\nPLACE = '5ms'\n")
    assert read_toml(tmp_path / "f.toml", Federation).service == {"PLACE": 0.005}
    (tmp_path / "p.toml").write_text("[[task]]\nrun_max = '2h'\n[[task]]\nretries = 1\nbackoff = '500ms'\n")
    first, second = read_toml(tmp_path / "p.toml", FailurePlan).task
    assert (first.run_max, second.backoff) == (7200.0, 0.5)
    (tmp_path / "s.toml").write_text("workload = 'google2011'\nuntil = '2d'\nschedulers = ['megha']\n"
                                     "[federation]\nheartbeat = '500ms'\n")
    scenario = read_scenario(tmp_path / "s.toml")
    assert (scenario.until, scenario.federation.heartbeat) == (172_800.0, 0.5)


def test_a_name_stays_a_name(tmp_path):
    """1m is a queue's name where a name is wanted."""
    assert convert({"queue": "1m"}, Rule).queue == "1m"


def test_a_study_takes_durations():
    study = study_of({"until": ["1h", "2h"], "federation": {"heartbeat": "1m"}, "schedulers": ["megha"]}, "S")
    assert [(point.scenario.until, point.scenario.federation.heartbeat) for point in points_of(study)] == [
        (3600.0, 60.0), (7200.0, 60.0)]


def test_lists_of_options_take_durations():
    times = {name for name, option in OPTIONS.items() if option.setting.form in (DURATION, WHEN)}
    assert times == OPTIONS.keys() & (times_of(Scenario) | times_of(Federation))
    given = Given(until="1h,90", heartbeat="500ms,1m")
    points = points_of(study_from(given, ["megha"], None, None))
    assert sorted((each.scenario.until, each.scenario.federation.heartbeat) for each in points) == [
        (90.0, 0.5), (90.0, 60.0), (3600.0, 0.5), (3600.0, 60.0)]
    with pytest.raises(InputError, match=r"--until: a time must be .*, not '1 hour'"):
        study_from(Given(until="1h,1 hour"), ["megha"], None, None)


def test_a_range_to_tune_takes_durations():
    question = Question(scenario=Scenario(schedulers=["megha"]), minimise="wait.mean", tune=["heartbeat=500ms:1m"],
                        held_out=[2])
    parameter, = space_of(question).parameters
    assert (parameter.least, parameter.most) == (0.5, 60.0)
