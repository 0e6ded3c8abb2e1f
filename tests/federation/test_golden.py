"""The golden scripts cause the messages that stand below them; `pytest --rewrite-golden` writes them again."""
from pathlib import Path

import pytest

from golden_script import trace

SCRIPTS = sorted((Path(__file__).parents[1] / "golden").glob("*.txt"))
DASHES = "----\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_causes_the_messages_below_it(path, request):
    script, _, expected = path.read_text(encoding="utf-8").partition(DASHES)
    caused = trace(script)
    if request.config.getoption("--rewrite-golden"):
        path.write_text(script + DASHES + caused, encoding="utf-8")
        return
    assert caused == expected


def test_there_is_a_script_for_everything_that_was_asked():
    assert {path.stem for path in SCRIPTS} >= {
        "duplicated_message", "gang", "global_master_restart", "local_master_failover", "lost_race", "preemption",
        "repartition", "worker_loss",
    }
