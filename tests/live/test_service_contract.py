"""What `Service` says, kept alike by the fake service of other tests and by a real role: asked by client, over HTTP."""
import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import json

from fake_service import FakeService
from federations import until
from real_service import RealService
from serving import Serving
from subak.live.api.errors import InvalidError, NotFoundError, RefusedError, UnauthorizedError
from subak.live.api.service import JobFilter, OfJob
from subak.live.client.client import Client
from subak.live.client.settings import ClientSettings
from subak.live.service.resources import free_of


class Fake(FakeService):
    """The fake service, and a configuration as it reads one."""

    def __init__(self, name, addresses, queues):
        super().__init__(name, addresses, queues)
        self.weights = {"research": 1.0, "research/ada": 1.0, "web": 1.0}

    def found_at(self, address):
        pass

    async def run(self):
        pass

    def config(self, **weights):
        queues = {path: weight for path, weight in (self.weights | weights).items() if path}
        return ("[queues]\n" + "".join(f'"{path}" = {weight}\n' for path, weight in queues.items())).encode()


@pytest.fixture(params=["fake", "real"])
def one(request):
    """A service behind a server: `one.client`, `one.ask` for what the client has no words for."""
    served = Serving(make=Fake if request.param == "fake" else lambda name, addresses, queues: RealService())
    served.service = served.services["g0"]
    served.service.found_at(served.addresses["g0"])
    task = asyncio.run_coroutine_threadsafe(served.service.run(), served.loop)
    served.ask = lambda question, *arguments: served.do(getattr(served.service, question)(*arguments))
    with Client(ClientSettings((served.addresses["g0"],), served.token), patience_s=5.0) as served.client:
        until(lambda: all(each.state == "ready" for each in served.client.machines()))
        yield served
    task.cancel()
    served.stop()


def job(command="true", name="j", queue="research/ada", tasks=1, **more):
    words = ", ".join(f"{key}: {value}" for key, value in more.items())
    resources = "" if "resources" in more else "resources: {cpu: 1000m, memory: 64Mi}, "
    return (f"{{apiVersion: subak/v1, kind: Job, metadata: {{name: {name}}}, queue: {queue}, tasks: {tasks}, "
            f"{resources}command: [{', '.join(command.split())}], {words}}}")


def pages(one, question, *arguments, limit):
    """Return the items of all pages, each with as many as it may have, and the pages' lengths."""
    items, lengths, cursor = [], [], ""
    while True:
        page = one.ask(question, *arguments, cursor, limit)
        assert len(lengths) < 20, "pages without end"
        items += page.items
        lengths.append(len(page.items))
        cursor = page.cursor
        if not cursor:
            return items, lengths


def running(one, text, tasks=1):
    """Submit a job, and return it when all of its tasks run."""
    found = one.client.submit(text)
    until(lambda: one.client.job(found.id).counts.running == tasks, words=lambda: str(one.client.job(found.id)))
    return one.client.job(found.id)


# -- people ------------------------------------------------------------------------------------------------------------


def test_who_submitted_a_job_is_kept_with_it(one):
    """While it is open, and when it has ended."""
    made = one.client.add_person("ada", "submitter", queues=("research",))
    with Client(ClientSettings(one.client.settings.addresses, made.token), patience_s=5.0) as ada:
        ended, goes_on = ada.submit(job()).id, ada.submit(job("sleep")).id
        assert ada.wait(ended, timeout_s=20).user == ada.job(goes_on).user == "ada"
        until(lambda: one.ask("belongs", ended) == one.ask("belongs", goes_on) == OfJob("research/ada", "ada"))
        others = one.client.submit(job()).id
        assert {each.id for each in ada.jobs(user="ada").items} == {ended, goes_on}
        assert one.client.job(others).user == "admin"
        with pytest.raises(RefusedError, match="was used for job"):
            one.client.submit(job("sleep"), key=_used(ada, job("sleep")))
        one.client.revoke("ada")
        with pytest.raises(UnauthorizedError, match=f"token {made.holder.id} of ada was revoked"):
            ada.job(ended)
    assert one.client.job(goes_on).state == "running"


