"""Single steps of a local master and of a worker on tables that are written by hand: what they forget, and when."""
import numpy as np
import pytest

from growing import Growing
from subak.federation.megha.attempts import add_attempt
from subak.federation.megha.ledger import build_ledger
from subak.federation.megha.local_master.handlers import (
    adopt_incarnation,
    begin_preemption,
    enough,
    next_victim,
    on_beat,
    on_noted,
)
from subak.federation.megha.local_master.leases import begin_timers, lose_machine, on_change, on_check
from subak.federation.megha.local_master.reports import on_alive, on_holds
from subak.federation.megha.local_master.state import (
    ABSENT,
    ATTEMPT_HELD,
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_PENDING,
    ATTEMPT_RUNNING,
    LISTED,
    LOST_MACHINE,
    SILENT,
    forget_noted,
    is_awaited,
    keep_over,
    write_over_what_was_seen,
)
from subak.federation.megha.local_master.takeover import on_ask, restart_local, step_down, take_over
from subak.federation.megha.topology import OFF, STRICT
from subak.federation.megha.worker import adopt, forget_all, obeys, on_lease
from subak.federation.messages import (
    ALIVE,
    BEAT,
    CHECK,
    FINISHED_WELL,
    KILL,
    MESSAGE,
    NO_VICTIMS,
    NOBODY,
    OLD_EPOCH,
    PULSE,
    REFUSED,
    WATCH,
    build_outbox,
)
from subak.fleet.amounts import shift, take
from subak.workload.tasks import Requests

FAR = 70  # a machine of the second block


class Local:
    """A local master, and all that its handlers are told beside a message."""

    def __init__(self, **rules):
        self.federation = Growing(1, masters=2)
        self.topology = self.federation.topology
        self.rules = self.federation.roles.rules._replace(**rules)
        self.local, self.workers = self.federation.roles.locals[0], self.federation.roles.workers
        self.shapes = Requests(np.array([[1, 2], [1, 2]], np.int32), np.zeros(2, np.int32))
        self.configuration = self.federation.catalog.configuration((4, 4))
        self.out = build_outbox(256)
        for machine in (0, 1, 2, FAR):
            self.local.machine["configuration"][machine] = self.configuration
            self.local.machine["state"][machine] = LISTED
            shift(self.local.fleet, machine, self.topology.capacity, self.configuration)

    def attempt(self, machine, state=ATTEMPT_RUNNING, **fields):
        """Note an attempt; one that is not over holds what it asked for. Return its row."""
        number = add_attempt(self.local.rows, machine, 100 + machine, 1, state)
        row = self.local.rows.row[number]
        row["owner"], row["shape"], row["queue"] = 0, 0, 0
        for name, value in fields.items():
            row[name] = value
        if state not in (ATTEMPT_OVER, ATTEMPT_PENDING):
            take(self.local.fleet, self.shapes, row["shape"], machine)
        return number

    def row(self, number):
        return self.local.rows.row[number]

    def over(self):
        """The rows of attempts that are over, as they are listed for global master 0."""
        rows, number = [], self.local.asker[0]["over_first"]
        while number != NOBODY:
            rows.append(int(number))
            number = self.row(number)["heir"]
        return rows


def with_ledger(version, places, needed_from):
    """A local master with so many entries; eight places are in use."""
    one = Local()
    one.local = one.local._replace(ledger=build_ledger(places, 8))
    one.local.ledger.counts.version, one.local.ledger.counts.needed_from = version, needed_from
    return one


def message(**fields):
    said = np.zeros(1, MESSAGE)[0]
    for name, value in fields.items():
        said[name] = value
    return said


