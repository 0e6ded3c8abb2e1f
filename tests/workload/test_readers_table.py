"""Any table of jobs: which column is what, units and times, what is dropped, and where a mistake stands."""

import csv
import io
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.files import stream
from subak.workload.readers.files.delimited import Dialect, column_names, listed, text_rows
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.files.times import clock_seconds, instant_text, stamp_seconds
from subak.workload.readers.options import Options
from subak.workload.readers.table.mapping import Column, parsed

TIMES = ("arrival", "run_time")
COLUMNS = 150  # of the terminal of `run`


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read(path: Path, *columns: str, **options):
    return READERS["table"].read(path, Options(columns=columns, **{"max_lost": 1.0} | options), ignore_progress)


def rows(conversion, *names: str) -> list[tuple]:
    return conversion.workload.tasks.select(*TIMES, *names).rows()


# Times and units


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86400.0),
        ("1970-01-01T00:01:02", 62.0),
        ("1970-01-01 00:01", 60.0),
        ("1970-01-01 00:00:01.5Z", 1.5),
        ("1970-01-01T02:00:00+02:00", 0.0),
        ("1970-01-01T00:00:00-0130", 5400.0),
        ("1969-12-31 23:59:59 UTC", -1.0),
        ("2020-06-09T18:41:01+02", 1591720861.0),
        ("2020-02-30", None),
        ("1970-01-01T24:00:00", None),
        ("18:41:01", None),
        ("1970-01-01T00:60:00", None),
        ("x1970-01-02", None),
        ("1970-01-02x", None),
        ("19700102", None),
    ],
)
def test_instants_of_iso_8601(text, seconds):
    assert pl.DataFrame({"a": [text]}).select(stamp_seconds(pl.col("a"))).item() == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:10:00", 600.0),
        ("1-02:03:04", 93784.0),
        ("05:12.345", 312.345),
        ("90:15", 5415.0),
        ("1000:00:00", 3.6e6),
        ("1-02:03", None),
        ("01:60:00", None),
        ("00:00:60", None),
        ("10", None),
        ("-01:00:00", None),
        ("1:2", None),
    ],
)
def test_durations_as_slurm_writes_them(text, seconds):
    assert pl.DataFrame({"a": [text]}).select(clock_seconds(pl.col("a"))).item() == seconds


def test_instants_beyond_the_calendar_are_numbers():
    assert instant_text(0.5) == "1970-01-01 00:00:00.500000+00:00"
    assert instant_text(9e11) == "900000000000 s since 1970"


@pytest.mark.parametrize(
    ("unit", "field", "seconds"),
    [
        ("", "100000000", 1e8),
        ("", "100000000000", 1e8),
        ("", "1600000000", 1.6e9),
        ("", "1600000000000", 1.6e9),
        ("", "1600000000000000", 1.6e9),
        ("", "1600000000000000000", 1.6e9),
        ("[epoch-ms]", "1600", 1.6),
        ("[iso]", "2020-09-13 12:26:40", 1.6e9),
        ("", "2020-09-13T12:26:40Z", 1.6e9),
    ],
)
def test_instants_since_1970_are_counted_from_the_first_arrival(tmp_path, unit, field, seconds):
    path = write(tmp_path / "a.csv", "at,run", f"{field},1")
    conversion = read(path, f"arrival=at{unit},run_time=run")
    assert rows(conversion) == [(0.0, 1.0)]
    told = instant_text(seconds)
    zoneless = told.removesuffix("+00:00") + " by the file's clocks, of a zone not named"
    assert conversion.remarks["time 0 is"] == (zoneless if " " in field else told)


@pytest.mark.parametrize(
    ("unit", "field", "run_time"),
    [
        ("[ns]", "5e9", 5.0),
        ("[us]", "5e6", 5.0),
        ("[ms]", "5000", 5.0),
        ("[s]", "5", 5.0),
        ("[min]", "2", 120.0),
        ("[h]", "2", 7200.0),
        ("[d]", "1", 86400.0),
        ("[hms]", "01:00", 60.0),
        ("", "00:00:07", 7.0),
        ("", "7.5", 7.5),
    ],
)
def test_durations_in_units(tmp_path, unit, field, run_time):
    path = write(tmp_path / "a.csv", "at,run", f"3.5,{field}")
    assert rows(read(path, f"arrival=at,run_time=run{unit}")) == [(3.5, run_time)]


