"""Defects that no test had noticed, planted again one by one: the test named for each must fail with it.

    python tests/support/planted_defects.py               all of them
    python tests/support/planted_defects.py cordon        those whose name has this in it

Each is planted in a copy of the package, in a folder that is removed; without it, the same test must pass there.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from checkout import ROOT, file_of

LIVE = "src/subak/live"


class Defect(NamedTuple):
    """What stands in a file once, what is put in its place, and the test that must fail."""

    name: str
    file: str
    before: str
    after: str
    test: str


DEFECTS = (
    Defect("a cordon is lost when its worker joins again", f"{LIVE}/role/local_role.py",
           "before is not None and before.cordoned, version", "False, version",
           "test_live_guards.py::test_a_cordon_holds_when_the_worker_joins_again"),
    Defect("a worker speaks for another machine", f"{LIVE}/role/local_role.py",
           "kind not in SPOKEN[WORKER] or machine == sender", "True",
           "test_live_guards.py::test_a_worker_speaks_for_no_other_machine"),
    Defect("a stale lease renews the agent's", f"{LIVE}/role/worker/worker_role.py",
           'if LEASE in kinds and self.now - self.me["heard"] <= self.timing.fresh:', "if LEASE in kinds:",
           "test_live_guards.py::test_an_old_answer_to_a_sign_of_life_is_no_life_for_the_agent"),
    Defect("an end that was reached while halting is thrown away", f"{LIVE}/role/worker/worker_role.py",
           '                row["reason"] = FINISHED_WELL\n', "                pass\n",
           "test_live_guards.py::test_an_end_that_was_reached_while_it_was_halted_counts"),
    Defect("a key outlives its job", f"{LIVE}/role/global_master/global_role.py",
           "            self.kept.pop(client, None)\n", "",
           "test_live_history.py::test_with_a_job_its_key_is_forgotten_and_both_leave_the_disk"),
    Defect("a queue's filter matches the beginning of a name", f"{LIVE}/service/service.py",
           'f"{queue}/".startswith(f"{wanted.queue}/")', "queue.startswith(wanted.queue)",
           "test_service_contract.py::test_jobs_are_found_by_queue_and_name_and_state"),
    Defect("a page repeats the last task", f"{LIVE}/service/service.py",
           "cursor=str(index))\n                items.append(task_view(",
           "cursor=str(index - 1))\n                items.append(task_view(",
           "test_service_contract.py::test_pages_of_jobs_and_tasks_and_what_happened_name_each_once"),
)


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the package and its tests."""
    with tempfile.TemporaryDirectory(prefix="planted") as folder:
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        yield Path(folder)


def passes(folder: Path, test: str) -> bool:
    """Whether a test passes with the package of a folder."""
    file, _, name = test.partition("::")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", f"{file_of(file)}::{name}"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode not in (0, 1):  # no test was found, or none could be begun
        raise SystemExit(f"{test}: pytest ended with {ended.returncode}\n{ended.stdout}")
    return ended.returncode == 0


def is_noticed(folder: Path, defect: Defect) -> bool:
    """Whether the test of a defect fails with it."""
    path = folder / defect.file
    plain = path.read_text()
    path.write_text(planted(plain, defect))
    try:
        return not passes(folder, defect.test)
    finally:
        path.write_text(plain)


def planted(plain: str, defect: Defect) -> str:
    """Return the text of a file with a defect."""
    count = plain.count(defect.before)
    if count != 1:
        raise SystemExit(f"{defect.name}: {defect.file} has {defect.before!r} {count} times, not once")
    return plain.replace(defect.before, defect.after)


def main() -> None:
    """Plant each defect, and say which were noticed."""
    wanted = [defect for defect in DEFECTS if sys.argv[1:] == [] or sys.argv[1] in defect.name]
    with copied() as folder:
        for test in sorted({defect.test for defect in wanted}):
            if not passes(folder, test):
                raise SystemExit(f"{test} fails without any defect")
        noticed = 0
        for defect in wanted:
            found = is_noticed(folder, defect)
            noticed += found
            sys.stdout.write(f"{'noticed' if found else 'NOT NOTICED'}: {defect.name}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{noticed} of {len(wanted)} planted defects were noticed\n")
    raise SystemExit(noticed < len(wanted))


if __name__ == "__main__":
    main()