# -- what of the ledger is needed yet ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("known", "whole_at", "needed"), [
    ((9, 7), NOBODY, 7), ((7, 9), NOBODY, 7),  # what nobody is told anew, but from there on
    ((9, NOBODY), NOBODY, 9), ((NOBODY, NOBODY), NOBODY, 12),  # who has seen nothing is told a whole state
    ((9, 7), 6, 6), ((9, 7), 8, 7), ((9, NOBODY), 6, 6),  # such as that of version 6
    ((9, 7), 3, 7),  # which has been written over
    ((9, 2), NOBODY, 4),  # so has what the second should have seen
])
def test_of_a_ledger_is_kept_what_some_master_has_not_seen_or_may_be_told(known, whole_at, needed):
    local = with_ledger(12, 16, needed_from=4).local
    local.asker["known"], local.ledger.counts.whole_at = known, whole_at
    write_over_what_was_seen(local)
    assert local.ledger.counts.needed_from == needed


@pytest.mark.parametrize(("whole_at", "needed"), [(8, 8), (7, 20)])
def test_a_whole_state_that_is_further_back_than_there_are_places_is_not_kept(whole_at, needed):
    local = with_ledger(24, 16, needed_from=4).local
    local.asker["known"], local.ledger.counts.whole_at = 20, whole_at
    write_over_what_was_seen(local)
    assert local.ledger.counts.needed_from == needed


@pytest.mark.parametrize(("version", "places", "needed"), [(6, 16, 2), (7, 16, 4), (7, 8, 2)])
def test_what_all_have_seen_is_found_out_when_over_half_of_the_places_in_use_may_be_needed(version, places, needed):
    """Eight are in use, and entries from 2 on needed, as far as is known; the masters have seen 6, and now 4."""
    one = with_ledger(version, places, needed_from=2)
    one.local.asker["known"] = 6, 3
    on_noted(one.local, 1.0, message(sender=1, incarnation=1, seen=4), one.out)
    assert one.local.ledger.counts.needed_from == needed


# -- ends that are kept until they are noted ---------------------------------------------------------------------------


def test_ends_are_forgotten_in_their_order_but_for_a_machine_whose_report_comes_in():
    one = Local()
    rows = [one.attempt(machine, ATTEMPT_OVER) for machine in (0, 1, 2)]
    for number in rows:
        keep_over(one.local, number, FINISHED_WELL)
    one.local.machine["reborn"][1] = 1
    assert [is_awaited(one.local, machine) for machine in (0, 1)] == [False, True]
    forget_noted(one.local, 0, one.out)
    assert one.over() == [rows[1]]
    later = one.attempt(0, ATTEMPT_OVER)
    keep_over(one.local, later, FINISHED_WELL)
    assert one.over() == [rows[1], later]
    one.local.machine["reborn"][1] = 0
    forget_noted(one.local, 0, one.out)
    assert one.over() == []
    keep_over(one.local, one.attempt(0, ATTEMPT_OVER), FINISHED_WELL)
    assert len(one.over()) == 1


@pytest.mark.parametrize(("active", "incarnation", "known"), [(1, 2, 5), (1, 1, 0), (0, 2, 0)])
def test_what_was_seen_is_noted_by_who_is_active_of_who_lives(active, incarnation, known):
    one = Local()
    one.local.standing.active, one.local.asker["incarnation"][0] = active, 2
    on_noted(one.local, 7.0, message(incarnation=incarnation, seen=5), one.out)
    assert (one.local.asker["known"][0], one.local.asker["heard"][0]) == ((known, 7.0) if known else (0, 0.0))


# -- what is forgotten -------------------------------------------------------------------------------------------------


def test_a_local_master_that_takes_over_knows_nothing_of_workers_and_global_masters():
    one = Local()
    for name in ("heard", "report", "reported", "worker_incarnation", "reborn"):
        one.local.machine[name] = 5
    for name in ("known", "top", "bits", "incarnation", "over_first"):
        one.local.asker[name] = 7
    take_over(one.local, one.topology, one.rules, 3.0, one.out)
    me = one.local.machine[0]
    assert (me["state"], me["heard"], one.local.machine["state"][3]) == (SILENT, 3.0, ABSENT)
    assert [me[name] for name in ("report", "reported", "worker_incarnation", "reborn")] == [0, 0, 0, 0]
    asker = one.local.asker[0]
    assert [asker[name] for name in ("known", "top", "bits", "incarnation", "over_first")] == [-1, -1, 0, 0, NOBODY]


