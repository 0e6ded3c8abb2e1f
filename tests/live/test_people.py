"""Tokens and roles: each route asked with each role, over a real server, and what revoking one does everywhere."""
import asyncio
import itertools
import json
import time
import urllib.error
import urllib.request

import pytest
from msgspec import structs

from live_federation import Federation, until
from real_service import RealService
from serving import Serving
from subak.federation.messages import GLOBAL_MASTER
from subak.live.api.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
    RefusedError,
    UnauthorizedError,
    UnavailableError,
)
from subak.live.api.models import NewPerson
from subak.live.api.routes import ROUTES
from subak.live.api.server import ServerSettings, make_app
from subak.live.client.client import Client
from subak.live.client.settings import ClientSettings
from subak.live.config import GlobalMasterEntry
from subak.live.people.access import Need
from subak.live.people.identity import KEPT_S, ROLES, Identity, People, id_of
from subak.live.role.facts import IDENTITY
from subak.live.role.global_master.global_role import PRUNE_S
from subak.live.role.global_master.queues import QueueSetup
from subak.live.role.layout import Layout, Timing
from subak.live.tokens import PEOPLE, hash_of, new_token
from subak.live.torture.case import ROOMS, Case
from subak.live.torture.world import FIRST_CLOCK, World

JOB = ("{{apiVersion: subak/v1, kind: Job, metadata: {{name: j}}, queue: {queue}, "
       "resources: {{cpu: 100m, memory: 64Mi}}, command: [sleep], env: {{KEY: hidden}}}}")
QUEUE = "research/ada"
HOLDERS = {  # name: role, queues, all jobs
    "admin": ("admin", (), False), "operator": ("operator", (), False), "reader": ("reader", (), False),
    "own": ("submitter", ("research",), False), "other": ("submitter", ("research",), False),
    "elsewhere": ("submitter", ("web",), True), "below": ("submitter", ("research/ada/x", "resear"), True),
    "subtree": ("submitter", ("research",), True), "everywhere": ("submitter", ("/",), True),
    "expired": ("admin", (), False), "revoked": ("admin", (), False)}
RUNS_OWN, ANY_TOKEN = {"admin", "own", "subtree", "everywhere"}, HOLDERS.keys() - {"expired", "revoked"}
MAY = {  # who may do what needs this, to a job that `own` has submitted to research/ada
    Need.NOTHING: {*HOLDERS, "none"}, Need.READ: ANY_TOKEN, Need.OPERATE: {"admin", "operator"},
    Need.ADMINISTER: {"admin"}, Need.READ_JOB: RUNS_OWN, Need.CHANGE_JOB: RUNS_OWN | {"operator"},
    Need.SUBMIT: RUNS_OWN | {"other"}}
# What each route needs, once more and by hand: a route that is new, or needs less, is seen here.
NEEDS = {
    Need.NOTHING: ["GET /v1/health", "GET /v1/ready"],
    Need.READ: ["GET /metrics", "GET /v1/federation", "GET /v1/jobs", "GET /v1/jobs/{id}", "GET /v1/jobs/{id}/history",
                "GET /v1/jobs/{id}/tasks", "GET /v1/jobs/{id}/wait", "GET /v1/machines", "GET /v1/machines/{name}",
                "GET /v1/masters", "GET /v1/queues", "GET /v1/tasks/{id}", "GET /v1/tasks/{id}/explain",
                "GET /v1/tasks/{id}/history", "GET /v1/whoami"],
    Need.SUBMIT: ["POST /v1/jobs"],
    Need.READ_JOB: ["GET /v1/jobs/{id}/file", "GET /v1/tasks/{id}/logs"],
    Need.CHANGE_JOB: ["POST /v1/jobs/{id}/cancel", "POST /v1/tasks/{id}/cancel", "POST /v1/tasks/{id}/preempt"],
    Need.OPERATE: ["POST /v1/configuration/apply", "POST /v1/configuration/plan", "POST /v1/machines/{name}/cordon",
                   "POST /v1/machines/{name}/drain", "POST /v1/machines/{name}/remove",
                   "POST /v1/machines/{name}/uncordon"],
    Need.ADMINISTER: ["GET /v1/audit", "GET /v1/people", "POST /v1/people", "POST /v1/people/{name}/revoke"]}