@pytest.mark.parametrize(
    ("unit", "field", "units", "of"),
    [
        ("MiB", "4", 4, "MiB"),
        ("GiB", "0.5", 512, "MiB"),
        ("B", "1048576", 1, "MiB"),
        ("MB", "100", 96, "MiB"),
        ("MiB", "4G", 4096, "MiB"),
        ("GiB", "4Mi", 4, "MiB"),
        ("KiB", "2 TiB", 2 << 20, "MiB"),
        ("MiB", "100MB", 96, "MiB"),
        ("cores", "500m", 500, "cores"),
        ("cores", "2", 2000, "cores"),
        ("millicores", "250", 250, "cores"),
        ("GPUs", "0.5", 500, "GPUs"),
        ("%", "50", 500, "units"),
        ("%", "50%", 500, "units"),
        ("", "1.25", 1250, "units"),
    ],
)
def test_amounts_in_units(tmp_path, unit, field, units, of):
    path = write(tmp_path / "a.csv", "at,run,amount", f"0,1,{field}")
    workload = read(path, f"arrival=at,run_time=run,thing=amount{f'[{unit}]' if unit else ''}").workload
    assert workload.requests.tolist() == [[units]]
    assert workload.resources[0].of == of


@pytest.mark.parametrize(
    ("unit", "fields", "arrivals"),
    [
        ("%d/%m/%Y %H:%M", ("05/06/2024 08:00", "06/06/2024 08:00"), [0.0, 86400.0]),
        ("%b %d, %Y %I:%M %p", ("Jun 05, 2024 08:00 AM", "Jun 05, 2024 08:00 PM"), [0.0, 43200.0]),
        ("%Y%m%d%H%M%S%z", ("20240605080000+0200", "20240605080000+0100"), [0.0, 3600.0]),
        # Clocks of Paris go from 2 to 3 on 31 March 2024, and from 3 back to 2 on 27 October
        ("iso@Europe/Paris", ("2024-03-31 01:30:00", "2024-03-31 03:30:00"), [0.0, 3600.0]),
        ("iso@Europe/Paris", ("2024-10-27 01:30:00", "2024-10-27 03:30:00"), [0.0, 10800.0]),
        ("iso@Europe/Paris", ("2024-10-27 01:30:00", "2024-10-27 02:30:00"), [0.0, 3600.0]),
        ("iso@Europe/Paris", ("2024-03-31 03:30:00", "2024-03-31T01:30:00Z", "2024-03-31 05:30+02"), [0, 0, 7200]),
        ("%d.%m.%Y %H:%M@Europe/Paris", ("31.03.2024 01:30", "31.03.2024 03:30"), [0.0, 3600.0]),
        ("iso", ("2024-03-31 01:30:00", "2024-03-31 03:30:00"), [0.0, 7200.0]),
    ],
)
def test_instants_in_a_form_and_a_zone(tmp_path, unit, fields, arrivals):
    path = write(tmp_path / "a.csv", "at;run", *(f"{field};1" for field in fields))
    assert [row[0] for row in rows(read(path, f"arrival=at[{unit}],run_time=run"))] == arrivals


# Rows


JOBS = (
    "id,who,where,sub,start,end,prio,n,cpu,how,left",
    'j1,ann,"org, a/dep",2020-01-01 00:00:10,2020-01-01 00:00:15,2020-01-01 00:01:15,5,2,8,COMPLETED,x',
    "j2,bob,b,2020-01-01 00:00:00,2020-01-01 00:00:00,2020-01-01 00:00:30,,1,1,FAILED,x",
    "j3,bob,b,2020-01-01 00:00:20,,2020-01-01 00:00:30,1,1,1,killed,x",
    "j4,bob,b,Unknown,2020-01-01 00:00:00,2020-01-01 00:00:30,1,1,1,killed,x",
    "j5,bob,b,2020-01-01 00:00:20,2020-01-01 00:00:19,2020-01-01 00:00:10,1,0,1,killed,x",
    "j1,ann,b,2020-01-01 00:00:40,2020-01-01 00:00:39,2020-01-01 00:00:49,5,1,4,odd,x",
)
MAP = (
    "job=id,user=who,queue=where,arrival=sub,start=start,end=end",
    "priority=prio,tasks=n,cpu=cpu[cores/tasks],outcome=how",
)