def test_of_a_machine_that_is_lost_or_joins_no_later_incarnation_is_awaited():
    one = Local()
    one.local.machine["reborn"][0] = 3
    lose_machine(one.local, one.topology, one.rules, one.shapes, 0, LOST_MACHINE, 2.0, one.out)
    assert (one.local.machine["state"][0], one.local.machine["reborn"][0]) == (LOST_MACHINE, 0)
    told = {"configuration": NOBODY, "state": ABSENT, "heard": 0.0, "worker_incarnation": 4, "starts": 9, "reborn": 3}
    for name, value in told.items():
        one.local.machine[name][3] = value
    joins = message(machine=3, shape=one.configuration)
    on_change(one.local, one.topology, one.rules, one.shapes, 2.0, joins, one.out)
    names = ("configuration", "state", "heard", "worker_incarnation", "starts", "report", "reported", "reborn")
    assert [one.local.machine[name][3] for name in names] == [one.configuration, LISTED, 2.0, 5, 0, 0, 0, 0]


def test_who_is_not_active_notes_what_a_machine_is_and_does_no_more():
    one = Local()
    one.local.standing.active = 0
    on_change(one.local, one.topology, one.rules, one.shapes, 2.0, message(machine=0, shape=NOBODY), one.out)
    assert (one.local.machine["configuration"][0], one.local.machine["state"][0]) == (NOBODY, LISTED)
    assert one.local.fleet.free[:, 0].tolist() == [4, 4]


@pytest.mark.parametrize(("active", "epoch", "posted"), [(1, 0, 3), (0, 0, 0), (1, 1, 0)])
def test_updates_are_sent_in_its_own_epoch_by_who_is_active(active, epoch, posted):
    one = Local()
    one.local.standing.active = active
    on_beat(one.local, one.topology, one.rules, message(epoch=epoch), one.out)
    assert one.out.counts.posted == posted


def test_who_comes_back_beside_another_is_its_standby():
    one = Local(standby=True)
    one.local.standing.pulse_at = 1.0
    restart_local(one.local, one.topology, one.rules, 7.0, one.out)
    assert (one.local.standing.epoch, one.local.standing.active, one.local.standing.pulse_at) == (0, 0, 7.0)
    assert one.out.row["kind"][: one.out.counts.posted].tolist() == [WATCH]


@pytest.mark.parametrize(("heartbeat", "retry", "armed"), [
    (1.0, np.inf, [BEAT]), (np.inf, 1.0, [CHECK]), (np.inf, np.inf, [])])
def test_nobody_arms_a_timer_that_is_never_due(heartbeat, retry, armed):
    one = Local(heartbeat=heartbeat, retry=retry)
    begin_timers(one.local, one.topology, one.rules, one.out)
    assert one.out.row["kind"][: one.out.counts.posted].tolist() == armed


def test_who_is_not_active_does_not_look_after_workers():
    one = Local()
    one.local.standing.active = 0
    on_check(one.local, one.topology, one.rules, one.shapes, 99.0, message(machine=NOBODY), one.out)
    assert (one.out.counts.posted, one.local.machine["state"][0]) == (0, LISTED)


def test_who_takes_over_says_so_to_the_other_at_once():
    one = Local(standby=True)
    take_over(one.local, one.topology, one.rules, 3.0, one.out)
    pulse, = (row for row in one.out.row[: one.out.counts.posted] if row["kind"] == PULSE)
    assert (pulse["to"], pulse["epoch"], pulse["delay"]) == (one.topology.standbys, one.local.standing.epoch, 3.0)


@pytest.mark.parametrize(("active", "armed"), [(1, [WATCH]), (0, [])])
def test_who_hears_of_a_later_epoch_waits_anew_before_it_takes_over(active, armed):
    one = Local(standby=True)
    one.local.standing.active, one.local.standing.pulse_at = active, 1.0
    step_down(one.local, 5, one.rules, 7.0, one.out)
    assert (one.local.standing.epoch, one.local.standing.active, one.local.standing.pulse_at) == (5, 0, 7.0)
    assert one.out.row["kind"][: one.out.counts.posted].tolist() == armed