def name_of(route, method):
    return f"{method} {next(iter(route.paths))}".replace(":str", "")


DECLARED = {name_of(route, method): route.opt["needs"]
            for route in ROUTES for method in route.http_methods if method in ("GET", "POST", "PUT", "DELETE")}


@pytest.fixture(scope="module")
def served():
    """A server with a token for each of HOLDERS, in `tokens`; none is the empty text."""
    serving = Serving()
    people, now = serving.services["g0"].people, time.time()
    serving.tokens = {name: new_token(PEOPLE) for name in HOLDERS}
    for name, (role, queues, all_jobs) in HOLDERS.items():
        kept = hash_of(serving.tokens[name])
        people.note(Identity(id_of(kept), name, role, queues, all_jobs, kept.text, now,
                             expires=now - 1 if name == "expired" else 0.0, revoked=now if name == "revoked" else 0.0))
    serving.tokens["none"] = ""
    yield serving
    serving.stop()


def ask(served, holder, method, path, body=None, **headers):
    """Return the status and the words of an answer."""
    token = served.tokens[holder]
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    question = urllib.request.Request(served.addresses["g0"] + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(question, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def client(served, holder):
    return Client(ClientSettings((served.addresses["g0"],), served.tokens[holder]), patience_s=0.0)


def submitted(served, holder="own", queue=QUEUE):
    with client(served, holder) as federation:
        return federation.submit(JOB.format(queue=queue)).id


def test_each_route_says_what_it_needs():
    assert sorted(DECLARED) == sorted(itertools.chain(*NEEDS.values()))
    assert {need: sorted(name for name, its in DECLARED.items() if its is need) for need in Need} == {
        need: sorted(names) for need, names in NEEDS.items()}


def test_a_route_that_does_not_say_it_does_not_start(served, monkeypatch):
    monkeypatch.delitem(ROUTES[3].opt, "needs")
    with pytest.raises(Exception, match=r"route /v1/jobs/\{id:str\}/file: must say what it needs"):
        make_app(served.services["g0"], ServerSettings())


@pytest.mark.parametrize("holder", [*HOLDERS, "none"])
@pytest.mark.parametrize("route", DECLARED)
def test_each_route_with_each_role(served, route, holder):
    method, path = route.split()
    job = submitted(served)
    machine = {"GET /v1/machines/{name}": "m0", "POST /v1/people/{name}/revoke": "nobody"}.get(route, "m0")
    path = path.replace("{id}", f"{job}.0" if "/tasks/" in path else job).replace("{name}", machine)
    path += {"GET /v1/jobs/{id}/wait": "?timeout_s=0", "POST /v1/configuration/apply": "?version=99"}.get(route, "")
    body, headers = None, {}
    if method == "POST":
        body = {"POST /v1/jobs": JOB.format(queue=QUEUE).encode(),
                "POST /v1/people": b'{"name": "new", "role": "reader"}'}.get(route, b"")
        headers = {"Idempotency-Key": f"{holder}-{time.time()}", "Content-Type": "application/json"}
    status, words = ask(served, holder, method, path, body, **headers)
    if holder in MAY[DECLARED[route]]:
        assert status in (200, 201) or (status, machine) == (404, "nobody") or status == 409, (route, holder, words)
    elif holder in ANY_TOKEN:
        said = json.loads(words)
        assert (status, said["code"]) == (403, "forbidden"), (route, holder, words)
        assert f"{holder} is a" in said["words"], said
        assert HOLDERS[holder][0] in said["words"], said
        assert DECLARED[route].value in said["words"], said
        assert "\n" not in said["words"]
    else:
        assert status == 401, (route, holder, words)
        assert {"expired": "has expired", "revoked": "was revoked"}.get(holder, "a token is needed") in words
    if holder not in MAY[DECLARED[route]] and DECLARED[route] is Need.CHANGE_JOB:
        with client(served, "admin") as federation:
            assert federation.job(job).state != "ended"


def test_a_submitter_of_one_queue_does_not_submit_to_another(served):
    for holder, queue in (("own", "web"), ("elsewhere", QUEUE), ("below", "research"), ("reader", QUEUE)):
        with client(served, holder) as federation, pytest.raises(
                ForbiddenError, match=f"^{holder} is a .*submit.* takes a submitter of it, or an admin$"):
            federation.submit(JOB.format(queue=queue))
    with client(served, "elsewhere") as federation:
        assert federation.submit(JOB.format(queue="web")).user == "elsewhere"


def test_an_id_of_no_form_is_refused_and_never_let_through(served):
    for path in ("/v1/jobs/x/cancel", "/v1/jobs/g0-1.5/cancel", "/v1/jobs/g0-1%0A/cancel", "/v1/tasks/g0-1/cancel"):
        for holder in ("own", "reader"):
            assert ask(served, holder, "POST", path, b"")[0] in (400, 403, 404), path


def test_the_key_of_another_person_is_refused(served):
    with client(served, "own") as one, client(served, "other") as two:
        one.submit(JOB.format(queue=QUEUE), key="shared")
        with pytest.raises(RefusedError):
            two.submit(JOB.format(queue=QUEUE), key="shared")


def test_lists_say_states_of_all_jobs_and_whose_they_are(served):
    own, other = submitted(served), submitted(served, "other")
    with client(served, "reader") as federation:
        assert {own, other} <= {job.id for job in federation.jobs().items}
        assert {job.user for job in federation.jobs(user="other").items} == {"other"}
    status, words = ask(served, "reader", "GET", f"/v1/jobs/{own}")
    assert (status, "hidden" in words, "sleep" in words) == (200, False, False)


def test_a_person_is_made_shown_and_revoked(served):
    with client(served, "admin") as federation:
        made = federation.add_person("cleo", "submitter", queues=("web/",), valid_s=3600.0)
        assert (made.holder.made_by, made.holder.queues, made.holder.state) == ("admin", ("web",), "valid")
        assert made.token not in repr(federation.people())
        served.tokens["cleo"] = made.token
        with client(served, "cleo") as cleo:
            assert (cleo.whoami().name, cleo.whoami().expires) == ("cleo", made.holder.expires)
        assert [each.state for each in federation.revoke("cleo")] == ["revoked"]
        with client(served, "cleo") as cleo, pytest.raises(UnauthorizedError, match="was revoked: an admin makes"):
            cleo.whoami()
        assert [each.revoked for each in federation.revoke(made.holder.id)] == [
            each.revoked for each in federation.people() if each.name == "cleo"]
        with pytest.raises(NotFoundError, match="there is no token of dan"):
            federation.revoke("dan")


@pytest.mark.parametrize(("asked", "words"), [
    (("x", "submitter"), "a submitter needs one"), (("x", "reader", ("web",)), "not with a role such as reader"),
    (("x", "reader", (), True), "goes with queues"), (("admin", "admin"), "the token of the first start"),
    (("x", "submitter", ("",)), "must not be empty"), (("a b", "reader"), "name"), (("x", "king"), "role")])
def test_wrong_persons_are_refused(served, asked, words):
    with client(served, "admin") as federation, pytest.raises(InvalidError, match=words):
        federation.add_person(*asked[:2], queues=asked[2] if len(asked) > 2 else (), all_jobs=len(asked) > 3)


def test_the_first_token_is_not_revoked(served):
    with client(served, "admin") as federation:
        for name in ("admin", id_of(hash_of(served.token))):
            if name == "admin":
                continue
            with pytest.raises(RefusedError, match="is the token of the first start"):
                federation.revoke(name)


def test_roles_are_those_of_the_table():
    assert set(ROLES) == {role for role, _, _ in HOLDERS.values()}


def test_a_token_is_found_in_the_same_time_among_a_hundred_thousand():
    few, many = People(), People()
    for people, count in ((few, 10), (many, 100_000)):
        for number in range(count):
            people.note(Identity(f"t{number:012x}", f"p{number}", "reader", hash=f"sha256:{number:064x}"))
    token = new_token(PEOPLE)
    for people in (few, many):
        people.note(Identity("t", "me", "reader", hash=hash_of(token).text))

    def seconds(people):
        begin = time.perf_counter()
        for _ in range(2_000):
            assert people.holder(token).name == "me"
        return time.perf_counter() - begin

    assert min(seconds(many) for _ in range(5)) < 3 * min(seconds(few) for _ in range(5))


def test_tokens_that_are_over_are_forgotten():
    now, kept = time.time(), Identity("t1", "a", "reader", hash="sha256:1")
    assert not kept.is_over(now + 1e9)
    for name in ("expires", "revoked"):
        over = structs.replace(kept, **{name: now})
        assert (over.is_over(now + KEPT_S - 1), over.is_over(now + KEPT_S + 1)) == (False, True)


# -- all masters -------------------------------------------------------------------------------------------------------


@pytest.fixture
def world():
    """Two global masters, a cluster with its standby, and no machines, in one process."""
    layout = Layout(2, 1, ("cpu", "memory", "tasks"), True, ROOMS)
    case = Case(1, layout, Timing(), (), (QueueSetup("research", 0), QueueSetup("web", 1)), "round-robin", (), (),
                (), (), 0.0, 0.0, 0.0, 0.0)
    world = World(case)
    for process in (*world.masters, *world.locals):
        world.start(process)
    world.until(5.0)
    return world


def token_at(world, master, token):
    """Return how a token stands at a global master."""
    role = world.masters[master].role
    found = role.people.holder(token)
    return "unknown" if found is None else found.state(role.clock)


def noted(world, master, **fields):
    """Let a global master note a token, and return the token and what is known of it."""
    token = new_token(PEOPLE)
    kept = hash_of(token)
    identity = Identity(id_of(kept), "ada", "reader", hash=kept.text, **fields)
    note(world, master, identity)
    return token, identity


def note(world, master, identity):
    world.masters[master].role.note_identity(identity)
    world.call_soon(world.masters[master])


def revoke(world, master, identity):
    note(world, master, structs.replace(identity, revoked=world.masters[master].role.clock))


def test_a_revocation_reaches_the_other_master_within_a_heartbeat(world):
    token, identity = noted(world, 0)
    heartbeat = world.timing.heartbeat
    world.until(world.now + heartbeat)
    assert token_at(world, 1, token) == "valid"
    revoke(world, 0, identity)
    world.until(world.now + heartbeat)
    assert [token_at(world, master, token) for master in (0, 1)] == ["revoked", "revoked"]
    note(world, 1, identity)  # which is what another says that has not heard of it
    world.until(world.now + 2 * heartbeat)
    assert [token_at(world, master, token) for master in (0, 1)] == ["revoked", "revoked"]


def test_a_revocation_holds_after_restarts_of_all(world):
    token, identity = noted(world, 0)
    world.until(world.now + 2.0)
    world.kill(world.masters[1])
    revoke(world, 0, identity)
    world.until(world.now + 2.0)
    for process in (world.masters[0], *world.locals):
        world.kill(process)
    world.start(world.masters[1])
    world.until(world.now + 1.0)
    assert token_at(world, 1, token) == "valid"  # nobody is there who could have told it
    for process in (world.masters[0], *world.locals):
        world.start(process)
    world.until(world.now + 5.0)
    assert [token_at(world, master, token) for master in (0, 1)] == ["revoked", "revoked"]


def test_tokens_that_are_over_leave_all_masters_and_their_disks(world):
    over, identity = noted(world, 0, expires=FIRST_CLOCK - KEPT_S + 1800.0)
    stays, _ = noted(world, 0)
    world.until(world.now + 5.0)
    assert [token_at(world, master, over) for master in (0, 1)] == ["expired"] * 2
    world.until(world.now + PRUNE_S + 1800.0)
    for process in (*world.masters, *world.locals):
        assert len(process.role.facts.of_kind(IDENTITY)) == 1
    assert [token_at(world, master, over) for master in (0, 1)] == ["unknown"] * 2
    assert [token_at(world, master, stays) for master in (0, 1)] == ["valid"] * 2
    assert [len(process.disk["identity"]) for process in world.masters] == [1, 1]
    note(world, 1, identity)  # which is what another says that has not forgotten it yet
    world.until(world.now + 5.0)
    assert [token_at(world, master, over) for master in (0, 1)] == ["unknown"] * 2
    assert [len(process.disk["identity"]) for process in world.masters] == [1, 1]


def test_many_tokens_are_handed_on_together(world):
    local = world.locals[0].role
    before = local.links[GLOBAL_MASTER, 1].outgoing.number
    for number in range(1_000):
        world.masters[0].role.note_identity(Identity(f"t{number}", "ada", "reader", hash=f"sha256:{number:015x}"))
    world.call_soon(world.masters[0])
    world.until(world.now + 2.0)
    assert len(world.masters[1].role.people.of_hash) == 1_000
    assert local.links[GLOBAL_MASTER, 1].outgoing.number - before < 50


def test_a_revocation_that_others_do_not_hear_of_yet_is_said():
    service = RealService()
    service.file = structs.replace(service.file, global_master=(
        *service.file.global_master, GlobalMasterEntry("g1", "127.0.0.1:2")))

    async def revoked():
        driving = asyncio.create_task(service.run())
        token = (await service.add_person(NewPerson(name="ada", role="reader"), "admin")).token
        assert [each.state for each in (await service.revoke("ada")).items] == ["revoked"]
        bo = (await service.add_person(NewPerson(name="bo", role="reader"), "admin")).token
        for process in service.world.locals:
            service.world.kill(process)
        service.world.until(service.world.now + 1.0)
        with pytest.raises(UnavailableError, match="tokens of bo are revoked here; other global masters are told as"):
            await service.revoke("bo")
        driving.cancel()
        return token, bo

    for token in asyncio.run(revoked()):
        assert service.people.holder(token).state(time.time()) == "revoked"


def test_processes_of_two_masters_refuse_a_revoked_token_also_after_kill_9(tmp_path):
    federation = Federation(tmp_path / "federation", 2, 1, 0)
    try:
        federation.start()
        until(lambda: all(federation.has_begun(name) for name in federation.members))
        with federation.client() as admin:
            made = admin.add_person("ada", "submitter", queues=("research",))
        asks = [ClientSettings((f"http://{http}",), made.token) for http in federation.http]

        def known(number):
            with Client(asks[number], patience_s=5.0) as ada:
                try:
                    return ada.whoami().role
                except UnauthorizedError as error:
                    return str(error)

        until(lambda: [known(0), known(1)] == ["submitter", "submitter"])
        with Client(asks[0], patience_s=5.0) as ada:
            mine = ada.submit(JOB.format(queue="research")).id
            assert [job.id for job in ada.jobs(user="ada").items] == [mine]
            with pytest.raises(ForbiddenError, match="ada is a submitter of research"):
                ada.people()
        with federation.client() as admin:
            admin.revoke("ada")
        assert "was revoked" in known(0)
        until(lambda: "was revoked" in known(1), 1.0)
        for name in ("g0", "g1"):
            federation.kill(name)
        federation.start("g0", "g1")
        until(lambda: all(federation.has_begun(name) for name in ("g0", "g1")))
        assert all("was revoked" in known(number) for number in (0, 1))
        with federation.client() as admin:
            assert admin.job(mine).user == "ada"
            assert [each.state for each in admin.people()] == ["revoked"]
    finally:
        assert federation.stop() == []
