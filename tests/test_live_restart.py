"""A global master that begins anew with what is on disk."""
from subak.live.jobfile.read import read_job
from subak.live.node.global_master.global_node import GlobalNode
from subak.live.node.global_master.queues import QueueSetup, QueuesFact
from subak.live.node.layout import Layout, Rooms, Timing

LAYOUT = Layout(2, 1, ("cpu", "memory"), False, Rooms(tasks=64, machines=64, shapes=8, queues=8))
QUEUES = QueuesFact(1, (QueueSetup("all", 1),))
JOB = read_job("{apiVersion: subak/v1, kind: Job, metadata: {name: x}, queue: all, command: [x], tasks: 2}")
NUMBER = 1


def begun(disk):
    return GlobalNode(NUMBER, LAYOUT, Timing(), QUEUES, disk, "g1")


def test_the_number_of_a_job_that_has_ended_is_not_given_again_after_a_restart():
    first = begun({}).submit(JOB, "first", 1.0)
    node = begun({"ended": {first: b"", first + 4: b""}})
    assert node.submit(JOB, "second", 2.0) == first + 6
    assert node.submit(JOB, "third", 3.0) == first + 8


def test_a_key_is_that_of_a_job_that_has_ended_also_after_a_restart():
    node = begun({"ended": {7: b""}, "client": {"mine": (7).to_bytes(8, "big")}})
    assert node.submit(JOB, "mine", 3.0) == 7
    assert node.submit(JOB, "another", 3.0) != 7