def test_a_table_becomes_jobs_and_each_row_is_accounted_for(tmp_path):
    conversion = read(write(tmp_path / "a.csv", *JOBS), *MAP, gang=True)
    workload = conversion.workload
    assert workload.jobs.rows() == [("j2", "b", "bob"), ("j1", "org, a/dep", "ann")]
    assert workload.stages.select("job", "priority", "gang", "cpu").rows() == [
        (0, 0, False, 1000),
        (1, 5, True, 4000),
        (1, 5, False, 4000),
    ]
    assert workload.gang_sizes().tolist() == [0, 2, 0]
    assert workload.tasks.select("stage", "index", *TIMES, "recorded_start", "outcome").rows() == [
        (0, 0, 0.0, 30.0, 0.0, "FAIL"),
        (1, 0, 10.0, 60.0, 15.0, "FINISH"),
        (1, 1, 10.0, 60.0, 15.0, "FINISH"),
        (2, 2, 40.0, 10.0, 40.0, None),
    ]
    assert conversion.accounts[0].used == {"kept": 3}
    assert conversion.dropped.rows() == [
        ("rows", "a.csv", 4, "never started, so its run time is unknown", None, None),
        ("rows", "a.csv", 5, "when it was submitted is unknown", None, None),
        ("rows", "a.csv", 6, "ends before it starts", None, None),
    ]
    assert conversion.remarks["rows that start before they arrive (they start at once)"] == 1
    assert conversion.remarks["rows whose outcome is no word that is known"] == 1
    assert conversion.remarks["columns that are not read"] == "left"


def test_parquet_and_packed_text_are_the_same_table(tmp_path):
    plain = write(tmp_path / "a.csv", *JOBS)
    frame = pl.read_csv(plain, null_values=["Unknown"], try_parse_dates=True)
    assert frame.schema["sub"] == pl.Datetime
    frame.write_parquet(tmp_path / "a.parquet")
    expected, found = read(plain, *MAP), read(tmp_path / "a.parquet", *MAP)
    assert found.workload.tasks.equals(expected.workload.tasks)
    assert found.workload.stages.equals(expected.workload.stages)
    assert found.dropped["line"].to_list() == [3, 4, 5]
    for sign in ";\t|":
        other = tmp_path / "b.csv"
        frame.write_csv(other, separator=sign, datetime_format="%Y-%m-%d %H:%M:%S")
        assert read(other, *MAP).workload.tasks.equals(expected.workload.tasks)


def test_durations_of_parquet_are_seconds_and_bytes_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"at": [0.0], "run": pl.Series([1_500_000], dtype=pl.Duration("us"))})
    frame.write_parquet(path)
    assert rows(read(path, "arrival=at,run_time=run")) == [(0.0, 1.5)]
    frame.with_columns(run=pl.lit(b"1.5")).write_parquet(path)
    with pytest.raises(InputError, match="the column run holds Binary; it must hold numbers, text or times"):
        read(path, "arrival=at,run_time=run")


@pytest.mark.parametrize(("names", "text"), [
    (("a", "", "b"), "a, b"), (("x" * 118, "y"), "x" * 117 + "..."), (("x" * 117, "y"), "x" * 117 + ", y")])
def test_names_are_listed_as_far_as_a_line_goes(names, text):
    assert listed(names) == text


def test_a_slice_a_constant_and_a_slot(tmp_path):
    path = write(tmp_path / "a.csv", "at,run", "0,1", "5,1", "9,1")
    conversion = read(path, "arrival=at,run_time=run,queue==batch/night,tasks==2", arrival_min=5.0, arrival_end=9.0)
    assert rows(conversion) == [(5.0, 1.0), (5.0, 1.0)]
    assert conversion.workload.jobs.rows() == [("3", "batch/night", "unknown")]
    assert conversion.workload.requests.tolist() == [[1]]
    assert conversion.accounts[0].dropped == {"arrived outside the slice": 2}


