"""What is written appears whole or not at all, in a place that was checked before anything was computed."""
import os
import stat
import tempfile
from pathlib import Path

import pytest

from checkout import skip_where_closed
from kill_nine import ended, fork, kill_at, set_aside, steps_of
from subak.errors import InputError
from subak.output import workplaces, writing
from subak.output.places import refuse_file, refuse_folder
from subak.output.workplaces import NEW, OLD, PARTIAL, clear, is_folder, recover, workplace
from subak.output.writing import new_folder, scratch_folder, write_file
from subak.tables import scan_table

NAMES = ["a b", "~", "-x", "W[1]", "*", "ünï😀", "new\nline", "\u2028", "[bold]", "x" * 200]


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(call, said):
    with pytest.raises(InputError) as error:
        call()
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def filled(folder, text="old"):
    """Make a folder as `write` does."""
    (folder / "deep").mkdir(parents=True)
    (folder / "marker").write_text(text)
    (folder / "deep" / "file").write_text(text)
    return folder


def held(folder):
    """Return the one text that all files of a folder made by `filled` or `write` hold."""
    texts = {(folder / name).read_text() for name in ("marker", "deep/file")}
    assert len(texts) == 1
    return texts.pop()


def write(folder, text="new", overwrite=True):
    with new_folder(folder, "marker", overwrite) as partial:
        (partial / "marker").write_text(text)
        (partial / "deep").mkdir()
        (partial / "deep" / "file").write_text(text)


# -- places ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in tmp_path/above/here, beside a workload folder and what links to it."""
    here = tmp_path / "above" / "here"
    filled(here / "inputs" / "W")
    (tmp_path / "link").symlink_to(here / "inputs" / "W")
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", [".", "..", "/", "../..", "inputs/..", "../here", "../../above"])
def test_the_working_directory_and_what_is_above_it_are_refused(here, name, overwrite):
    refused(lambda: refuse_folder(Path(name), "marker", overwrite), "is or holds the working directory")


@pytest.mark.parametrize("source", ["inputs/W", "inputs/W/marker", "../../link", "inputs/../inputs/W"])
@pytest.mark.parametrize("name", ["inputs/W", "inputs", "inputs/../inputs"])
def test_what_is_read_and_what_is_above_it_are_refused(here, name, source):
    refused(lambda: refuse_folder(Path(name), "marker", True, [Path(source)]), "which is read; it is not replaced")
    refuse_folder(Path("other"), "marker", True, [Path(source)])
    refuse_folder(Path("inputs/W/R"), "marker", True, [Path(source)])


def test_mount_points_are_refused(tmp_path, monkeypatch):
    refused(lambda: refuse_folder(Path("/proc"), "marker", True), "is a mount point")
    monkeypatch.setattr("os.path.ismount", lambda path: False)  # which sees none within one file system
    refused(lambda: refuse_folder(Path("/proc"), "marker", True), "is a mount point")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", ["empty", "full", "nothing", "itself", "file"])
def test_links_are_refused(tmp_path, kind, overwrite):
    (tmp_path / "empty").mkdir()
    filled(tmp_path / "full")
    (tmp_path / "file").write_text("text")
    link = tmp_path / "itself"
    link.symlink_to(tmp_path / kind)
    refused(lambda: refuse_folder(link, "marker", overwrite), "is a link, to ")
    refused(lambda: refuse_file(link), "is a link, to ")
    refuse_folder(tmp_path / "full" / "R", "marker", overwrite)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 240, "ü" * 150, "x" * 300 + "/R", "/".join(["x" * 200] * 30)])
def test_names_that_are_too_long_are_refused(tmp_path, name):
    for refuse in (lambda path: refuse_folder(path, "marker", True), refuse_file):
        with pytest.raises(InputError, match=r"could not be written: .* bytes is too long") as error:
            refuse(tmp_path / name)
        assert len(str(error.value)) < 300


def test_a_parent_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("text")
    for path in (tmp_path / "file" / "R", tmp_path / "file" / "deep" / "R"):
        refused(lambda path=path: refuse_folder(path, "marker", True), "could not be written: ")
        refused(lambda path=path: refuse_file(path), "file is not a folder")


