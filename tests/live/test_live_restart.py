"""A global master that begins anew with what is on disk."""
import pytest
from msgspec import msgpack, structs

from subak.errors import InputError
from subak.federation.messages import GLOBAL_MASTER
from subak.live.jobfile.read import read_job
from subak.live.role.global_master.global_role import WRITTEN_FOR_KEY, GlobalRole
from subak.live.role.global_master.queues import QueueSetup, QueuesFact
from subak.live.role.layout import OF_A_KIND_MAX, Layout, Rooms, Timing, number_of_job
from subak.live.role.written_for import written_for

LAYOUT = Layout(2, 1, ("cpu", "memory"), False, Rooms(tasks=64, machines=64, shapes=8, queues=8))
QUEUES = QueuesFact(1, (QueueSetup("all", 1),))
JOB = read_job("{apiVersion: subak/v1, kind: Job, metadata: {name: x}, queue: all, command: [x], tasks: 2}")
NUMBER = 1
JOB_7 = number_of_job(NUMBER, 7)


WRITTEN_FOR = msgpack.encode(written_for(GLOBAL_MASTER, NUMBER, LAYOUT))


def begun(disk, layout=LAYOUT):
    """A global master with what is on a disk that was written for LAYOUT, where it does not say another."""
    role = GlobalRole(NUMBER, layout, Timing(), QUEUES,
                      {"incarnation": {WRITTEN_FOR_KEY: WRITTEN_FOR}, **disk}, "g1", "a life")
    role.claims.granted += 10  # a local master has confirmed the store
    return role


def test_the_number_of_a_job_that_has_ended_is_not_given_again_after_a_restart():
    first = begun({}).submit(JOB, "first", 1.0)
    role = begun({"ended": {first: b"", first + 2 * OF_A_KIND_MAX: b""}})
    assert role.submit(JOB, "second", 2.0) == first + 3 * OF_A_KIND_MAX
    assert role.submit(JOB, "third", 3.0) == first + 4 * OF_A_KIND_MAX


def test_a_key_is_that_of_a_job_that_has_ended_also_after_a_restart():
    role = begun({"ended": {JOB_7: b""}, "client": {"mine": JOB_7.to_bytes(8, "big")}})
    assert role.submit(JOB, "mine", 3.0) == JOB_7
    assert role.submit(JOB, "another", 3.0) != JOB_7


@pytest.mark.parametrize("table", ["job", "ended", "client"])
@pytest.mark.parametrize(("changes", "words"), [
    ({"rooms": structs.replace(LAYOUT.rooms, tasks=128)}, r"\[rooms\] tasks was 64, and is 128 in the file now"),
    ({"rooms": structs.replace(LAYOUT.rooms, machines=65)}, r"\[rooms\] machines was 64, and is 128"),
    ({"rooms": structs.replace(LAYOUT.rooms, shapes=9)}, r"\[rooms\] shapes was 8, and is 9"),
    ({"rooms": structs.replace(LAYOUT.rooms, configurations=9)}, r"\[rooms\] configurations was 4,096, and is 9"),
    ({"resources": ("cpu", "memory", "gpu")}, "resources was cpu, memory, and is cpu, memory, gpu"),
])
def test_a_store_that_was_written_for_another_federation_is_refused(table, changes, words):
    """Its jobs would vanish, or appear under other queues."""
    with pytest.raises(InputError, match=words):
        begun({table: {7: b""}}, structs.replace(LAYOUT, **changes))
    begun({}, structs.replace(LAYOUT, **changes))  # nothing is in it yet


def test_a_store_with_jobs_of_a_version_that_did_not_say_for_whom_is_refused():
    with pytest.raises(InputError, match=r"another version of subak, which numbered .*none there, 3 here"):
        begun({"incarnation": {}, "ended": {7: b""}})
    role = begun({"incarnation": {}})
    (put,) = (each for each in role.writes if each.table == "incarnation" and WRITTEN_FOR_KEY in each.keys)
    assert put.bodies == [WRITTEN_FOR]