@pytest.mark.parametrize(
    ("line", "columns", "message"),
    [
        ("x,1,1", "arrival=at[s],run_time=run", "line 3: at must be a number of s, not x"),
        ("-1,1,1", "arrival=at,run_time=run", "line 3: arrival must not be negative, not -1"),
        ("2020-01-01,1,1", "arrival=at,run_time=run", "line 3: at must be a number of s"),
        ("1,later,1", "arrival=at,run_time=run", "line 3: run must be a number of s, not later"),
        ("1,1,lots", "arrival=at,run_time=run,cpu=c[cores]", "line 3: c must be a number of cores, not lots"),
        ("1,1,-3", "arrival=at,run_time=run,cpu=c", "line 3: cpu must be from 0 to 2147483.647 units, not -3"),
        ("1,1,1.5", "arrival=at,run_time=run,priority=c", "line 3: c must be a whole number from"),
        ("1,1,1.5", "arrival=at,run_time=run,tasks=c", "line 3: c must be a whole number, 0 or more, not 1.5"),
        ("1,1,a//b", "arrival=at,run_time=run,queue=c", "line 3: c must be a path of names such as"),
        ("1600000000,1,1", "arrival=at,run_time=run", r"line 3: at was taken for \[s\] by its first.*not 1600000000"),
        ("2024-03-31 02:30:00,1,1", "arrival=at[iso@Europe/Paris],run_time=run", "at must be an instant as iso@Europe"),
        ("1,1", "arrival=at,run_time=run", "line 3: must have 3 columns, not 2"),
        ('1,1,"1', "arrival=at,run_time=run", "line 3: a quote is not closed"),
        ("1,1,1", "arrival=at,run_time=nope", "has no column nope; it has at, run, c"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_column(tmp_path, line, columns, message):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "a.csv", "at,run,c", "1,1,1", line), columns, max_lost=0.0)


def test_lines_are_counted_through_quoted_ones(tmp_path):
    path = write(tmp_path / "a.csv", "at,run,c", '1,1,"a', "", 'b"', "", "2,x,c")
    with pytest.raises(InputError, match=r"a.csv, line 6: run must be a number of s, not x"):
        read(path, "arrival=at,run_time=run", max_lost=0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival", "must be names with ="),
        ("arrival=a,run_time=b,cpu=c[core]", "unit of cpu must be one of .*did you mean 'cores'"),
        ("arrival=a", "must say which column is the run_time"),
        ("run_time=a", "must say which column is the arrival"),
        ("arrival=a,arrival=b", "arrival is given twice"),
        ("arrival=a,run_time=b,cluster=c", "'cluster' is neither"),
        ("arrival=a,run_time=b,job=c[s]", "job has no unit"),
        ("arrival=a,run_time=b,cpu=c[/tasks]", "name the column of tasks"),
        ("arrival=a,run_time=b,estimate=c[/tasks]", "for the amounts of resources"),
        ("arrival=a[iso@Europe/Pariss],run_time=b", "the zone of arrival must be one such as .* not 'Europe/Pariss'"),
        ("arrival=a[%H %z@Europe/Paris],run_time=b", "for a form without %z"),
        ("arrival=a[ms@Europe/Paris],run_time=b", "the form of arrival must be iso or such as"),
        ("arrival=a[%H %Z],run_time=b", "must not have %Z"),
        ("arrival=a,run_time=b[%H]", "the unit of run_time must be one of"),
        ("arrival=a,run_time=b,end=c", "run_time and end say the same; name one of them"),
        ("arrival=a,start=b,run_time=c,end=d", "run_time and end say the same; name one of them"),
        ("arrival=a,end=c", "must say which column is the run_time, or which are start and end"),
    ],
)
def test_a_mapping_that_is_none(text, message):
    with pytest.raises(InputError, match=message):
        parsed((text,))


def test_a_mapping_has_quotes_constants_and_units():
    assert parsed(('arrival="Sub, mitted"[ms] , run_time = Run', "cpu==4[cores]")) == {
        "arrival": Column("arrival", "Sub, mitted", unit="ms"),
        "run_time": Column("run_time", "Run"),
        "cpu": Column("cpu", "4", True, "cores"),
    }


