"""Every interleaving of tiny federations: what is walked, that nothing is left out, and that planted defects are found.

Handlers run as plain Python here, so that a defect can be planted in them.
"""
import pytest

from subak.simulator.exhaustive.actor import Actor
from subak.simulator.exhaustive.canonical import STATES, check_message_named, check_named
from subak.simulator.exhaustive.check import check
from subak.simulator.exhaustive.configurations import Configuration, open_configuration
from subak.simulator.exhaustive.explore import Walk

QUIET = Configuration(name="quiet", beats=False)
LEASE = Configuration(name="lease", leases=1, early=0, numbers=3)


def found(configuration, states_max=2_000_000):
    return check(configuration, states_max, compiled=False)


@pytest.mark.parametrize("role", range(4))
def test_every_field_of_a_role_has_a_name_in_the_canonical_form(role):
    state = Actor(open_configuration(QUIET), role, 0, compiled=False).state
    check_named(state, STATES[type(state)])
    check_message_named()


def test_a_field_without_a_name_is_told():
    state = Actor(open_configuration(QUIET), 1, 0, compiled=False).state
    forgotten = {**STATES[type(state)]}
    forgotten["task"] = {name: what for name, what in forgotten["task"].items() if name != "doubted"}
    with pytest.raises(KeyError, match="doubted"):
        check_named(state, forgotten)


def test_a_state_is_read_and_written_as_it_is():
    walk = Walk(Configuration(name="x", beats=False, tasks=2), 100_000, handlers=False)
    walk.run()
    for slot, key in walk.moves.states:
        walk.moves.actors[slot].load(key)
        assert walk.moves.actors[slot].key() == key


def test_handlers_lead_to_the_same_states_compiled_and_in_plain_python():
    plain, compiled = (check(QUIET, 10_000, compiled=each) for each in (False, True))
    assert (plain.states, plain.moves, plain.complete, plain.wrong) == (compiled.states, compiled.moves, True, "")


def test_dropping_what_does_nothing_leaves_no_state_of_a_role_out():
    walks = [Walk(QUIET, 100_000, handlers=False) for _ in range(2)]
    reports = [walks[0].run(), kept(walks[1])]
    assert [set(ids) for ids in walks[0].moves.state_ids] == [set(ids) for ids in walks[1].moves.state_ids]
    assert 5 * reports[0].states < reports[1].states


def kept(walk):
    walk.tables.drops = False
    return walk.run()