def _used(client, text):
    """Return a key under which a client has submitted a job."""
    client.submit(text, key="ours")
    return "ours"


def test_tokens_come_in_pages_by_name(one):
    for name in ("b", "a", "c"):
        one.client.add_person(name, "reader")
    items, lengths = pages(one, "tokens", limit=2)
    assert ([each.name for each in items], lengths) == (["a", "b", "c"], [2, 1])


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_a_job_is_there_as_soon_as_it_was_submitted(one):
    view = one.client.submit(job(name="first", tasks=3))
    assert (view.name, view.queue, view.tasks, view.labels) == ("first", "research/ada", 3, {})
    assert one.client.job(view.id).id == view.id
    over = one.client.wait(view.id, timeout_s=20)
    assert (over.state, over.outcome, over.counts.finished) == ("ended", "finished", 3)
    assert over.started <= over.ended
    assert [(stage.tasks, stage.counts.finished) for stage in over.stages] == [(3, 3)]


def test_a_key_stands_for_one_job(one):
    first = one.client.submit(job(), key="mine")
    assert one.client.submit(job(), key="mine").id == first.id
    assert one.client.submit(job(), key="yours").id != first.id
    with pytest.raises(RefusedError, match=f"mine was used for job {first.id}"):
        one.client.submit(job(name="another"), key="mine")
    one.client.wait(first.id, timeout_s=20)
    assert one.client.submit(job(), key="mine").id == first.id


def test_a_queue_that_is_not_there_is_named(one):
    with pytest.raises(InvalidError, match=r"there is (no queue|none called) 'nowhere'") as caught:
        one.client.submit(job(queue="nowhere"))
    assert caught.value.field == "queue"


def test_the_file_of_a_job_submits_the_same_one_again(one):
    """While it is open, and when it has ended."""
    text = job(name="again", tasks=2, env="{SEED: \"7\"}", workdir="/tmp", retries=1, time_limit="1h")
    view = one.client.submit(text)
    file = one.client.file(view.id)
    one.client.wait(view.id, timeout_s=20)
    assert one.client.file(view.id) == file
    assert (file["metadata"], file["queue"], file["tasks"], file["env"]) == (
        {"name": "again"}, "research/ada", 2, {"SEED": "7"})
    assert one.client.file(one.client.submit(json.encode(file)).id) == file


@pytest.mark.parametrize("question", ["job", "file", "wait", "tasks", "cancel", "history"])
def test_what_is_not_there_is_not_found(one, question):
    with pytest.raises(NotFoundError, match="there is no job g0-99"):
        getattr(one.client, question)("g0-99")


@pytest.mark.parametrize("question", ["task", "logs", "cancel", "preempt", "explain", "history"])
def test_a_task_that_is_not_there_is_not_found(one, question):
    id = one.client.submit(job(tasks=2)).id
    with pytest.raises(NotFoundError, match=" task "):
        getattr(one.client, question)(f"{id}.2")


def test_jobs_are_found_by_queue_and_name_and_state(one):
    ada = running(one, job("sleep", "x"))
    web = one.client.submit(job(name="y", queue="web"))
    one.client.wait(web.id, timeout_s=20)

    def ids(**wanted):
        return [each.id for each in one.client.jobs(**wanted).items]
    assert sorted(ids()) == sorted([ada.id, web.id])
    assert ids(queue="research") == ids(queue="research/ada") == ids(name="x") == ids(state="running") == [ada.id]
    assert ids(queue="web") == ids(name="y") == ids(state="ended") == [web.id]
    assert ids(queue="res") == ids(queue="research/a") == ids(name="z") == ids(state="waiting") == []
    assert ids(queue="web", name="x") == []
    ended = one.client.job(web.id).ended
    assert ids(ended_since=ended) == ids(ended_since=1.0) == [web.id]
    assert ids(ended_since=ended + 0.001) == ids(ended_since=1.0, name="x") == []


