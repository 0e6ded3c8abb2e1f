"""What drives a role, and what asks it, when the disk is full or just being written."""
import asyncio
from types import SimpleNamespace

import pytest

from subak.live.api.errors import NotFoundError, UnavailableError
from subak.live.process import driver as driving
from subak.live.process.driver import Driver
from subak.live.role.base import Ready
from subak.live.role.layout import number_of_job
from subak.live.service import service as asking
from subak.live.service.service import GlobalMasterService
from subak.live.store.checking import StoreError


class FakeNode:
    """A role that wants one thing written at each call."""

    def __init__(self):
        self.calls = 0

    def receive(self, now, arrivals):
        self.calls += 1
        return Ready([f"write {self.calls}"], [], [])


class FakeStore:
    """A store whose disk is full for a while."""

    waits = False

    def __init__(self, refusals):
        self.refusals, self.written = refusals, []

    def commit(self, writes):
        if self.refusals:
            self.refusals -= 1
            raise StoreError("the disk is full")
        self.written += writes


def waiting(driver):
    future = asyncio.get_running_loop().create_future()
    driver.when_written.append(future)
    return future


def test_who_waits_is_told_that_the_disk_is_full_and_everything_is_written_once_when_there_is_room(monkeypatch):
    monkeypatch.setattr(driving, "RETRY_S", 0.001)

    async def run():
        said = []
        driver = Driver(FakeNode(), FakeStore(3), said.append)
        first = waiting(driver)
        await driver._turn()
        assert isinstance(first.exception(), StoreError)
        assert driver.problem == ""
        second = waiting(driver)
        await driver._turn()
        assert second.result() is None
        assert driver.store.written == ["write 1", "write 2"]
        assert len(said) == 2
        driver.thread.shutdown()
    asyncio.run(run())


def service_of(bodies, write):
    """Return a service whose store holds *bodies*, and does *write* when all that was decided is on disk."""
    role = SimpleNamespace(name="g0", job_name=lambda number: f"g0-{number}", number=0,
                           book=SimpleNamespace(of_number={}),
                           ended=[number_of_job(0, 3), number_of_job(0, 4)])
    service = GlobalMasterService.__new__(GlobalMasterService)
    service.role, service.ended = role, {}
    service.file = SimpleNamespace(masters=lambda: {0: SimpleNamespace(name="g0")})
    service.tasks_kept = 0
    service.store = SimpleNamespace(bodies=lambda table, numbers: {
        number: bodies[table, number] for number in numbers if (table, number) in bodies})

    async def durable():
        write()
    service._durable = durable
    return service


def test_a_job_whose_end_is_just_being_written_is_there(monkeypatch):
    monkeypatch.setattr(asking, "read_ended", lambda body: (body,))
    monkeypatch.setattr(asking, "ended_job", lambda name, body: SimpleNamespace(tasks=1, body=body))
    bodies = {}
    service = service_of(bodies, lambda: bodies.update({("ended", number_of_job(0, 3)): b"whole"}))
    known, _ = asyncio.run(service._known("g0-3"))
    assert known.body == b"whole"
    with pytest.raises(NotFoundError):
        asyncio.run(service_of({}, lambda: None)._known("g0-4"))


def test_a_disk_that_takes_nothing_is_said_to_whoever_asked():
    async def run():
        service = GlobalMasterService.__new__(GlobalMasterService)
        service.driver = SimpleNamespace(when_written=[], wake=asyncio.Event(), problem="the disk is full")
        asked = asyncio.create_task(service._durable())
        await asyncio.sleep(0)
        service.driver.when_written[0].set_exception(StoreError("the disk is full"))
        with pytest.raises(UnavailableError, match="the disk is full"):
            await asked
    asyncio.run(run())
