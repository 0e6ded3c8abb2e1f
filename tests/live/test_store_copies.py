"""Damage of a store is found, whatever byte is flipped; copies are whole or not there, also of one in use."""
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from federations import until
from subak import exit_codes
from subak.errors import InputError, StoreUnfitError
from subak.live.role.base import Drop, DropRange, Put, PutLarge
from subak.live.store import checking, copying
from subak.live.store.checking import SEAL_BYTES, Log, check_log, sealed, unsealed
from subak.live.store.copying import back_up, check, restore
from subak.live.store.sqlite import FILE, MIGRATIONS, SEALED, TABLES, SqliteStore

ROWS = {table: {number: f"{table} {number} {'x' * 20 * number}".encode() for number in range(40)}
        for table in ("job", "task", "ended", "head", "machine")} | {"client": {f"k{n}": b"job" for n in range(40)}}


def filled(folder):
    """A store with rows, that is open."""
    store = SqliteStore(folder)
    for table, rows in ROWS.items():
        store.commit([Put(table, list(rows), list(rows.values()))])
    return store


def killed(folder, to):
    """A copy of the files of an open store, as a kill would leave them: with its log."""
    shutil.copytree(folder, to)
    return to


def flip(path, place, mask=0xFF):
    data = bytearray(path.read_bytes())
    data[place] ^= mask
    path.write_bytes(data)


def test_a_body_is_that_of_its_key():
    assert unsealed("job", 7, sealed(7, b"body")) == b"body"
    assert unsealed("client", "k", sealed("k", b"")) == b""
    for key, data in ((8, sealed(7, b"body")), (7, sealed(7, b"body")[1:]), (7, b""), (7, b"abc"),
                      (7, sealed(7, b"body") + b"\0"), (-1, sealed(7, b"body"))):
        with pytest.raises(StoreUnfitError, match=f"row {key} of table job is not as it was written"):
            unsealed("job", key, data)


def test_every_way_to_write_a_row_seals_it(tmp_path):
    store = SqliteStore(tmp_path)
    store.commit([Put("job", [1, 2, 3], [b"one", b"two", b"3"]), PutLarge("ended", 4, lambda: b"large"),
                  Drop("job", [1]), DropRange("job", 3, 4)])
    assert store.load(without=())["job"] == {2: b"two"}
    assert store.bodies("ended", [4, 5]) == {4: b"large"}
    assert check(tmp_path) == 2


@pytest.mark.parametrize("seed", range(4))
def test_no_flipped_byte_gives_a_row_that_was_not_written(tmp_path, seed):
    """It is found when the store is opened, or read; or it is where nothing is."""
    drawn = random.Random(seed)
    filled(tmp_path / "store").close()
    size, found = (tmp_path / "store" / FILE).stat().st_size, 0
    for number in range(40):
        folder = shutil.copytree(tmp_path / "store", tmp_path / f"{number}")
        flip(folder / FILE, drawn.randrange(size), 1 << drawn.randrange(8))
        try:
            store = SqliteStore(folder)
            rows = {table: rows for table, rows in store.load(without=()).items() if rows}
            store.close()
        except (StoreUnfitError, InputError):
            found += 1
            continue
        assert rows == ROWS
    assert found > 10


def test_a_flipped_byte_of_a_body_is_found_when_the_store_is_opened_and_by_a_check(tmp_path):
    filled(tmp_path).close()
    place = (tmp_path / FILE).read_bytes().index(b"task 39 ")
    flip(tmp_path / FILE, place, 1)
    words = "damaged: row 39 of table task is not as it was written; put a copy back, or let the store of another begin"
    with pytest.raises(StoreUnfitError, match=words):
        SqliteStore(tmp_path).load()
    with pytest.raises(StoreUnfitError, match=words):
        check(tmp_path)


def test_a_job_that_has_ended_is_compared_when_somebody_asks_for_it(tmp_path):
    filled(tmp_path).close()
    flip(tmp_path / FILE, (tmp_path / FILE).read_bytes().index(b"ended 39 "), 1)
    store = SqliteStore(tmp_path)
    assert store.load()["ended"][39] == b""
    with pytest.raises(StoreUnfitError, match="row 39 of table ended"):
        store.bodies("ended", [38, 39])