@pytest.mark.parametrize("one", ["real"], indirect=True)
def test_jobs_that_are_known_to_have_ended_before_are_not_read(one, monkeypatch):
    ids = [one.client.wait(one.client.submit(job(name=name)).id, timeout_s=20).id for name in "ab"]
    read, viewed = [], type(one.service)._viewed

    async def noted(service, id, waiting):
        read.append(id)
        return await viewed(service, id, waiting)

    monkeypatch.setattr(type(one.service), "_viewed", noted)
    ended = one.client.job(ids[1]).ended
    one.service.ended_at = {one.service._number(ids[0])[0]: (5.0, 1)}
    read.clear()
    assert [each.id for each in one.client.jobs(ended_since=min(ended, 6.0)).items] == [ids[1]]
    assert read == [ids[1]]


def test_what_machines_have_free_is_told_for_all_that_have_as_much(one):
    free = {}
    for machine in one.client.machines():
        left = tuple((name, amount - machine.used.get(name, 0)) for name, amount in sorted(machine.capacity.items()))
        free[left] = free.get(left, 0) + 1
    told = one.client.federation()
    assert ({tuple(sorted(each.amounts.items())): each.machines for each in told.free}, told.free_left_out) == (free, 0)


def test_of_many_machines_the_ones_with_most_free_are_told():
    capacity = np.full((1, 1000), 999)
    capacity[0, 0] = 0  # is not there
    fleet = SimpleNamespace(capacity=capacity, free=np.arange(1000)[None] // 5, scale=np.array([1.0]))
    free, left_out = free_of(SimpleNamespace(master=SimpleNamespace(fleet=fleet),
                                             layout=SimpleNamespace(resources=("cpu",))))
    assert [(each.amounts["cpu"], each.machines) for each in free] == [(199 - place, 5) for place in range(64)]
    assert left_out == 999 - 64 * 5


@pytest.mark.parametrize(("limit", "lengths"), [(1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (9, [5])])
def test_pages_of_jobs_and_tasks_and_what_happened_name_each_once(one, limit, lengths):
    ids = [one.client.submit(job(name=f"j{number}")).id for number in range(4)]
    ids.append(running(one, job("sleep", tasks=5), 5).id)
    for id in ids[:4]:
        one.client.wait(id, timeout_s=20)
    found, sizes = pages(one, "jobs", JobFilter(), limit=limit)
    assert ([each.id for each in found], sizes) == (ids[::-1], lengths)
    some = JobFilter(ids=(ids[3], ids[0], "g9-1", "g0-999", ids[4]))
    assert [each.id for each in pages(one, "jobs", some, limit=limit)[0]] == [ids[4], ids[3], ids[0]]
    assert {each.id for each in one.client.jobs_of([*ids[:2], "g0-999"]).items} == {*ids[:2]}
    for state in (None, "running"):
        found, sizes = pages(one, "tasks", ids[4], state, "", False, limit=limit)
        assert ([each.index for each in found], sizes) == ([0, 1, 2, 3, 4], lengths)
    assert pages(one, "tasks", ids[4], "waiting", "", False, limit=limit) == ([], [0])
    found, _ = pages(one, "history", ids[4], limit=limit)
    assert [each.number for each in found] == sorted({each.number for each in found})
    assert found == one.client.history(ids[4])


def test_who_waits_hears_of_a_change_and_of_the_end(one):
    view = running(one, job("sleep"))
    assert one.client.wait(view.id, timeout_s=0.05).state == "running"
    assert one.client.wait(view.id, seen=view.version + 100, timeout_s=20).version == view.version
    one.client.cancel(view.id)
    over = one.client.wait(view.id, seen=view.version, timeout_s=20)
    assert over.version > view.version
    assert one.client.wait(view.id, timeout_s=20).outcome == "cancelled"


def test_a_task_says_where_it_runs_and_how_it_ended(one):
    view = running(one, job("sleep"))
    task = one.client.task(f"{view.id}.0")
    assert (task.state, task.attempts, task.outcome, task.exit_code) == ("running", 1, "", None)
    assert task.machine in {machine.name for machine in one.client.machines()}
    failed = one.client.submit(job("exit 7"))
    assert one.client.wait(failed.id, timeout_s=20).outcome == "failed"
    task = one.client.task(f"{failed.id}.0")
    assert (task.state, task.outcome, task.exit_code) == ("ended", "failed", 7)
    assert task.reason.endswith("exit code 7")


def test_what_an_attempt_has_written(one):
    view = one.client.submit(job("echo one two"))
    one.client.wait(view.id, timeout_s=20)
    id = f"{view.id}.0"

    def read(*arguments, **more):
        chunk = one.client.logs(id, *arguments, timeout_s=5, **more)
        return chunk.data, chunk.offset, chunk.next, chunk.is_end
    assert read() == (b"one two\n", 0, 8, True)
    assert read(offset=4) == (b"two\n", 4, 8, True)
    assert read(offset=-4) == (b"two\n", 4, 8, True)
    assert read(tail=1) == (b"one two\n", 0, 8, True)
    assert read("stderr")[0::3] == (b"", True)
    part = one.ask("logs", id, "stdout", 1, 0, 3, 5.0, 0)
    assert (part.data, part.next, part.is_end) == (b"one", 3, False)


def test_a_job_or_a_task_is_cancelled_and_what_has_ended_stays(one):
    view = running(one, job("sleep", tasks=2), 2)
    one.client.cancel(f"{view.id}.0")
    until(lambda: one.client.task(f"{view.id}.0").outcome == "cancelled")
    assert one.client.task(f"{view.id}.1").state == "running"
    one.client.cancel(view.id)
    assert one.client.wait(view.id, timeout_s=20).counts.cancelled == 2
    good = one.client.submit(job())
    one.client.wait(good.id, timeout_s=20)
    assert one.client.cancel(good.id).outcome == "finished"


def test_what_no_machine_is_large_enough_for_is_warned_of_and_said_while_it_waits(one):
    words = "it can never run: it asks for cpu 64, the largest machine has cpu 4"
    text = job(resources={"cpu": 64})
    with pytest.raises(InvalidError, match=words):
        one.client.submit(text, strict=True)
    assert one.client.jobs().items == ()
    view = one.client.submit(text)
    assert view.warnings == (words,)
    (listed,) = one.client.jobs().items
    reason = "no machine is large enough: it asks for cpu 64, the largest machine has cpu 4"
    assert (listed.reason, listed.warnings) == (reason, ())
    assert one.client.explain(f"{view.id}.0").words == f"it waits: {reason}"
    assert one.client.submit(job(resources={"cpu": 4}), strict=True).warnings == ()
    one.client.cancel(view.id)


def test_only_what_runs_is_preempted(one):
    view = running(one, job("sleep"))
    one.client.preempt(f"{view.id}.0")
    until(lambda: one.client.task(f"{view.id}.0").attempts == 2)
    task = one.client.task(f"{view.id}.0")
    assert task.preempted == 1
    assert "operator" in one.client.explain(task.id).preempted_by
    one.client.cancel(view.id)
    one.client.wait(view.id, timeout_s=20)
    with pytest.raises(RefusedError, match=f"task {view.id}.0 .*ended"):
        one.client.preempt(f"{view.id}.0")


def test_it_is_said_why_a_task_waits(one):
    def tests(id):
        return {each.test for each in one.client.explain(id).shortages}
    lonely = one.client.submit(job(constraints="[{attribute: rack, operator: '=', value: r9}]"))
    until(lambda: "constraint" in tests(f"{lonely.id}.0"))
    for machine in one.client.machines():
        one.client.cordon(machine.name)
    stuck = one.client.submit(job())
    until(lambda: "cordoned" in tests(f"{stuck.id}.0"))
    assert one.client.explain(f"{stuck.id}.0").state == "waiting"


def test_what_happened_is_told_in_its_order(one):
    view = one.client.submit(job("false", tasks=2))
    one.client.wait(view.id, timeout_s=20)
    of_job = one.client.history(view.id)
    assert [event.at for event in of_job] == sorted(event.at for event in of_job)
    of_task = one.client.history(f"{view.id}.1")
    assert of_task == [event for event in of_job if event.id == f"{view.id}.1"]
    assert [event.what for event in of_task][-1] in ("ended", "failed")
    assert any(event.machine for event in of_task)


# -- the federation ----------------------------------------------------------------------------------------------------


def test_queues_are_listed_with_what_runs_in_them_and_in_those_below(one):
    running(one, job("sleep", tasks=2), 2)
    found, sizes = pages(one, "queues", limit=2)
    assert sizes == [2, 1]
    assert [queue.path for queue in found] == ["research", "research/ada", "web"]
    until(lambda: [queue.used.get("cpu", 0) for queue in one.client.queues().items] == [2000, 2000, 0])
    assert [(queue.running, queue.jobs) for queue in one.client.queues().items] == [(2, 1), (2, 1), (0, 0)]


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3])])
def test_machines_are_listed_by_name_and_by_cluster(one, limit, sizes):
    found, lengths = pages(one, "machines", "", limit=limit)
    assert [(each.name, each.cluster) for each in found] == [("m0", "west"), ("m1", "west"), ("m2", "east")]
    assert lengths == sizes
    assert [each.name for each in one.client.machines("west")] == ["m0", "m1"]
    assert one.client.machine("m2") == found[2]
    assert found[0].capacity == {"cpu": 4000, "memory": 8192, "tasks": 12}


