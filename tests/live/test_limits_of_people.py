"""Limits of persons and queues: refused with what is used and what is allowed; a flood holds nobody else up."""
import asyncio
import http.client
import threading
import time
from urllib.parse import urlsplit

import pytest

from federations import until
from real_service import RealService
from serving import Serving
from subak.errors import InputError
from subak.live.api.errors import LimitedError, RefusedError, TooLargeError
from subak.live.api.gate import BUCKETS_MAX, Gate
from subak.live.client.client import Client
from subak.live.client.settings import ClientSettings
from subak.live.config import FederationFile, check, decoded
from subak.live.people.limits import InUse, Limits, PeopleLimits, upwards

FILE = """
name = "f"
[[global_master]]
name = "g0"
http = "127.0.0.1:1"
[[cluster]]
name = "a"
local_master = "127.0.0.1:2"
[[queue]]
name = "research"
limits = { jobs = 3 }
[[queue]]
name = "web"
"""


def job(queue="research/ada", tasks=1, command="sleep"):
    return (f"{{apiVersion: subak/v1, kind: Job, metadata: {{name: j}}, queue: {queue}, tasks: {tasks}, "
            f"resources: {{cpu: 100m, memory: 64Mi}}, command: [{command}]}}")


@pytest.fixture(scope="module")
def one():
    """A real role behind a server; `one.person(name)` is a client of that person."""
    served = Serving(make=lambda name, addresses, queues: RealService())
    served.service = served.services["g0"]
    served.service.found_at(served.addresses["g0"])
    task = asyncio.run_coroutine_threadsafe(served.service.run(), served.loop)
    served.admin = Client(ClientSettings((served.addresses["g0"],), served.token), patience_s=5.0)

    def person(name):
        token = served.admin.add_person(name, "submitter", queues=("/",)).token
        return Client(ClientSettings((served.addresses["g0"],), token), patience_s=0.0)

    served.person = person
    until(lambda: all(each.state == "ready" for each in served.admin.machines()))
    yield served
    task.cancel()
    served.stop()


@pytest.fixture
def limited(one):
    """Set limits, for one test."""
    def to(people=None, queues=None):
        one.service.gate = Gate(people, queues)
        return one
    yield to
    one.service.gate = Gate()


def test_open_jobs_and_tasks_of_a_person_are_counted_until_they_have_ended(limited):
    one = limited(PeopleLimits(jobs=2, tasks=5, people={"bo": Limits(jobs=1)}))
    ada, bo = one.person("ada"), one.person("bo")
    first = ada.submit(job(tasks=3), key="first")
    assert ada.submit(job(tasks=3), key="first").id == first.id  # the same one is no second one
    with pytest.raises(RefusedError, match=r"^person ada: 3 of 5 tasks of open jobs are used here, and this .* 3$"):
        ada.submit(job(tasks=3))
    second = ada.submit(job(tasks=2))
    with pytest.raises(RefusedError, match=r"^person ada: 2 of 2 open jobs are used here: wait"):
        ada.submit(job())
    theirs = bo.submit(job(tasks=9))
    with pytest.raises(RefusedError, match=r"^person bo: 1 of 1 open jobs are used here"):
        bo.submit(job())
    ada.cancel(first.id)
    until(lambda: one.service.role.book.use.of_person["ada"] == (1, 2))
    third = ada.submit(job())
    for each in (second, third, theirs):
        one.admin.cancel(each.id)
    until(lambda: "ada" not in one.service.role.book.use.of_person)


def test_a_queue_has_limits_of_its_own_with_all_below_it(limited):
    one = limited(queues={"research": Limits(jobs=2, submissions_per_s=1000.0), "web": Limits(job_file_bytes=10)})
    eve, dan = one.person("eve"), one.person("dan")
    jobs = [eve.submit(job()), dan.submit(job())]
    with pytest.raises(RefusedError, match=r"^queue research: 2 of 2 open jobs are used here"):
        eve.submit(job())
    with pytest.raises(TooLargeError, match=r"^job file: has \d+ bytes, and those of queue web may have 10$"):
        eve.submit(job("web"))
    for each in jobs:
        one.admin.cancel(each.id)
    until(lambda: not one.service.role.book.use.of_queue)
    one.admin.cancel(eve.submit(job()).id)
    until(lambda: not one.service.role.book.use.of_queue)


def test_what_is_in_use_is_counted_again_after_a_restart(limited):
    one = limited()
    ada = one.person("fay")
    found = ada.submit(job(tasks=4))
    process = one.service.process
    before = dict(one.service.role.book.use.of_person)

    async def begun_anew():
        return process.make(process).book.use  # of what is on its disk

    use = one.do(begun_anew())
    assert use.of_person["fay"] == before["fay"] == (1, 4)
    assert use.of_queue["research"] == (1, 4)
    one.admin.cancel(found.id)


