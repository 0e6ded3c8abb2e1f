"""Stores: what was committed is there, all of it or nothing; what was cut short is not; a folder has one process."""
import os
import sqlite3
import subprocess
import sys

import pytest

from subak.errors import InputError, StoreUnfitError
from subak.live.role.base import Drop, Put
from subak.live.store import files, sqlite
from subak.live.store.checking import StoreError
from subak.live.store.files import HALF_BYTES, FileStore
from subak.live.store.sqlite import MIGRATIONS, TABLES, SqliteStore


def test_what_was_committed_is_there_when_it_is_opened_again(tmp_path):
    store = SqliteStore(tmp_path)
    store.commit([Put("job", [1, 2], [b"one", b"two"]), Put("client", ["k"], [b"1"]), Put("ended", [9], [b"long"])])
    store.commit([Put("job", [2], [b"TWO"]), Drop("job", [1]), Put("task", [2**62], [b"t"])])
    store.close()
    again = SqliteStore(tmp_path)
    found = again.load()
    assert {table: rows for table, rows in found.items() if rows} == {
        "job": {2: b"TWO"}, "client": {"k": b"1"}, "task": {2**62: b"t"}, "ended": {9: b""}}
    assert again.body("ended", 9) == b"long"
    assert again.body("ended", 10) is None
    assert set(found) == set(TABLES)


def test_a_commit_is_whole_or_not_at_all(tmp_path):
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreUnfitError, match="no such table"):
        store.commit([Put("job", [1], [b"one"]), Put("unknown", [1], [b"two"])])
    store.commit([Put("job", [3], [b"three"])])
    assert store.load()["job"] == {3: b"three"}


def test_every_commit_is_synchronised(tmp_path):
    store = SqliteStore(tmp_path)
    assert store.wire.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store.wire.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_full_disk_is_said_and_nothing_of_the_commit_is_there(tmp_path):
    store = SqliteStore(tmp_path)
    store.wire.execute("PRAGMA max_page_count = 40")
    with pytest.raises(StoreError, match="full"):
        store.commit([Put("job", [1], [b"small"]), Put("job", [2], [bytes(1 << 20)])])
    assert store.load()["job"] == {}
    store.wire.execute("PRAGMA max_page_count = 100000")
    store.commit([Put("job", [2], [bytes(1 << 20)])])
    assert list(store.load()["job"]) == [2]


def test_tables_of_a_later_version_are_refused(tmp_path):
    SqliteStore(tmp_path).close()
    wire = sqlite3.connect(tmp_path / "state.sqlite")
    wire.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    wire.close()
    with pytest.raises(InputError, match=f"of version {len(MIGRATIONS) + 1}; this program knows up to"):
        SqliteStore(tmp_path)


@pytest.mark.parametrize("store", [SqliteStore, FileStore])
def test_a_folder_has_one_process(tmp_path, store):
    held = store(tmp_path)
    script = f"from subak.live.store.{'files' if store is FileStore else 'sqlite'} import {store.__name__} as Store\n" \
             f"from pathlib import Path\nStore(Path({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert "another process uses this folder" in done.stderr
    assert done.returncode != 0
    held.close()


# -- of a worker -------------------------------------------------------------------------------------------------------


def states(*bodies):
    return [Put("state", [0], [body]) for body in bodies]


def test_a_worker_finds_what_it_wrote_last(tmp_path):
    store = FileStore(tmp_path)
    assert store.load() == {}
    for body in (b"first", b"second, longer", b"3rd"):
        store.commit(states(body))
    store.commit([Put("identity", [0], [b"who"])])
    store.close()
    assert FileStore(tmp_path).load() == {"identity": {0: b"who"}, "state": {0: b"3rd"}}


@pytest.mark.parametrize("cut", range(0, 40, 3))
def test_a_half_that_was_cut_short_leaves_the_other(tmp_path, cut):
    store = FileStore(tmp_path)
    store.commit(states(b"before", b"behind it, and longer"))
    whole = os.pread(store.halves, 64, 0)
    os.pwrite(store.halves, whole[:cut] + b"\xff" + whole[cut + 1:], 0)  # the second is in the first half
    store.close()
    found = FileStore(tmp_path).load()["state"][0]
    assert found == (b"before" if cut < 16 + len(b"behind it, and longer") else b"behind it, and longer")


def test_what_is_written_after_a_restart_is_later(tmp_path):
    store = FileStore(tmp_path)
    store.commit(states(b"1", b"2", b"3"))
    store.close()
    store = FileStore(tmp_path)
    store.load()
    store.commit(states(b"4"))
    store.close()
    assert FileStore(tmp_path).load()["state"] == {0: b"4"}


def test_a_state_that_is_too_large_is_refused_and_the_last_one_stays(tmp_path):
    store = FileStore(tmp_path)
    store.commit(states(b"small"))
    with pytest.raises(InputError, match="attempts_each: the state of a worker takes"):
        store.commit(states(bytes(HALF_BYTES)))
    store.close()
    assert FileStore(tmp_path).load()["state"] == {0: b"small"}


def test_the_identity_is_durable_before_a_commit_returns(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(files.os, "fsync", lambda file: done.append("sync"))
    store = FileStore(tmp_path)
    store.commit([Put("identity", [0], [b"who"])])
    assert done == ["sync", "sync"]  # the file, and the folder that names it
    store.commit(states(b"state"))
    assert len(done) == 2
    assert sqlite.SqliteStore.waits
    assert not FileStore.waits
