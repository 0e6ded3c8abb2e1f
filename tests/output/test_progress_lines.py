"""How far long work is, where there is no terminal: a line a minute on standard error, and nothing once it is over."""
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from subak.report import console
from subak.report.console import bars, how_far


def shown(*parts):
    progress = bars()
    for name, total, done in parts:
        progress.update(progress.add_task(name, total=total), completed=done)
    return progress.tasks


@pytest.mark.parametrize(("parts", "words"), [
    ([("Runs", 1200, 12)], "After 3 min: Runs 12 of 1,200"),
    ([("Drawing", None, 0)], "After 3 min: Drawing"),
    ([("a", 9, 9), ("b", 9, 3), ("c", 9, 5)], "After 3 min: c 5 of 9; b 3 of 9"),
    ([(f"r{number}", 9, number) for number in range(9)],
     "After 3 min: r8 8 of 9; r7 7 of 9; r6 6 of 9; r5 5 of 9; 5 more"),
    ([("a", 9, 9)], "After 3 min: all is done, and is being written"),
    ([], "After 3 min: all is done, and is being written"),
])
def test_a_line_says_what_is_furthest_of_what_is_not_done(parts, words):
    assert how_far(shown(*parts), 180.0) == words


def test_what_is_left_is_said_by_what_was_done():
    tasks = [SimpleNamespace(description="Runs", total=80, completed=20, finished=False, time_remaining=left)
             for left in (240.0, 0.0, None)]
    assert [how_far([task], 60.0) for task in tasks] == [
        "After 60 s: Runs 20 of 80, about 4 min left", *["After 60 s: Runs 20 of 80"] * 2]


def test_lines_come_while_it_lasts_and_no_more(capsys, monkeypatch):
    monkeypatch.setattr(console, "SAID_EACH_S", 0.01)
    with bars() as progress:
        part = progress.add_task("Runs", total=3)
        progress.advance(part)
        end, said = time.monotonic() + 60.0, ""
        while said.count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.01)
            said += capsys.readouterr().err
    lines = said.splitlines()
    assert len(lines) >= 2 and all(line.startswith("After ") and line.endswith(": Runs 1 of 3") for line in lines)
    time.sleep(0.05)
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_program_ends_though_nobody_took_its_bars_away():
    script = "from subak.report.console import bars\nbars().start()\n"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