def test_submissions_a_second_are_a_mean_with_as_many_at_once():
    gate, now = Gate(PeopleLimits(submissions_per_s=10.0, people={"bo": Limits()})), 100.0
    for _ in range(10):
        gate.pass_person("ada", 1, now)
    with pytest.raises(LimitedError, match=r"^person ada submits too fast: 10 submissions a second") as caught:
        gate.pass_person("ada", 1, now)
    assert caught.value.retry_after_s == 1
    gate.pass_person("cleo", 1, now)
    for _ in range(1000):
        gate.pass_person("bo", 1, now)
    gate.pass_person("ada", 1, now + 0.11)
    with pytest.raises(LimitedError):
        gate.pass_person("ada", 1, now + 0.11)
    slow = Gate(PeopleLimits(submissions_per_s=0.1))
    slow.pass_person("ada", 1, now)
    with pytest.raises(LimitedError) as caught:
        slow.pass_person("ada", 1, now + 1.0)
    assert caught.value.retry_after_s == 10
    slow.pass_person("ada", 1, now + 11.0)


def test_the_table_of_who_submitted_lately_does_not_only_grow():
    gate = Gate(PeopleLimits(submissions_per_s=1.0))
    for number in range(5 * BUCKETS_MAX):
        gate.pass_person(f"p{number}", 1, 10.0 * number)
    assert len(gate.left) <= BUCKETS_MAX


def test_ten_thousand_submissions_a_second_of_one_hold_nobody_up(limited):
    """A flood over several connections, refused mostly; another person's submissions are answered meanwhile."""
    one = limited(PeopleLimits(submissions_per_s=5.0, people={"ken": Limits()}))
    flood, ken = one.person("flo"), one.person("ken")
    place, token, stop = urlsplit(one.addresses["g0"]), flood.settings.token, threading.Event()
    statuses = []

    def run():
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
        while not stop.is_set():
            connection.request("POST", "/v1/jobs", job(), {
                "Authorization": f"Bearer {token}", "Idempotency-Key": f"{time.perf_counter()}"})
            answer = connection.getresponse()
            answer.read()
            statuses.append((answer.status, answer.headers.get("Retry-After")))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(statuses) > 50)
        took = []
        for _ in range(5):
            begin = time.perf_counter()
            ken.submit(job("web", command="'true'"))
            took.append(time.perf_counter() - begin)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert max(took) < 5.0, took
    assert {status for status, _ in statuses} == {201, 429}
    assert all(after for status, after in statuses if status == 429)
    gate, begin = Gate(PeopleLimits(submissions_per_s=5.0)), time.perf_counter()
    for _ in range(10_000):
        try:
            gate.pass_person("flo", 1, 1.0)
        except LimitedError:
            continue
    assert time.perf_counter() - begin < 1.0  # so the gate itself takes less than all of a core


def test_a_file_says_limits_and_wrong_ones_are_refused():
    text = FILE + "[limits]\njobs = 2\n[limits.people.ada]\ntasks = 9\n"
    file = decoded(text, FederationFile)
    check(file)
    assert (file.limits.of("bo").jobs, file.limits.of("ada"), file.queue[0].limits) == (
        2, Limits(tasks=9), Limits(jobs=3))
    for wrong, place in (("[limits]\njobs = -1\n", "limits: must be 0"), ("[limits.people.a]\ntasks = -1\n",
                                                                         "limits.people.a: must be 0"),
                         ("[limits]\nsubmissions_per_s = nan\n", "limits: must be 0")):
        with pytest.raises(InputError, match=place):
            check(decoded(FILE + wrong, FederationFile))
    with pytest.raises(InputError, match="queue research: limits: must be 0"):
        check(decoded(FILE.replace("jobs = 3", "jobs = -3"), FederationFile))


def test_use_is_counted_upwards_and_forgotten():
    use = InUse()
    assert list(upwards("a/b/c")) == ["a/b/c", "a/b", "a"]
    use.note("ada", "a/b", 1, 3)
    use.note("bo", "a", 1, 1)
    assert (use.of_queue, use.of_person) == ({"a/b": (1, 3), "a": (2, 4)}, {"ada": (1, 3), "bo": (1, 1)})
    use.note("ada", "a/b", -1, -3)
    use.note("bo", "a", -1, -1)
    assert (use.of_queue, use.of_person) == ({}, {})