@pytest.mark.parametrize("question", ["machine", "cordon", "drain"])
def test_a_machine_that_is_not_there_is_not_found(one, question):
    with pytest.raises(NotFoundError, match="there is no machine m9"):
        getattr(one.client, question)("m9")


def test_nothing_new_starts_on_a_cordoned_machine_and_what_runs_leaves_a_drained_one(one):
    view = running(one, job("sleep"))
    first = one.client.task(f"{view.id}.0").machine
    others = [each.name for each in one.client.machines() if each.name != first]
    one.client.cordon(first)
    until(lambda: one.client.machine(first).cordoned)
    assert one.client.task(f"{view.id}.0").attempts == 1
    one.client.drain(first)
    until(lambda: one.client.job(view.id).counts.running and one.client.task(f"{view.id}.0").attempts == 2)
    assert one.client.task(f"{view.id}.0").machine in others
    one.client.cordon(first, on=False)
    until(lambda: not one.client.machine(first).cordoned)
    assert not one.client.machine(first).draining


def test_a_configuration_is_planned_and_applied_once(one):
    config = one.service.config(new=2.0)
    before = [queue.path for queue in one.client.queues().items]
    plan = one.client.plan(config)
    assert not plan.applied
    assert "new" in " ".join(change.what for change in plan.changes)
    assert [queue.path for queue in one.client.queues().items] == before
    with pytest.raises(RefusedError, match=f"configuration {plan.version} is in force by now"):
        one.client.apply(config, plan.version + 1)
    done = one.client.apply(config, plan.version)
    assert (done.applied, done.version) == (True, plan.version + 1)
    assert "new" in [queue.path for queue in one.client.queues().items]
    assert one.client.submit(job(queue="new")).queue == "new"
    with pytest.raises(InvalidError, match="configuration"):
        one.client.plan(b"this is = = nothing")


def test_who_is_there(one):
    federation = one.client.federation()
    assert (federation.master, federation.machines, set(federation.clusters)) == ("g0", 3, {"west", "east"})
    assert federation.masters == one.client.masters()
    (master,) = (each for each in one.client.masters() if each.role == "global")
    assert (master.name, master.state) == ("g0", "ready")
    assert one.client.health().state == "ready"
