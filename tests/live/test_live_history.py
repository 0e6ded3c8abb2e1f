"""Jobs that have ended: how long they are kept, and that keys of submissions last as long."""
import asyncio
from types import SimpleNamespace

import pytest
from msgspec import json, structs

from subak.errors import InputError, StoreUnfitError
from subak.live.api.errors import NotOwnerError, RefusedError
from subak.live.config import (
    HISTORY_BYTES_MIN,
    ClusterEntry,
    FederationFile,
    GlobalMasterEntry,
    HistoryEntry,
    QueueEntry,
    check,
)
from subak.live.role.base import Drop
from subak.live.role.global_master.queues import QueueSetup, QueuesFact
from subak.live.service import keeping
from subak.live.service.keeping import SLICE, Keeper
from subak.live.service.service import GlobalMasterService
from subak.live.torture.case import JobCase
from test_live_roles import JOB, world_of

DAY = 86_400.0


class Jobs:
    """Jobs that have ended, by number: when, and how many bytes they take; those in *late* are not on disk yet."""

    def __init__(self, monkeypatch, **jobs):
        self.jobs, self.late, self.forgotten, self.read, self.said = dict(jobs), set(), [], [], []
        monkeypatch.setattr(keeping, "read_ended", lambda body: (
            None, None, {"ended": SimpleNamespace(max=lambda: body.ended)}, []))

    def bodies(self, table, numbers):
        assert table == "ended"
        self.read += numbers
        return {number: self._body(*self.jobs[number]) for number in numbers if number not in self.late}

    @staticmethod
    def _body(ended, size):
        body = type("Body", (), {"__len__": lambda self: size})()
        body.ended = ended
        return body

    def forget(self, numbers):
        self.forgotten.append(list(numbers))
        for number in numbers:
            del self.jobs[number]

    def keeper(self, keep="30d", size=1 << 30):
        return Keeper(HistoryEntry(keep, size), self, lambda: self.jobs, self.forget, self.said.append)


def kept(jobs, keeper, now=100 * DAY):
    asyncio.run(keeper.sweep(now))
    return sorted(jobs.jobs)


def test_jobs_go_when_they_ended_too_long_ago(monkeypatch):
    jobs = Jobs(monkeypatch)
    jobs.jobs = {number: (70 * DAY + number, 10) for number in (-2, -1, 0, 1)}
    keeper = jobs.keeper()
    known = keeper.known  # the service reads it, too
    assert kept(jobs, keeper) == [0, 1] == sorted(known)
    assert kept(jobs, keeper, 101 * DAY) == []
    assert keeper.known is known
    assert sorted(jobs.read) == [-2, -1, 0, 1]  # each once


def test_the_earliest_go_when_all_take_too_much(monkeypatch):
    jobs = Jobs(monkeypatch)
    jobs.jobs = {1: (99 * DAY, 40), 2: (98 * DAY, 30), 3: (97 * DAY, 20), 4: (97 * DAY, 10)}
    assert kept(jobs, jobs.keeper(size=100)) == [1, 2, 3, 4]
    assert kept(jobs, jobs.keeper(size=99)) == [1, 2, 4]
    assert kept(jobs, jobs.keeper(size=69)) == [1]


def test_deleting_is_done_in_slices(monkeypatch):
    jobs = Jobs(monkeypatch)
    jobs.jobs = dict.fromkeys(range(3 * SLICE + 1), (1.0, 1))
    assert kept(jobs, jobs.keeper()) == []
    assert [len(part) for part in jobs.forgotten] == [SLICE, SLICE, SLICE, 1]


def test_a_job_on_its_way_to_the_disk_is_looked_at_next_time(monkeypatch):
    jobs = Jobs(monkeypatch)
    jobs.jobs, jobs.late = {1: (1.0, 1)}, {1}
    keeper = jobs.keeper()
    assert kept(jobs, keeper) == [1]
    jobs.late.clear()
    assert kept(jobs, keeper) == []


