"""Lets the store of a global master take over from a lost one (see `subak.live.role.store_claims`)."""
import secrets
from pathlib import Path

from subak.errors import InputError
from subak.live.config import FederationFile, GlobalMasterFile, read
from subak.live.role.layout import serial_of_job
from subak.live.role.store_claims import LATEST_JOB_KEY, adopt
from subak.live.store.sqlite import SqliteStore

JOBS_SHOWN = 20


def adopt_store(path: Path) -> list[str]:
    """Let the store of the global master of a file take over, and return in words what is lost.

    Raises InputError where the master runs, has no store, or its store was not refused.
    """
    file = read(path, GlobalMasterFile)
    read(path.parent / file.federation, FederationFile).number_of(file.name)
    folder = path.parent / file.data
    if not (folder / "state.sqlite").is_file():
        raise InputError(f"{folder}: there is no store; start {file.name}, which makes one")
    store = SqliteStore(folder)
    try:
        numbers = store.load(without=("ended", "task", "history"))["incarnation"]
        refusal, writes = adopt(numbers, secrets.token_hex(8))
        store.commit(writes)
    finally:
        store.close()
    latest = serial_of_job(int.from_bytes(numbers.get(LATEST_JOB_KEY, b""), "big"))
    lines = [f"the store in {folder} takes over as incarnation {refusal.incarnation + 1} of {file.name}"]
    if latest < refusal.reserved:
        what = f"what was submitted behind {file.name}-{latest}" if latest else "all jobs"
        lines.append(f"lost: {what}, up to {file.name}-{refusal.reserved}")
    if refusal.jobs:
        known = [f"{file.name}-{serial_of_job(number)}" for number in refusal.jobs]
        more = f" and {len(known) - JOBS_SHOWN} more" if len(known) > JOBS_SHOWN else ""
        lines.append(f"of those, known where they ran, and ended there: {', '.join(known[:JOBS_SHOWN])}{more}")
    lines.append(f"tasks of other jobs that run are begun anew; start {file.name} again")
    return lines
