"""A workload through a pipe is the workload in the folder; what is no whole one is refused in a line."""
import io
import tarfile

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from subak.cli.app import app
from subak.errors import InputError, RunError
from subak.workload.piped import pack, unpack

LENGTH = ["generate", "--tasks", "3000", "--machines", "40", "--capacity", "cpu=0.5", "--capacity", "memory=0.5"]


def piped(folder):
    stream = io.BytesIO()
    pack(folder, stream)
    return stream.getvalue()


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    folder = tmp_path_factory.mktemp("piped") / "W"
    assert CliRunner().invoke(app, [*LENGTH, "--out", str(folder)]).exit_code == 0
    return folder


def test_a_pipe_carries_what_a_folder_holds(workload, tmp_path):
    made = CliRunner().invoke(app, [*LENGTH, "--out", "-"])
    assert made.exit_code == 0 and "3,000 tasks" in made.stderr
    arguments = ["--chunk", "500", "--out"]
    through = CliRunner().invoke(app, ["simulate", "-", *arguments, str(tmp_path / "R")], input=made.stdout_bytes)
    assert through.exit_code == 0, through.output
    assert CliRunner().invoke(app, ["simulate", str(workload), *arguments, str(tmp_path / "F")]).exit_code == 0
    for name in ("tasks", "timeline", "groups"):
        assert_frame_equal(*(pl.read_parquet(tmp_path / run / f"{name}.parquet") for run in ("R", "F")))
    assert 'workload = "-"' in (tmp_path / "R" / "scenario.toml").read_text()
    again = ["simulate", "--scenario", str(tmp_path / "R" / "scenario.toml"), "--out", str(tmp_path / "A")]
    assert CliRunner().invoke(app, again, input=made.stdout_bytes).exit_code == 0
    assert (tmp_path / "A" / "tasks.parquet").exists()
    other = CliRunner().invoke(app, [*LENGTH, "--seed", "2", "--out", "-"]).stdout_bytes
    with pytest.raises(InputError, match="must be the one the scenario was run on"):
        CliRunner().invoke(app, [*again[:-1], str(tmp_path / "B")], input=other, catch_exceptions=False)


def test_other_files_of_a_tar_are_passed_over(workload, tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(workload, ".")
        for name in ("../evil.parquet", "/tmp/evil.parquet", "fleet/../../evil.toml", "deep/er/jobs.parquet", "a.txt"):
            tar.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("attributes.parquet")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    stream.seek(0)
    (tmp_path / "in").mkdir()
    unpack(stream, tmp_path / "in")
    found = {path.relative_to(tmp_path / "in").as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {path.relative_to(workload).as_posix() for path in workload.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("text", "rule"), [(b"", "empty file"), (b"no tar" * 1000, "must be a workload's folder")])
def test_what_is_no_tar_is_refused(tmp_path, text, rule):
    with pytest.raises(InputError, match=rule):
        unpack(io.BytesIO(text), tmp_path)


def test_a_stream_that_was_cut_is_refused(workload, tmp_path):
    whole = io.BytesIO(piped(workload))
    with tarfile.open(fileobj=whole) as tar:
        in_between = tar.getmember("workload.toml").offset
        in_the_middle = tar.getmember("tasks.parquet").offset_data + 9
    for end, rule in ((in_between, "in which there is no workload"), (in_the_middle, "unexpected end of data")):
        with pytest.raises(InputError, match=rule):
            unpack(io.BytesIO(whole.getvalue()[:end]), tmp_path)


def test_nobody_need_read_it(workload):
    class Closed(io.BytesIO):
        def write(self, _):
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(RunError, match="standard output: could not be written: Broken pipe"):
        pack(workload, Closed())


def test_a_policy_from_a_file_reads_no_pipe(workload, tmp_path):
    (tmp_path / "own.py").write_text("")
    arguments = ["simulate", "-", "--scheduler", f"{tmp_path / 'own.py'}:mine"]
    with pytest.raises(InputError, match="workload -: goes with built-in schedulers"):
        CliRunner().invoke(app, arguments, input=piped(workload), catch_exceptions=False)