def as_nobody(call):
    """Call in a child process that is no superuser; return what it raised."""
    if os.geteuid() == 0:
        skip_where_closed()
    reading, answer = os.pipe()

    def work():
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            call()
        except InputError as error:
            os.write(answer, str(error).encode())

    assert ended(fork(work)) == 0
    os.close(answer)
    with os.fdopen(reading) as said:
        return said.read()


def test_a_parent_in_which_nothing_may_be_made_is_refused():
    with tempfile.TemporaryDirectory() as home:  # one that others may enter, unlike pytest's
        parent = Path(home) / "parent"
        filled(parent / "R")
        Path(home).chmod(0o755)
        parent.chmod(0o555)
        for path in (parent / "R", parent / "new", parent / "deep" / "new"):
            assert f"nothing may be made in {parent}" in as_nobody(lambda path=path: write(path))
        for path in (parent / "new", parent / "deep" / "new"):
            assert f"nothing may be made in {parent}" in as_nobody(lambda path=path: write_file(path, b"text"))
        parent.chmod(0o777)
        if os.geteuid() == 0:
            assert "what it holds may not be removed" in as_nobody(lambda: write(parent / "R"))
        assert listing(parent) == ["R", "R/deep", "R/deep/file", "R/marker"]


def test_names_that_are_no_text_are_refused(tmp_path):
    refused(lambda: refuse_folder(tmp_path / "a\0b", "marker", True), "no null character")
    refused(lambda: refuse_folder(tmp_path / "R", "marker", True, [Path("a\0b")]), "could not be written: ")
    refused(lambda: refuse_file(tmp_path / "a\0b"), "no null character")
    name = os.fsdecode(b"W\xe9")
    for call in (lambda: refuse_folder(tmp_path / name, "marker", True), lambda: refuse_file(tmp_path / name / "F"),
                 lambda: scan_table(tmp_path / name / "tasks.parquet")):
        refused(call, "a name must be text in UTF-8")


def test_files_are_not_written_over_folders_and_devices(tmp_path):
    refused(lambda: refuse_file(tmp_path), "is a folder")
    refused(lambda: refuse_file(Path("/")), "is a folder")
    os.mkfifo(tmp_path / "pipe")
    refused(lambda: refuse_file(tmp_path / "pipe"), "exists and is no file")


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["exchanged", "set aside"])
def patch(request, monkeypatch):
    """Run with and without the exchange of two names; return what a child does first."""
    if request.param:
        monkeypatch.setattr(writing, "_exchanged", lambda one, other: False)
        return set_aside
    return lambda: None


@pytest.mark.parametrize("name", NAMES)
def test_any_name_will_do(tmp_path, monkeypatch, patch, name):
    monkeypatch.chdir(tmp_path)
    write(Path(name), "old", overwrite=False)
    write(Path(name), "new")
    assert held(tmp_path / name) == "new"
    write_file(Path(name) / name, b"text")
    assert (tmp_path / name / name).read_text() == "text"
    assert not [path for path in tmp_path.rglob("*") if PARTIAL.fullmatch(path.name)]


def test_a_kill_at_any_step_leaves_the_old_folder_or_the_new(tmp_path, patch):
    place = tmp_path / "out" / "R"

    def work():
        write(place)

    filled(place)
    steps, seen = steps_of(work, place.parent, patch), []
    write(place, "old")
    for step in range(steps):
        kill_at(work, place.parent, step, patch)
        recover(place)
        seen.append(held(place))
        write(tmp_path / "out" / "other")
        assert listing(place.parent) == [f"{name}{path}" for name in ("R", "other")
                                         for path in ("", "/deep", "/deep/file", "/marker")], step
        write(place, "old")
    assert seen == sorted(seen, reverse=True)  # the old one, until it is the new one
    assert {"old", "new"} <= set(seen)


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new(tmp_path):
    place = tmp_path / "out" / "F"

    def work():
        write_file(place, b"new")

    write_file(place, b"old")
    seen = []
    for step in range(steps_of(work, place.parent, closely=True)):
        write_file(place, b"old")
        assert listing(place.parent) == ["F"], step
        kill_at(work, place.parent, step, closely=True)
        seen.append(place.read_text())
    assert seen == sorted(seen, reverse=True)
    assert {"old", "new"} == set(seen)


