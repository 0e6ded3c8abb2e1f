"""The audit log: a line for each change, before it is made; nothing secret; files of a bounded size."""
import errno
import json
import os

import pytest

from live_federation import Federation, until
from serving import Serving
from subak.live.api.errors import ForbiddenError, NotFoundError, UnavailableError
from subak.live.api.guard import PLANS, UNCHANGING
from subak.live.api.routes import ROUTES
from subak.live.client.client import Client
from subak.live.client.settings import ClientSettings
from subak.live.people.access import Need
from subak.live.people.audit import FILE, Audit, Line

JOB = ("{apiVersion: subak/v1, kind: Job, metadata: {name: j}, queue: research/ada, command: [sleep, hidden-command], "
       "env: {KEY: hidden-variable}}")


@pytest.fixture
def serving():
    serving = Serving(("g0", "g1"))
    yield serving
    serving.stop()


def client(serving, token="", master="g0"):
    return Client(ClientSettings((serving.addresses[master],), token or serving.token), patience_s=0.0)


def lines_of(serving):
    return [line for name in serving.audits for line in (serving.audits[name].path.read_text().splitlines()
                                                         if serving.audits[name].path.exists() else ())]


def test_each_change_is_written_down_with_who_asked_and_how_it_ended(serving):
    with client(serving) as admin:
        made = admin.add_person("ada", "submitter", queues=("research",))
        with client(serving, made.token) as ada:
            mine = ada.submit(JOB, key="hidden-key").id
            ada.cancel(f"{mine}.0")
            with pytest.raises(ForbiddenError):
                ada.cordon("m0")
            ada.jobs()  # which changes nothing
        with pytest.raises(NotFoundError):
            admin.drain("m9")
        admin.plan(b"[queues]\nweb = 1.0\n")  # nor does this
        found = admin.audit().items
        assert [(each.who, each.role, each.what, each.object, each.code) for each in found] == [
            ("admin", "admin", "POST /v1/people", made.holder.id, 201),
            ("ada", "submitter", "POST /v1/jobs", mine, 201),
            ("ada", "submitter", f"POST /v1/tasks/{mine}.0/cancel", f"{mine}.0", 200),
            ("ada", "submitter", "POST /v1/machines/m0/cordon", "m0", 403),
            ("admin", "admin", "POST /v1/machines/m9/drain", "m9", 404)]
        assert {each.origin for each in found} == {"127.0.0.1"}
        assert {each.token for each in found if each.who == "ada"} == {made.holder.id}
        assert [each.object for each in admin.audit(object=mine).items] == [mine, f"{mine}.0"]
        assert [each.object for each in admin.audit(who="admin", limit=1).items] == ["m9"]
        assert admin.audit(since=found[-1].at + 1).items == ()
        text = "\n".join(lines_of(serving))
        for secret in (made.token, serving.token, "hidden", "research"):
            assert secret not in text
        assert serving.audits["g0"].path.stat().st_mode & 0o777 == 0o600


def test_changes_of_all_masters_come_together(serving):
    with client(serving) as admin, client(serving, master="g1") as other:
        admin.cordon("m0")
        other.cordon("m1")
        admin.cordon("m2")
        assert [each.object for each in admin.audit().items] == ["m0", "m1", "m2"]
        assert [each.object for each in admin.audit(limit=2).items] == ["m1", "m2"]


def test_a_change_that_cannot_be_written_down_does_not_happen(serving, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with client(serving) as admin:
        with monkeypatch.context() as patch:
            patch.setattr("subak.live.people.audit.os.write", full)
            for change in (lambda: admin.cordon("m0"), lambda: admin.submit(JOB),
                           lambda: admin.add_person("ada", "reader")):
                with pytest.raises(UnavailableError, match="nothing was changed: the audit log takes no line: No sp"):
                    change()
            assert not admin.machine("m0").cordoned  # what is only read is answered
            assert admin.jobs().items == ()
            assert admin.people() == []
        assert admin.cordon("m0").cordoned


def test_every_route_that_changes_something_is_written_down():
    """What needs more than to read does, but for lists and the plan; what only reads is asked by GET."""
    for route in ROUTES:
        is_written = not set(route.http_methods) <= set(UNCHANGING) and not set(route.paths) <= set(PLANS)
        reads = route.opt["needs"] in (Need.NOTHING, Need.READ, Need.READ_JOB) or route.summary.startswith(
            ("List", "What"))
        assert is_written != reads, route.paths


def line(number=0, who="ada"):
    return Line("", 0.0, who, "reader", "t1", "::1", "POST /v1/x", f"object-{number}")


def test_files_are_bounded_and_the_oldest_goes(tmp_path):
    audit = Audit(tmp_path, file_bytes=1000, files=3)
    for number in range(100):
        audit.end(audit.begin(line(number)), 200)
    audit.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [FILE, f"{FILE}.1", f"{FILE}.2"]
    assert all(file.stat().st_size <= 1000 and file.stat().st_mode & 0o777 == 0o600 for file in files)
    found = audit.read(0.0, "", "", 1000)
    assert found[-1].object == "object-99"
    assert [each.object for each in found] == [f"object-{number}" for number in range(100 - len(found), 100)]
    assert 3 < len(found) < 30
    assert {each.code for each in found[1:]} == {200}


def test_a_line_that_was_cut_short_is_no_line(tmp_path, monkeypatch):
    audit, write = Audit(tmp_path), os.write
    audit.end(audit.begin(line(1)), 200)
    with monkeypatch.context() as patch:
        patch.setattr("subak.live.people.audit.os.write", lambda number, data: write(number, data[:10]))
        with pytest.raises(OSError, match="No space left"):
            audit.begin(line(2))
    audit.begin(line(3))
    audit.close()
    with audit.path.open("ab") as file:
        file.write(b'{"request": "cut')  # of a kill
    assert [(each.object, each.code) for each in audit.read(0.0, "", "", 10)] == [("object-1", 200), ("object-3", 0)]
    assert all(json.loads(each) for each in audit.path.read_text().splitlines()[:-1])


def test_a_master_keeps_it_over_kill_9(tmp_path):
    federation = Federation(tmp_path / "federation", 1, 1, 0, standby=False)
    try:
        federation.start()
        until(lambda: all(federation.has_begun(name) for name in federation.members))
        with federation.client() as admin:
            admin.add_person("ada", "reader")
        federation.kill("g0")
        federation.start("g0")
        until(lambda: federation.has_begun("g0"))
        with federation.client() as admin:
            admin.revoke("ada")
            assert [(each.what, each.code) for each in admin.audit().items] == [
                ("POST /v1/people", 201), ("POST /v1/people/ada/revoke", 200)]
    finally:
        assert federation.stop() == []
