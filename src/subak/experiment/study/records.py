"""Keeps one file per run, named by the run's digest: its summary, or the reason for its failure."""
from collections.abc import Iterable
from pathlib import Path

import msgspec

from subak.measures.runs import Summary
from subak.output.writing import write_file

RUNS = "runs"  # the folder in that of a study


class Record(msgspec.Struct, frozen=True):
    """What became of a run."""

    summary: Summary | None = None
    error: str = ""


def packed(record: Record) -> bytes:
    """Return a record as it is written."""
    return msgspec.json.encode(record)


def unpacked(content: bytes) -> Record:
    """Return the record that `packed` wrote."""
    return msgspec.json.decode(content, type=Record)


def write_record(folder: Path, digest: str, content: bytes) -> None:
    """Write a record, whole, into the folder of a study."""
    write_file(_path(folder, digest), content)


def read_record(folder: Path, digest: str) -> Record | None:
    """Return what is known of a run; None where nothing is, or what is there is no record."""
    try:
        return msgspec.json.decode(_path(folder, digest).read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def drop_record(folder: Path, digest: str) -> None:
    """Have no record of a run, where there is one."""
    _path(folder, digest).unlink(missing_ok=True)


def read_records(folder: Path, digests: Iterable[str]) -> dict[str, Record]:
    """Return what is known of runs, by their digests."""
    found = {digest: read_record(folder, digest) for digest in digests}
    return {digest: record for digest, record in found.items() if record is not None}


def is_done(record: Record | None) -> bool:
    """Whether a run needs not be done again; one that failed is."""
    return record is not None and record.summary is not None


def _path(folder: Path, digest: str) -> Path:
    return folder / RUNS / f"{digest}.json"