def test_what_was_set_aside_comes_back_when_it_is_looked_for(tmp_path):
    looks = (is_folder, recover, lambda path: recover(path / "deep"), lambda path: refuse_folder(path, "marker", True))
    for number, look in enumerate(looks):
        place = filled(tmp_path / str(number) / "R")

        def die_between(place=place):
            with workplace(place) as found:
                filled(found / NEW, "new")
                place.rename(found / OLD)
                os.kill(os.getpid(), 9)

        assert ended(fork(die_between)) == -9
        assert not place.exists()
        look(place)
        assert held(place) == "old"
        assert listing(place.parent) == ["R", "R/deep", "R/deep/file", "R/marker"]


def test_a_signal_between_the_renames_puts_the_old_folder_back(tmp_path, monkeypatch):
    place, rename = filled(tmp_path / "R"), Path.rename

    def interrupted(self, target):
        if self.name == NEW and not place.exists():
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(writing, "_exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(place)
    assert held(place) == "old"
    assert listing(tmp_path) == ["R", "R/deep", "R/deep/file", "R/marker"]


def test_only_dead_writers_are_cleared_whatever_their_number(tmp_path):
    theirs = [f".R.partial-{os.getpid()}", ".thesis.partial-1", ".R.partial", "R.partial-0123456789ab"]
    for name in theirs:
        filled(tmp_path / name)
    with workplace(tmp_path / "R") as alive:
        filled(alive / NEW)
        assert clear(tmp_path) == {"R"}
        assert held(alive / NEW) == "old"
        refused(lambda: write(tmp_path / "R"), "another process is writing it")
        write(tmp_path / "other")

    def die():
        with workplace(tmp_path / "R") as found:
            filled(found / NEW)
            os.kill(os.getpid(), 9)

    assert ended(fork(die)) == -9
    write(tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*theirs, "other"])


@pytest.mark.parametrize("before", ["owner", "lock"])
def test_what_is_cleared_before_it_is_locked_is_made_again(tmp_path, monkeypatch, before):
    def cleared_once(function):
        def call(*arguments):
            if not cleared:
                cleared.append(True)
                clear(tmp_path)
            return function(*arguments)
        return call

    module, name = (workplaces.os, "open") if before == "owner" else (workplaces.fcntl, "flock")
    for call in (lambda: write(tmp_path / "R"), lambda: write_file(tmp_path / "F", b"new")):
        cleared = []
        with monkeypatch.context() as patched:
            patched.setattr(module, name, cleared_once(getattr(module, name)))
            call()
        assert cleared
    assert (held(tmp_path / "R"), (tmp_path / "F").read_text()) == ("new", "new")
    assert listing(tmp_path) == ["F", "R", "R/deep", "R/deep/file", "R/marker"]


def test_what_comes_into_the_place_meanwhile_is_not_lost(tmp_path):
    for overwrite, name in ((False, "marker"), (True, "thesis.tex")):
        place = tmp_path / str(overwrite)
        with pytest.raises(InputError, match="exists"), new_folder(place, "marker", overwrite) as partial:
            (partial / "marker").write_text("new")
            place.mkdir()
            (place / name).write_text("theirs")
        assert listing(place) == [name]


def test_folders_made_above_go_again_when_nothing_comes_of_it(tmp_path):
    with pytest.raises(ValueError, match="mine"), new_folder(tmp_path / "a" / "b" / "R", "marker"):
        raise ValueError("mine")
    assert listing(tmp_path) == []


def test_scratch_goes_with_its_writer_or_with_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def die():
        with scratch_folder() as folder:
            filled(folder / "run")
            os.kill(os.getpid(), 9)

    assert ended(fork(die)) == -9
    assert len(list(tmp_path.iterdir())) == 1
    with scratch_folder() as folder:
        assert listing(folder) == []
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
        assert len(list(tmp_path.iterdir())) == 1
    assert listing(tmp_path) == []


def test_everything_is_on_the_disk_before_it_is_in_its_place(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda number: flushed.append(Path(f"/proc/self/fd/{number}").readlink()))
    exchanged = writing._exchanged
    monkeypatch.setattr(writing, "_exchanged", lambda *names: flushed.append("exchanged") or exchanged(*names))
    write(filled(tmp_path / "R"))
    before = [path.name for path in flushed[:flushed.index("exchanged")]]
    assert before == ["file", "deep", "marker", NEW]
    assert flushed[-1] == tmp_path
    flushed.clear()
    write_file(tmp_path / "F", b"text")
    assert [PARTIAL.fullmatch(path.name) is not None for path in flushed] == [True, False]
