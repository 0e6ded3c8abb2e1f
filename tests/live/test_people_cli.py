"""`subak people`, `subak whoami` and `subak list --mine`, against a master in a thread."""
import json

import pytest

from serving import Serving
from subak.live.tokens import read_token

JOB = "metadata: {name: a}\nqueue: research/ada\ncommand: [sleep]\n"


@pytest.fixture
def serving(monkeypatch, tmp_path):
    serving = Serving(stop_s=0)
    monkeypatch.setenv("SUBAK_ADDRESS", serving.addresses["g0"])
    monkeypatch.setenv("SUBAK_TOKEN", serving.token)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setattr("subak.live.client.client.PATIENCE_S", 0.0)
    yield serving
    serving.stop()


def test_a_person_from_the_first_day_to_the_last(serving, run, tmp_path, monkeypatch):
    file, script = tmp_path / "ada.token", tmp_path / "job.yaml"
    script.write_text(JOB)
    code, out, err = run("people", "add", "ada", "--role", "submitter", "--queue", "research", "--expires", "90d",
                         "--token-file", file)
    assert (code, err) == (0, "")
    assert out.startswith(f"{file}: token t")
    assert " of ada, submitter of research, until 20" in out
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("people", "add", "bo", "--role", "reader", "--token-file", file) == (
        2, "", f"subak: {file}: exists already; a token is written to a new file\n")
    assert run("submit", script)[0] == 0
    monkeypatch.setenv("SUBAK_TOKEN", read_token(file))
    assert run("submit", script)[:2] == (0, "g0-1 a submitted to research/ada: 1 task\n")
    _, out, _ = run("whoami")
    assert [line.split()[:2] for line in out.splitlines()][:3] == [
        ["ada"], ["role", "submitter"], ["queues", "research"]]
    for options in (("--mine",), ("--user", "ada")):
        assert [each["id"] for each in json.loads(run("list", *options, "-o", "json")[1])["items"]] == ["g0-1"]
    assert run("list", "--mine", "--user", "bo")[0] == 2
    code, out, err = run("cancel", "g0-0")
    assert (code, out) == (6, "")
    assert err == ("subak: ada is a submitter of research: `cancel a job` g0-0 of admin takes whoever submitted it, a "
                   "submitter of all jobs of its queue, an operator or an admin\n")
    assert run("cancel", "--mine") == (2, "", "subak: JOB|TASK: must be given, or --all\n")
    assert run("cancel", "g0-1", "--mine") == (2, "", "subak: --mine: goes with --all\n")
    assert run("people", "list")[0] == 6
    monkeypatch.setenv("SUBAK_TOKEN", serving.token)
    _, out, _ = run("people", "list")
    assert out.splitlines()[1].split()[1:5] == ["ada", "submitter", "research", "valid"]
    monkeypatch.setenv("SUBAK_TOKEN", read_token(file))
    code, out, _ = run("cancel", "--all", "--mine", "--yes")
    assert (code, "g0-1" in out, "g0-0" in out) == (0, True, False)
    monkeypatch.setenv("SUBAK_TOKEN", serving.token)
    code, out, _ = run("people", "revoke", "ada")
    assert (code, out.split()[1:]) == (0, ["of", "ada:", "revoked"])
    assert run("people", "revoke", "ada")[0] == 0
    assert run("people", "revoke", "bo")[0] == 3
    monkeypatch.setenv("SUBAK_TOKEN", read_token(file))
    code, _, err = run("list")
    assert (code, "of ada was revoked" in err, err.count("\n")) == (6, True, 1)


def test_a_token_is_printed_once(serving, run):
    code, out, err = run("people", "add", "board", "--role", "reader")
    assert code == 0
    assert out.startswith("subak-people-")
    assert out.strip() not in err + run("people", "list")[1]
    assert "of board, reader; it is not shown again" in err


@pytest.mark.parametrize(("arguments", "words"), [
    (("a b", "--role", "reader"), "NAME: must be"), (("a", "--role", "reader", "--expires", "soon"), "--expires: must"),
    (("a", "--role", "submitter"), "a submitter needs one at least"),
    (("admin", "--role", "admin"), "take another name"),
    (("a", "--role", "reader", "--expires", "-1d"), "--expires: must")])
def test_mistakes_are_a_line(serving, run, arguments, words):
    code, out, err = run("people", "add", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_the_audit_log_shows_who_did_what(serving, run, tmp_path, monkeypatch):
    script = tmp_path / "job.yaml"
    script.write_text(JOB)
    assert run("submit", script)[0] == run("cancel", "g0-0")[0] == 0
    code, out, err = run("audit", "--object", "g0-0", "--since", "1h")
    assert (code, err) == (0, "")
    assert out.count("g0-0") == 3  # two objects, and a path
    assert [(each["what"], each["code"]) for each in json.loads(run("audit", "-o", "json")[1])["items"]] == [
        ("POST /v1/jobs", 201), ("POST /v1/jobs/g0-0/cancel", 200)]
    token = run("people", "add", "bo", "--role", "operator")[1].strip()
    monkeypatch.setenv("SUBAK_TOKEN", token)
    assert run("audit")[0] == 6
