"""What a federation may be set to: every bound at its edge and beyond, and what does not go together."""
import math

import pytest

from subak.errors import InputError
from subak.federation.messages import KINDS, PROFILES
from subak.federation.settings import Federation
from subak.settings import Between, declared

RULES = {name: setting.rule for name, setting in declared(Federation).items() if isinstance(setting.rule, Between)}
WORDS = {False: "{:g} or more", True: "more than {:g}"}
FITTING = {"delay": {"delay_spread": 0.0}, "delay_spread": {"delay": 1e6}, "timer_slack": {"lease": math.inf},
           "lease": {"timer_slack": 0.0}}  # what another setting must be for one to be at its bounds


def beyond(value, way):
    return value + way if isinstance(value, int) else value * (1 + way * 1e-9) + way * 1e-9


@pytest.mark.parametrize("name", RULES)
def test_a_setting_may_be_at_its_bounds_and_not_beyond(name):
    least, most = RULES[name].least, RULES[name].most
    others = FITTING.get(name, {})
    for value in {least, most} - ({least} if RULES[name].above else set()):
        assert getattr(Federation(**{**others, name: value}), name) == value
    with pytest.raises(InputError, match=f"{name}: must be {WORDS[RULES[name].above].format(least)}, not"):
        Federation(**{**others, name: beyond(least, -1)})
    with pytest.raises(InputError, match=f"{name}: must be {WORDS[RULES[name].above].format(least)}, not nan"):
        Federation(**{**others, name: math.nan})
    if most < math.inf:
        with pytest.raises(InputError, match=f"{name}: must be at most {most:,}, not"):
            Federation(**{**others, name: beyond(most, 1)})


@pytest.mark.parametrize(("settings", "said"), [
    ({"probe_ratio": 0}, "probe_ratio: must be more than 0, not 0"),
    ({"delay_law": "none"}, "delay_law: must be one of constant, uniform, exponential, not 'none'"),
    ({"order": "lifo"}, "order: must be one of fifo, priority, fewest-tasks, not 'lifo'"),
    ({"queue_order": "fifo"}, "queue_order: must be one of round-robin, "),
    ({"sampling": "all"}, "sampling: must be one of batch, task, not 'all'"),
    ({"lease": 6.0, "timer_slack": 1.01}, "timer_slack: must be at most a sixth of the lease of 6 s, not 1.01"),
    ({"delay": 1.0, "delay_spread": 1.01}, "delay_spread: must be at most the delay of 1 s, not 1.01"),
    ({"service": {"HELLO": 1.0}}, "service: must be of kinds of messages such as LAUNCHED, REFUSED, ENDED, UPDATE; "
                                  "there is no kind 'HELLO'"),
    ({"part": {"HELLO": 1.0}}, "part: must be of kinds of messages"),
    ({"service": {"LAUNCH": -1e-9}}, "service.LAUNCH: must be 0 or more, not -1e-09"),
    ({"part": {"LAUNCH": 1_000_001}}, "part.LAUNCH: must be at most 1,000,000, not"),
    ({"shares": {"a": -0.01}}, "shares.a: must be 0 or more, not -0.01"),
    ({"shares": {"a": 1.01}}, "shares.a: must be at most 1, not 1.01"),
    ({"shares": {"a": 0.5, "b": 0.51}}, "shares: must add up to at most 1, not 1.01"),
    ({"global_masters": 2, "masters_of": {"a": 2}}, "masters_of.a: must be from 0 to 1, not 2"),
    ({"global_masters": 2, "masters_of": {"a": -1}}, "masters_of.a: must be from 0 to 1, not -1"),
])
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(InputError) as caught:
        Federation(**settings)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("settings", [
    {"probe_ratio": 1e-6}, {"lease": 6.0, "timer_slack": 1.0}, {"delay": 1.0, "delay_spread": 1.0},
    {"service": {"LAUNCH": 0.0}}, {"part": {"LAUNCH": 1_000_000}}, {"shares": {"a": 0.0, "b": 1.0}},
    {"shares": {"a": 1 / 3, "b": 1 / 3, "c": 1 - 2 / 3 + 1e-10}},
    {"global_masters": 2, "masters_of": {"a": 0, "b": 1}},
])
def test_what_is_at_the_edge_can_be(settings):
    assert Federation(**settings)


def test_service_is_that_of_the_table_or_of_the_settings_times_the_scale():
    federation = Federation(service={"LAUNCH": 2.0}, part={"UPDATE": 0.5}, service_scale=3.0)
    service, part = federation.service_seconds(), federation.part_seconds()
    usual = PROFILES[federation.service_profile]
    assert len(service) == len(part) == len(KINDS)
    for place, kind in enumerate(KINDS):
        assert service[place] == pytest.approx(3.0 * {**usual.service, "LAUNCH": 2.0}.get(kind, 0.0))
        assert part[place] == pytest.approx(3.0 * {**usual.part, "UPDATE": 0.5}.get(kind, 0.0))