def test_what_pends_for_a_former_incarnation_is_given_up_on_every_machine_of_the_cluster():
    one = Local()
    victims, others = [], []
    for machine in (0, FAR):
        pending = one.attempt(machine, ATTEMPT_PENDING, owner=1)
        others.append(one.attempt(machine, ATTEMPT_PENDING))
        victims.append(one.attempt(machine, heir=pending))
    adopt_incarnation(one.local, one.topology, 1, 2)
    assert [int(one.row(number)["heir"]) for number in victims] == [NOBODY, NOBODY]
    assert [int(one.row(number)["next"]) for number in victims] == others
    assert [int(one.row(number)["next"]) for number in others] == [NOBODY, NOBODY]


# -- what is heard of workers ------------------------------------------------------------------------------------------


def test_a_look_at_workers_goes_on_in_the_same_epoch():
    one = Local()
    one.local.standing.epoch = 4
    one.local.machine["state"][[0, 1, 2, FAR]] = SILENT
    out = build_outbox(4, more=1)
    on_check(one.local, one.topology, one.rules, one.shapes, 1.0, message(machine=NOBODY, epoch=4), out)
    later = out.row[out.counts.posted - 1]
    assert [later[name] for name in ("kind", "epoch", "machine", "delay")] == [CHECK, 4, 2, 0.0]


@pytest.mark.parametrize(("state", "reborn", "count", "after"), [
    (LOST_MACHINE, 0, 0, LISTED), (LOST_MACHINE, 3, 1, LOST_MACHINE), (SILENT, 0, 0, LISTED), (SILENT, 0, 1, SILENT)])
def test_a_machine_is_listed_when_it_is_known_what_its_worker_runs(state, reborn, count, after):
    one = Local()
    one.local.machine["state"][0], one.local.machine["reborn"][0] = state, reborn
    alive = message(machine=0, count=count, incarnation=max(reborn, 1))
    on_alive(one.local, one.topology, one.rules, one.shapes, 1.0, alive, one.out)
    assert one.local.machine["state"][0] == after


@pytest.mark.parametrize(("active", "epoch", "state"), [(1, 4, LISTED), (0, 4, SILENT), (1, 2, SILENT)])
def test_a_report_is_heard_by_who_is_active_in_its_epoch(active, epoch, state):
    one = Local()
    one.local.standing.active, one.local.standing.epoch = active, 4
    one.local.machine["state"][0], one.local.machine["heard"][0] = SILENT, 1.0
    holds = message(machine=0, epoch=epoch, count=1, task=7, attempt=1, incarnation=1, report=1)
    on_holds(one.local, one.topology, one.rules, one.shapes, 6.0, holds, one.out)
    assert (one.local.machine["state"][0], one.local.machine["heard"][0]) == (state, 6.0 if state == LISTED else 1.0)


def test_who_asks_twice_is_told_twice_and_nothing_else_begins_anew():
    one = Local()
    one.local.asker[0] = (5, 9, 3, 1, 4.0, NOBODY, NOBODY)
    on_ask(one.local, one.topology, one.rules, message(incarnation=1), one.out)
    assert one.local.asker[0].item() == (-1, 9, 3, 1, 4.0, NOBODY, NOBODY)
    on_ask(one.local, one.topology, one.rules, message(incarnation=2), one.out)
    assert one.local.asker[0].item() == (-1, -1, 0, 2, 4.0, NOBODY, NOBODY)
    assert one.out.counts.posted == 2


# -- preemption --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("running", "fits"), [
    ({}, False),  # three are free, and somebody waits for two; two are asked for
    ({"heir": "other"}, True),  # what goes for who waits is not spoken for twice
    ({"heir": "other", "state": ATTEMPT_KILLING}, True),
    ({"heir": "own"}, True),
    ({"heir": "own", "state": ATTEMPT_HELD}, False),
    ({"heir": "other", "state": ATTEMPT_HELD}, False),
])
def test_what_others_wait_for_is_spoken_for_but_for_what_goes_for_them(running, fits):
    one = Local(preemption=STRICT)
    other, own = (one.attempt(0, ATTEMPT_PENDING, shape=1) for _ in range(2))
    fields = {**running, "heir": {"other": other, "own": own}.get(running.get("heir"), NOBODY)}
    number = one.attempt(0)
    for name, value in fields.items():
        one.row(number)[name] = value
    assert enough(one.local, one.shapes, 1, 0, own) == fits