def test_a_job_that_is_damaged_on_disk_holds_up_no_other_and_is_left_there(monkeypatch):
    jobs = Jobs(monkeypatch)
    jobs.jobs = {number: (1.0, 10) for number in range(5)}

    def bodies(table, keys):
        if 3 in keys:
            raise StoreUnfitError("row 3 of table ended is not as it was written")
        return jobs.bodies(table, keys)

    keeper = jobs.keeper()
    keeper.store = SimpleNamespace(bodies=bodies)
    assert kept(jobs, keeper) == kept(jobs, keeper) == [3]
    assert jobs.said == ["an old job is never deleted: row 3 of table ended is not as it was written"]


def test_a_disk_that_fails_is_said_and_tried_again(monkeypatch):
    jobs = Jobs(monkeypatch)
    jobs.jobs = {1: (1.0, 1)}
    keeper = jobs.keeper()
    plain, keeper.store = keeper.store, SimpleNamespace(bodies=lambda *_: (_ for _ in ()).throw(ValueError("damaged")))
    monkeypatch.setattr(keeping, "SWEEP_S", 0.001)

    async def run():
        task = asyncio.create_task(keeper.run())
        while not jobs.said:
            await asyncio.sleep(0.001)
        keeper.store = plain
        while jobs.jobs:
            await asyncio.sleep(0.001)
        task.cancel()
    asyncio.run(run())
    assert jobs.said[0] == "old jobs are not deleted now: damaged"


def test_with_a_job_its_key_is_forgotten_and_both_leave_the_disk():
    other = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], command=("job", "1", "0")),))
    world = world_of(jobs=[JobCase(2.5, "client", JOB, (((1.0, 0),),)), JobCase(2.6, "other", other, (((1.0, 0),),))])
    world.until(12.0)
    role = world.masters[0].role
    first, second = role.ended
    role.writes.clear()
    role.forget_ended([first])
    assert (list(role.ended), sorted(role.kept.values())) == ([second], [second])
    dropped = {(write.table, key) for write in role.writes if isinstance(write, Drop) for key in write.keys}
    assert {("ended", first), ("client", "client")} <= dropped


@pytest.mark.parametrize(("history", "words"), [
    (HistoryEntry(keep="soon"), "history.keep: must be a duration such as 30d or 12h, not 'soon'"),
    (HistoryEntry(bytes=HISTORY_BYTES_MIN - 1), "history.bytes: must be 1,048,576 at least, not 1,048,575")])
def test_what_the_file_says_is_checked(history, words):
    file = FederationFile("home", (GlobalMasterEntry("g0", "127.0.0.1:7433"),), (ClusterEntry("a", "127.0.0.1:7441"),),
                          (QueueEntry("web"),))
    check(file)
    with pytest.raises(InputError) as caught:
        check(structs.replace(file, history=history))
    assert str(caught.value) == words


# -- keys --------------------------------------------------------------------------------------------------------------


def service_of(kept):
    """Return the service of g0, whose queue is a; queue b is g1's."""
    service = GlobalMasterService.__new__(GlobalMasterService)
    queues = QueuesFact(1, (QueueSetup("a", 0), QueueSetup("b", 1)))
    service.role = SimpleNamespace(
        name="g0", number=0, queues=queues, kept=kept, job_name=lambda number: f"g0-{number}",
        submit=lambda spec, client, clock, user: kept[client])
    service.driver, service.scheme = SimpleNamespace(problem=""), "http"
    service.file = SimpleNamespace(masters=lambda: dict(enumerate([GlobalMasterEntry("g0", "h:1"),
                                                                    GlobalMasterEntry("g1", "h:2")])))
    stored = SimpleNamespace(spec=json.encode(structs.replace(JOB, queue="b")), submitter="")

    async def known(name):
        return SimpleNamespace(stored=stored), 0

    async def durable():
        pass

    async def job(name):
        return name
    service._known, service._durable, service.job = known, durable, job
    return service


def test_a_key_of_anothers_queue_is_asked_there():
    with pytest.raises(NotOwnerError) as caught:
        asyncio.run(service_of({}).submit(structs.replace(JOB, queue="b"), "key", False))
    assert caught.value.owner == "http://h:2"


def test_a_key_finds_its_job_also_when_the_queue_is_anothers_by_now():
    service = service_of({"key": 7})
    assert asyncio.run(service.submit(structs.replace(JOB, queue="b"), "key", False)) == "g0-7"
    with pytest.raises(RefusedError, match="the key key was used for job g0-7, which is another one"):
        asyncio.run(service.submit(JOB, "key", False))