def test_a_log_that_is_whole_or_whose_last_commit_was_cut_short_is_taken(tmp_path):
    store = filled(tmp_path / "store")
    whole = killed(tmp_path / "store", tmp_path / "whole")
    commits = check_log(whole / FILE).whole
    assert commits >= len(ROWS)
    assert check(whole) == 240
    again = SqliteStore(whole)
    assert {table: rows for table, rows in again.load(without=()).items() if rows} == ROWS
    again.close()
    assert check_log(whole / FILE) == Log(0, 0)
    for cut in (1, 100, 4096 + 24):
        short = killed(tmp_path / "store", tmp_path / f"short{cut}")
        log = short / f"{FILE}-wal"
        log.write_bytes(log.read_bytes()[:-cut])
        assert check_log(short / FILE) == Log(commits - 1, 0)
        SqliteStore(short).close()
    store.close()


def test_the_log_is_read_as_sqlite_reads_it(tmp_path):
    """Where a byte is flipped, SQLite takes those commits that are said to be whole, and no other."""
    store = filled(tmp_path / "store")
    commits = check_log(tmp_path / "store" / FILE).whole
    size, drawn, seen = (tmp_path / "store" / f"{FILE}-wal").stat().st_size, random.Random(3), set()
    for number in range(30):
        folder = killed(tmp_path / "store", tmp_path / f"{number}")
        flip(folder / f"{FILE}-wal", drawn.randrange(32, size), 1 << drawn.randrange(8))
        try:
            whole = check_log(folder / FILE).whole
        except StoreUnfitError as error:
            whole = int(re.search(r"behind commit (\d+)", str(error)).group(1))
        wire = sqlite3.connect(folder / FILE)
        tables = {name for name, in wire.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        has_rows = [table for table in ROWS if table in tables and wire.execute(f"SELECT key FROM {table}").fetchone()]
        wire.close()
        assert len(has_rows) == max(0, whole - (commits - len(ROWS)))
        seen.add(whole)
    assert len(seen) > 4
    store.close()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_a_log_that_is_damaged_ahead_of_commits_is_refused_again_and_again(tmp_path, share):
    """What is there is left as it is: a second start, and a check, find the same."""
    store = filled(tmp_path / "store")
    folder = killed(tmp_path / "store", tmp_path / "killed")
    store.close()
    log = folder / f"{FILE}-wal"
    page = 4096 + 24
    flip(log, 32 + int(share * (log.stat().st_size // page - 2)) * page + 24 + 5)
    for look in (SqliteStore, check, SqliteStore, lambda folder: back_up(folder, tmp_path / "copy")):
        with pytest.raises(StoreUnfitError, match=r"its write-ahead log is damaged behind commit \d+ of \d+"):
            look(folder)


def test_a_log_whose_head_is_damaged_is_refused(tmp_path):
    store = filled(tmp_path / "store")
    for place in range(0, 32, 3):
        folder = killed(tmp_path / "store", tmp_path / f"{place}")
        flip(folder / f"{FILE}-wal", place)
        with pytest.raises(StoreUnfitError, match="the head of its write-ahead log is not as it was written"):
            SqliteStore(folder)
    store.close()


def test_a_file_that_is_no_store_or_of_which_pages_are_damaged_is_one_line(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database " * 1000)
    with pytest.raises(StoreUnfitError, match="damaged: file is not a database"):
        SqliteStore(tmp_path)
    filled(tmp_path / "store").close()
    path = tmp_path / "store" / FILE
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StoreUnfitError, match="damaged: "):
        SqliteStore(tmp_path / "store").load()


def former(folder):
    """A store of the version that had no checksums yet, with two rows."""
    folder.mkdir(exist_ok=True)
    wire = sqlite3.connect(folder / FILE)
    for statements in MIGRATIONS[: SEALED - 1]:
        for statement in statements:
            wire.execute(statement)
    wire.execute(f"PRAGMA user_version = {SEALED - 1}")
    wire.execute("INSERT INTO job VALUES (3, x'616263')")
    wire.execute("INSERT INTO client VALUES ('k', x'')")
    wire.commit()
    wire.close()
    return folder


def test_a_store_of_a_former_version_is_sealed_when_it_is_opened(tmp_path):
    store = SqliteStore(former(tmp_path))
    found = store.load()
    assert (found["job"], found["client"]) == ({3: b"abc"}, {"k": b""})
    store.close()
    assert check(tmp_path) == 2
    assert SEAL_BYTES == 4


def test_a_store_of_a_former_version_is_copied_as_it_is_and_only_its_pages_are_compared(tmp_path, run):
    former(tmp_path / "data")
    code, out, _ = run("store", "check", tmp_path / "data")
    assert (code, out) == (0, f"{tmp_path}/data: all pages are whole; its rows have no checksums before a master of "
                              "this version has opened it\n")
    back_up(tmp_path / "data", tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "new")
    assert SqliteStore(tmp_path / "new").load()["job"] == {3: b"abc"}


@pytest.mark.parametrize("change", [
    "UPDATE task SET body = 'text' WHERE key = 7",
    "UPDATE task SET body = 3 WHERE key = 7",
    "UPDATE client SET key = x'00' WHERE key = 'k7'",
    "DROP TABLE task",
    "ALTER TABLE task RENAME COLUMN body TO bodx",
    *(f"PRAGMA user_version = {version}" for version in range(len(MIGRATIONS))),
])
def test_what_damage_makes_of_types_tables_and_the_version_is_one_line(tmp_path, change, run):
    filled(tmp_path / "data").close()
    wire = sqlite3.connect(tmp_path / "data" / FILE)
    wire.execute(change)
    wire.commit()
    wire.close()
    with pytest.raises(StoreUnfitError, match="damaged: "):
        SqliteStore(tmp_path / "data").load()
    if "version" not in change:
        code, _, err = run("store", "check", tmp_path / "data")
        assert (code, err.count("\n")) == (exit_codes.STORE_UNFIT, 1)


def test_a_commit_that_finds_a_damaged_page_is_one_line_and_not_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "PAGES_QUICK_BYTES", 0)
    store = SqliteStore(tmp_path)
    store.commit([Put("job", list(range(2000)), [b"x" * 100] * 2000)])
    store.close()
    data = bytearray((tmp_path / FILE).read_bytes())
    data[-20 * 4096:] = b"\xff" * (20 * 4096)
    (tmp_path / FILE).write_bytes(data)
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreUnfitError, match=f"{FILE}: damaged: "):
        store.commit([Put("head", [1], [b""]), Put("job", list(range(2000)), [b"y" * 100] * 2000)])
    assert store.bodies("head", [1]) == {}


def test_a_damaged_store_ends_its_process_with_exit_code_seven(tmp_path, run):
    filled(tmp_path / "data").close()
    flip(tmp_path / "data" / FILE, (tmp_path / "data" / FILE).read_bytes().index(b"machine 39 "), 1)
    code, out, err = run("store", "check", tmp_path / "data")
    assert (code, out, err.count("\n")) == (exit_codes.STORE_UNFIT, "", 1)
    assert "row 39 of table machine is not as it was written" in err
    assert "see docs/stores.md" in err


# -- copies ------------------------------------------------------------------------------------------------------------


def test_a_copy_has_all_and_is_put_back_where_the_store_is_gone(tmp_path, run):
    store = filled(tmp_path / "data")
    (tmp_path / "data" / "people.hash").write_text("kept")
    code, out, _ = run("store", "backup", tmp_path / "data", tmp_path / "copy")
    assert (code, out) == (0, f"{tmp_path}/copy: 240 rows, all as they were written\n")
    code, _, err = run("store", "backup", tmp_path / "data", tmp_path / "copy")
    assert code == 2
    assert "is there already" in err
    code, _, err = run("store", "restore", tmp_path / "copy", tmp_path / "data")
    assert code == 2
    assert "another process uses this folder" in err
    store.close()
    code, _, err = run("store", "restore", tmp_path / "copy", tmp_path / "data")
    assert code == 2
    assert "has a store (state.sqlite); move it away" in err
    shutil.move(tmp_path / "data", tmp_path / "away")
    code, out, _ = run("store", "restore", tmp_path / "copy", tmp_path / "data")
    assert (code, out) == (0, f"{tmp_path}/data: 240 rows, all as they were written; start its master\n")
    assert {table: rows for table, rows in SqliteStore(tmp_path / "data").load(without=()).items() if rows} == ROWS
    assert (tmp_path / "data" / "people.hash").read_text() == "kept"
    assert run("store", "check", tmp_path / "copy")[:2] == (0, f"{tmp_path}/copy: 240 rows, all as they were written\n")


def test_what_is_no_store_is_one_line(tmp_path, run):
    for words in (("check", tmp_path), ("backup", tmp_path, tmp_path / "x"), ("restore", tmp_path, tmp_path / "x")):
        code, _, err = run("store", *words)
        assert (code, err.count("\n")) == (2, 1)
        assert "there is no store of a master (state.sqlite)" in err
        assert not (tmp_path / "x").exists()


def test_a_damaged_copy_is_not_put_back_and_a_damaged_store_not_copied(tmp_path):
    filled(tmp_path / "data").close()
    back_up(tmp_path / "data", tmp_path / "copy")
    for folder in ("data", "copy"):
        flip(tmp_path / folder / FILE, (tmp_path / folder / FILE).read_bytes().index(b"task 39 "), 1)
    with pytest.raises(StoreUnfitError):
        restore(tmp_path / "copy", tmp_path / "new")
    assert not (tmp_path / "new" / FILE).exists()
    with pytest.raises(StoreUnfitError):
        back_up(tmp_path / "data", tmp_path / "another")
    assert not (tmp_path / "another").exists()


def test_the_log_of_a_store_that_was_deleted_is_not_taken_for_that_of_the_copy(tmp_path):
    filled(tmp_path / "data").close()
    back_up(tmp_path / "data", tmp_path / "copy")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / f"{FILE}-wal").write_bytes(b"of another")
    with pytest.raises(InputError, match=rf"has a store \({FILE}-wal\)"):
        restore(tmp_path / "copy", tmp_path / "new")


def test_a_store_is_copied_while_commits_go_on_as_it_was_at_one_moment(tmp_path, monkeypatch):
    """Each commit writes the same number into all rows: a copy that mixes two has two of them."""
    monkeypatch.setattr(copying, "PAGES", 1)
    store, over, keys = SqliteStore(tmp_path / "data"), threading.Event(), list(range(500))

    def write():
        count = 0
        while not over.is_set():
            count += 1
            store.commit([Put("job", keys, [b"%06d" % count * 20] * len(keys)), Put("head", [count], [b""])])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until(lambda: store.body("head", 3) is not None)
        for number in range(3):
            back_up(tmp_path / "data", tmp_path / f"copy{number}")
    finally:
        over.set()
        writer.join()
    for number in range(3):
        found = SqliteStore(tmp_path / f"copy{number}").load()
        assert len(set(found["job"].values())) == 1
        assert max(found["head"]) == int(next(iter(found["job"].values()))[:6])
    store.close()


WRITER = """
import sys
from pathlib import Path
from subak.live.role.base import Put
from subak.live.store.sqlite import SqliteStore
store, keys, count = SqliteStore(Path(sys.argv[1])), list(range(1200)), 0
while True:
    count += 1
    store.commit([Put("job", keys, [b"%06d" % count * 2000] * len(keys))])
    print(count, flush=True)
"""


def test_a_copy_ends_though_another_process_commits_without_a_pause(tmp_path):
    """The store is larger than what is copied at once: commits come between two parts of a copy."""
    path = os.pathsep.join(sys.path)
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "data"], stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": path}) as writer:
        try:
            writer.stdout.readline()
            back_up(tmp_path / "data", tmp_path / "copy")
            seen = int(writer.stdout.readline())  # it went on
        finally:
            writer.kill()
    assert (tmp_path / "copy" / FILE).stat().st_size > copying.PAGES * 4096
    found = SqliteStore(tmp_path / "copy").load()["job"]
    assert len(found) == 1200
    assert len(set(found.values())) == 1
    assert seen >= 1


@pytest.mark.parametrize("what", ["backup", "restore"])
def test_a_copy_that_is_killed_is_not_there_and_the_next_one_is(tmp_path, what):
    filled(tmp_path / "data").close()
    back_up(tmp_path / "data", tmp_path / "copy")
    source, to = ("data", "new") if what == "backup" else ("copy", "new")
    do = "back_up" if what == "backup" else "restore"
    script = (f"import os, signal\nfrom pathlib import Path\nfrom subak.live.store import copying\n"
              f"copying._sync = lambda path: os.kill(os.getpid(), signal.SIGKILL)\n"
              f"copying.{do}(Path({str(tmp_path / source)!r}), Path({str(tmp_path / to)!r}))")
    done = subprocess.run([sys.executable, "-c", script], check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / to / FILE).exists()
    getattr(copying, do)(tmp_path / source, tmp_path / to)
    assert check(tmp_path / to) == sum(map(len, ROWS.values()))


def test_tables_of_a_check_are_all_there_are(tmp_path):
    store = SqliteStore(tmp_path)
    there = {name for name, in store.wire.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert there == set(TABLES)
    assert checking.PAGES_QUICK_BYTES >= 1 << 20