def test_who_waits_for_more_victims_than_it_needs_leaves_others_what_is_free_and_no_more():
    one = Local(preemption=STRICT)
    other, own = one.attempt(0, ATTEMPT_PENDING), one.attempt(0, ATTEMPT_PENDING, shape=1)
    for _ in range(3):
        one.attempt(0, heir=other)
    assert not enough(one.local, one.shapes, 1, 0, own), "one is free, however much more goes for the other"


def test_an_attempt_that_was_preempted_as_often_as_it_may_be_is_no_victim():
    one = Local(preemption=STRICT, preemptions_max=2)
    one.attempt(0, preempted=2, start=9)
    assert next_victim(one.local, one.rules, 0, 0) == NOBODY
    may = one.attempt(0, preempted=1, start=1)
    assert next_victim(one.local, one.rules, 0, 0) == may


def test_a_preemption_in_vain_spares_its_own_victims_and_leaves_those_of_others():
    one = Local(preemption=STRICT, preemptions_max=2)
    other = one.attempt(0, ATTEMPT_PENDING)
    for_other, free = one.attempt(0, heir=other), one.attempt(0)
    for queue in (1, 1):
        one.attempt(0, queue=queue)
    asked = message(machine=0, sender=1, owner=1, shape=1, victims=0, task=7, attempt=2)
    begin_preemption(one.local, one.topology, one.rules, one.shapes, 2.0, asked, one.out)
    kinds = one.out.row["kind"][: one.out.counts.posted].tolist()
    assert (kinds, one.out.row["reason"][0]) == ([REFUSED], NO_VICTIMS)
    assert KILL not in kinds
    assert (int(one.row(for_other)["heir"]), int(one.row(free)["heir"])) == (other, NOBODY)


# -- a worker ----------------------------------------------------------------------------------------------------------


def test_a_deposed_local_master_is_told_of_the_later_epoch_by_who_may_have_attempts():
    one = Local(preemption=OFF)
    one.workers.machine["epoch"][0], one.workers.machine["incarnation"][0] = 2, 3
    assert not obeys(one.workers, one.topology, one.rules, message(machine=0, epoch=1, sender=5), one.out)
    row = one.out.row[0]
    assert [row[name] for name in ("kind", "to", "epoch", "reason", "incarnation", "count")] == [
        ALIVE, 5, 2, OLD_EPOCH, 3, 1]
    assert obeys(one.workers, one.topology, one.rules, message(machine=0, epoch=2), one.out)
    assert one.out.counts.posted == 1


def test_in_a_later_epoch_starts_are_numbered_anew():
    one = Local()
    me = one.workers.machine[0]
    me["top"], me["bits"] = 9, 3
    adopt(one.workers, 0, 4)
    assert (me["epoch"], me["top"], me["bits"]) == (4, -1, 0)


@pytest.mark.parametrize(("epoch", "incarnation", "heard"), [(2, 3, 6.0), (1, 3, 1.0), (2, 2, 1.0)])
def test_a_lease_is_that_of_the_epoch_and_incarnation_that_asked_for_it(epoch, incarnation, heard):
    one = Local()
    me = one.workers.machine[0]
    me["epoch"], me["incarnation"], me["heard"] = 2, 3, 1.0
    on_lease(one.workers, message(machine=0, epoch=epoch, incarnation=incarnation, delay=6.0))
    assert me["heard"] == heard


def test_a_worker_that_forgets_everything_has_the_capacity_of_its_configuration():
    one = Local()
    one.workers.machine["configuration"][:2] = one.configuration, NOBODY
    one.workers.free[:, :2] = 1
    for machine in (0, 1):
        forget_all(one.workers, one.topology, machine)
    assert one.workers.free[:, :2].T.tolist() == [[4, 4], [0, 0]]