def test_a_preview_shows_what_was_understood_and_writes_nothing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", *JOBS)
    chosen = [*(word for text in MAP for word in ("--map", text)), "--max-lost", "1"]
    code, printed, _ = run("convert", "table", "a.csv", *chosen, "--preview")
    assert code == 0
    assert "2020-01-01 00:00:10 " in printed
    assert "8 → 4 cores" in printed
    assert "Nothing was written" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    code, printed, _ = run("convert", "table", "a.csv", *chosen, "--out", "W")
    assert code == 0
    assert (tmp_path / "W" / "dropped.csv").read_text().splitlines()[1] == (
        "rows,a.csv,4,\"never started, so its run time is unknown\",,")


def test_a_preview_tells_a_constant_from_a_column(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", "at,run,who", "0,1,ann")
    code, printed, _ = run("convert", "table", "a.csv", "--map", "arrival=at,run_time=run,user=who,queue==batch",
                           "--preview")
    assert code == 0
    assert re.search(r"queue +│ == batch", printed)
    assert re.search(r"user +│ who", printed)


def test_instants_of_two_clocks_are_no_table(tmp_path):
    path = write(tmp_path / "a.csv", "at,began,run", "2020-09-13T12:26:40Z,5,1")
    with pytest.raises(InputError, match=r"--map: arrival is an instant since 1970 \(\[iso\]\), start is a"):
        read(path, "arrival=at,start=began,run_time=run")


# The plain twin of the rows


CELL = st.text(alphabet='ab",\n ;', max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=12), st.integers(8, 64))
def test_quoted_rows_are_those_of_the_csv_module(tmp_path_factory, cells, size):
    path = tmp_path_factory.getbasetemp() / "twin.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("a", "b", "c"), *cells])
    path.write_text(text.getvalue())
    usual = stream.blocks.__defaults__
    stream.blocks.__defaults__ = (*usual[:-1], size)  # blocks that end within rows
    try:
        found = [
            row
            for each in text_rows(path, Dialect(quoted=True), ("a", "b", "c"), ignore_progress)
            for row in each.table.select("line", "a", "b", "c").rows()
        ]
    finally:
        stream.blocks.__defaults__ = usual
    line, expected = 2, []
    for row in cells:
        expected.append((line, *(cell.strip() or None for cell in row)))
        line += 1 + sum(cell.count("\n") for cell in row)
    assert found == expected


def test_names_of_columns_may_be_quoted(tmp_path):
    path = write(tmp_path / "a.csv", '"a, b", c ,"d""e"', "1,2,3")
    assert column_names(path, Dialect(quoted=True)) == ("a, b", "c", 'd"e')
    with pytest.raises(InputError, match="names the column 'a' twice"):
        column_names(write(tmp_path / "b.csv", "a,b,a"), Dialect())


def test_without_a_mapping_the_columns_are_named(tmp_path):
    with pytest.raises(InputError, match=r"--map: must say which column is what, .*; .*a.csv has at, run$"):
        read(write(tmp_path / "a.csv", "", "at,run,,", "1,2,,"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("at,run\n1,2\n".encode("utf-16"), "is UTF-16"),
        (b"PK\x03\x04rest", "is a zip file or a spreadsheet"),
        (b"\x28\xb5\x2f\xfdrest", "is packed with zstd"),
        (b"at,run\r1,2\r", "line 1: cannot be read as names of columns; does each line end with a newline"),
        (b"\n\n\n", "begins with empty lines"),
        (b"", "has no rows"),
        (b"at,run\n", "has no rows"),
    ],
)
def test_files_that_are_no_tables(tmp_path, text, message):
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.csv", "arrival=at,run_time=run")


def test_words_of_slurm_in_a_table(tmp_path):
    path = write(tmp_path / "a.csv", "at,run,limit,how", "0,1,UNLIMITED,CANCELLED by 1000", "1,1,01:00:00,COMPLETED")
    conversion = read(path, "arrival=at,run_time=run,estimate=limit,outcome=how")
    assert rows(conversion, "estimate", "outcome") == [(0.0, 1.0, None, "KILL"), (1.0, 1.0, 3600.0, "FINISH")]
