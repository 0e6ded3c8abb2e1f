"""Commands killed with signal 9: 20 kills here, 200 and every step by hand (see kill_nine.py)."""
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "support" / "kill_nine.py"


def test_twenty_kills_leave_the_old_result_or_the_new():
    # in a process of its own, without the threads of this one: it forks
    done = subprocess.run([sys.executable, SCRIPT, "--kills", "20"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("20 kills in ")
