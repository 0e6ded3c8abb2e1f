"""An agent that nobody needs any more ends by itself."""
import shutil

import pytest

from agents import Machine, alive, attempt, until
from subak.live.agent import vigil
from subak.live.agent.vigil import Vigil


@pytest.fixture
def machine():
    made = Machine("--lease", 600)
    yield made
    made.close()


def test_it_is_needed_while_its_folder_is_there_and_it_has_a_worker_or_attempts(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    watch = Vigil(folder, 100.0, 0.0)
    assert [watch.why_to_end(now, needed) for now, needed in ((99.0, False), (500.0, True), (599.0, False))] == [""] * 3
    assert watch.look_at == 599.0 + vigil.LOOK_S
    assert watch.why_to_end(600.0, False) == "no worker was connected, and nothing ran, for 100 s"
    watch.why_to_end(601.0, True)
    folder.rename(tmp_path / "elsewhere")
    assert watch.why_to_end(602.0, True) == f"its folder {folder} was removed"
    folder.mkdir()  # another one of the same name
    assert watch.why_to_end(603.0, True) == f"its folder {folder} was removed"
    folder.rmdir()
    (tmp_path / "elsewhere").rename(folder)
    assert watch.why_to_end(604.0, True) == ""


def test_an_agent_whose_worker_is_gone_ends_when_nothing_runs(machine):
    machine.up("--lease", 600, "--idle", 0.2)
    machine.client.start(attempt(1, "true"))
    assert machine.ending(1).is_good
    machine.client.close()
    assert machine.guard.wait(60) == 0
    assert "ends: no worker was connected, and nothing ran, for 0.2 s" in machine.guard.stderr.read()
    assert [known.ending.code for known in machine.up(incarnation=2).list()] == [0]  # the next one has its journal


def test_an_agent_whose_folder_was_removed_ends_what_runs(machine):
    machine.up()
    machine.client.start(attempt(1, "sleep", "600"))
    pid = machine.begun(1)
    shutil.rmtree(machine.state)
    assert machine.guard.wait(60) == 0
    until(lambda: not alive(pid))
    machine.state.mkdir()
