"""Rows in plain Python: as bytes they are those of NumPy, and a worker's handlers do with both the same."""
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from subak.federation.megha.attempts import ROW, Attempts, RowCounts
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.megha.worker import WORKER_ROW, Workers, build_workers
from subak.federation.megha.worker_role import WorkerTables, serve_worker
from subak.federation.messages import (
    EXITED,
    FORGET,
    KILL,
    LEASE,
    MESSAGE,
    NOBODY,
    RECONFIGURE,
    REPORT,
    START,
    TICK,
    Outbox,
    OutboxCounts,
    build_outbox,
)
from subak.live.role.layout import Layout, Rooms, Timing
from subak.live.role.worker.plain import BLANK, MESSAGES, Grid, Kind, Rows
from subak.workload.tasks import Requests

LAYOUT = Layout(1, 1, ("cpu", "memory"), True, Rooms(tasks=64, machines=64, shapes=4, queues=4))
MACHINE, ATTEMPTS, ROOM = 3, 4, 200
CAPACITY, REQUESTS = [(2, 9), (1, 4)], [(1, 1), (2, 3), (1, 9)]  # by configuration, by shape


@settings(deadline=None)
@given(st.binary(min_size=2 * MESSAGE.itemsize, max_size=2 * MESSAGE.itemsize))
def test_rows_are_those_of_numpy(data):
    rows = np.frombuffer(data, MESSAGE)
    assert b"".join(map(MESSAGES.written, MESSAGES.read(data))) == data
    assert repr([tuple(row.values()) for row in MESSAGES.read(data)]) == repr(rows.tolist())  # NaN is not itself


def arrays():
    """A worker's tables in arrays."""
    topology = LAYOUT.topology()
    for number, amounts in enumerate(CAPACITY):
        topology.capacity[:, number] = amounts
    shapes = Requests(np.array(REQUESTS, np.int32).T, np.zeros(len(REQUESTS), np.int32))
    workers = build_workers(topology, np.zeros((2, LAYOUT.machines), np.int32), ATTEMPTS)
    return WorkerTables(workers, topology, Timing().rules(True), shapes, np.zeros(0, np.int32), np.zeros(0, np.int64),
                        np.zeros(1, MESSAGE), build_outbox(ROOM, 0))


def plain():
    """The same in plain Python."""
    capacity, requests = Grid(2), Grid(2)
    for table, columns in ((capacity, CAPACITY), (requests, REQUESTS)):
        for number, amounts in enumerate(columns):
            table.write(number, amounts)
    topology = LAYOUT.topology()._replace(machine={MACHINE: {"cluster": 0}}, capacity=capacity)
    rows = Attempts(Rows(ATTEMPTS, Kind(ROW).blank()), {MACHINE: NOBODY}, RowCounts(free_row=NOBODY))
    workers = Workers(rows, Grid(2),
                      {MACHINE: Kind(WORKER_ROW).blank(incarnation=1, top=NOBODY, configuration=NOBODY)})
    return WorkerTables(workers, topology, Timing().rules(True), Requests(requests, None), (), (), [{}],
                        Outbox(Rows(ROOM, BLANK), OutboxCounts(), ROOM, [BLANK]))


def answered(tables, message, now):
    """Hand a worker a message, and return what it says."""
    row = np.frombuffer(MESSAGES.written(message), MESSAGE)
    tables.inbox[0] = row[0] if isinstance(tables.inbox, np.ndarray) else dict(message)
    tables.out.counts.posted = 0
    serve_worker(tables, now, 1)
    posted = [tables.out.row[place] for place in range(tables.out.counts.posted)]
    return [MESSAGES.written(row) if isinstance(row, dict) else row.tobytes() for row in posted]


small = st.integers(0, 3)
messages = st.builds(
    lambda kind, task, attempt, start, incarnation, epoch, shape, delay, reason: BLANK | {
        "kind": kind, "to": MACHINE, "machine": MACHINE, "task": task, "attempt": attempt, "epoch": epoch,
        "shape": shape - 1 if kind == RECONFIGURE else min(shape, 2), "delay": delay, "reason": reason,
        "start": incarnation << INCARNATION_BITS | start, "incarnation": incarnation},
    st.sampled_from([START, START, START, EXITED, EXITED, FORGET, KILL, LEASE, TICK, REPORT]), small, small,
    st.integers(0, 130), st.integers(1, 2), st.integers(0, 1), small, st.floats(0, 20), st.integers(0, 8))
joins = BLANK | {"kind": RECONFIGURE, "to": MACHINE, "machine": MACHINE, "shape": 0}


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(messages, st.floats(0, 1)), max_size=25))
def test_a_worker_does_the_same_in_both(told):
    one, other, now = arrays(), plain(), 0.0
    for message, later in [(joins, 0.0), *told]:
        now += later
        assert answered(other, message, now) == answered(one, message, now)
    assert Kind(WORKER_ROW).written(other.workers.machine[MACHINE]) == b"".join(
        one.workers.machine[MACHINE][name].tobytes() for name in WORKER_ROW.names)
    assert other.workers.rows.counts.values() == one.workers.rows.counts.values()
    for place, row in other.workers.rows.row.items():
        assert tuple(row.values()) == one.workers.rows.row[place].item()
    assert [other.workers.free[resource, MACHINE] for resource in range(2)] == one.workers.free[:, MACHINE].tolist()
