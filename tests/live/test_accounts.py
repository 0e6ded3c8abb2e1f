"""As whom a task runs: the account that its job names, its worker's rule, and never root on request."""
import os
import pwd

import pytest

from live_federation import Federation
from subak.errors import InputError
from subak.live.agent.attempts.attempt import AttemptToRun, Fence, Key
from subak.live.process.worker import account_of
from subak.live.role.worker.worker_role import Start

NOBODY = pwd.getpwnam("nobody").pw_uid
DAEMON = pwd.getpwnam("daemon").pw_uid


def start(user="", submitter="ada"):
    return Start(AttemptToRun(Key(1, 1), Fence(0, 0, 0), ("true",), "job", "queue"), user, submitter)


@pytest.mark.parametrize(("given", "run_as", "uid"), [
    (start(), "", None),
    (start("daemon"), "", DAEMON),
    (start(str(DAEMON)), "submitter", DAEMON),
    (start(submitter="daemon"), "submitter", NOBODY),  # the system's own, not a person's
    (start(submitter="ada"), "submitter", NOBODY),  # no account of this name
    (start(submitter=""), "submitter", NOBODY),
    (start(submitter="root"), "submitter", NOBODY),
    (start(submitter="daemon"), "nobody", NOBODY)])
def test_under_root_the_job_says_it_or_the_workers_file(given, run_as, uid):
    found = account_of(given, run_as, False, 0)
    assert (found and found.uid) == uid


@pytest.mark.parametrize("user", ["root", "0", "00"])
@pytest.mark.parametrize("run_as", ["", "submitter", "nobody"])
def test_no_task_runs_as_root_unless_the_workers_file_says_so(user, run_as):
    with pytest.raises(InputError, match=f"user: {user}: no task runs as root on this machine, unless"):
        account_of(start(user), run_as, False, 0)
    assert account_of(start(user), run_as, True, 0).uid == 0


def test_a_worker_that_is_not_root_runs_tasks_as_itself():
    assert account_of(start(), "submitter", False, NOBODY) is None
    assert account_of(start("nobody"), "", False, NOBODY) is None
    with pytest.raises(InputError, match="is not root, so tasks run as its own"):
        account_of(start("daemon"), "", False, NOBODY)


def test_an_account_that_there_is_not_is_named():
    with pytest.raises(InputError, match="there is none called 'no-such-user'"):
        account_of(start("no-such-user"), "submitter", False, 0)
    with pytest.raises(InputError, match="there is none called 'no-such-user'"):
        account_of(start(), "no-such-user", False, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes others")
def test_tasks_cannot_read_what_belongs_to_the_federation(tmp_path):
    tmp_path.chmod(0o711)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o711)
    federation = Federation(tmp_path / "f", masters=1, clusters=1, workers=1, standby=False, tls=True)
    file = federation.members["w0"].file
    file.write_text('run_as = "submitter"\n' + file.read_text())
    federation.start()
    try:
        federation.wait_ready()
        with federation.client() as client:
            text = ("metadata: {name: j}\nqueue: research\ncommand: [sh, -c, %r]\n"
                    "resources: {cpu: 100m, memory: 10Mi}\n")
            secrets = " ".join(str(federation.folder / name) for name in (
                "people.token", "w0.key", "g0.key", "ca/ca.key", "data/g0", "data/w0/identity.name"))
            found = client.submit((text % f"id -un; cat {secrets}; ls {federation.folder}/data/g0").encode())
            assert client.wait(found.id, timeout_s=30).outcome == "failed"
            printed = b"".join(chunk.data for chunk in client.follow(f"{found.id}.0"))
            assert printed.splitlines()[0] == b"nobody"
            assert b"subak-people" not in printed and b"PRIVATE" not in printed
            refused = client.submit((text % "id").encode() + b"user: root\n")
            assert client.wait(refused.id, timeout_s=30).outcome == "failed"
            assert "no task runs as root" in federation.log("w0")
    finally:
        assert federation.stop() == []
