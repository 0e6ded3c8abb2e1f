"""Dates in the place of times since a trace's time 0: in both directions, in each reader, everywhere they are given."""
import math
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload.test_kept_of_the_work import TRACES

import subak
from subak.api.settings import scenario_of
from subak.cli.options import Given, scenario_from
from subak.cli.sweeps import study_from
from subak.dates import Calendar, calendar_at, instant_words, read_when, seconds_of
from subak.errors import InputError
from subak.experiment.scenario import read_scenario
from subak.experiment.study.points import points_of
from subak.measures.window import window_of
from subak.workload.calendars import days_in
from subak.workload.extent import at_load, of_queues
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import DATED, Options
from subak.workload.resample import resampled
from subak.workload.table import TIME_0, read_workload

HOUR, DAY = 3600.0, 86_400.0
PARIS = "Europe/Paris"
MARCH = 1_711_609_980  # 2024-03-28 08:13 in Paris; clocks go forward on the 31st
ZONES = st.sampled_from(["", "UTC", PARIS, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
HEAD = "JobID|Account|User|Partition|Submit|Start|Elapsed|State|AllocTRES"


def accounting(folder, zone="", hours=100, **options):
    """A job each hour from 2024-03-28T08:13 on, by clocks that name no zone; one that clocks skip is told by none."""
    first = datetime(2024, 3, 28, 8, 13)
    lines = [HEAD]
    for number in range(hours):
        at = (first + timedelta(hours=number)).isoformat()
        lines.append(f"{number}|a|u{number % 3}|p|{at}|{at}|00:10:00|COMPLETED|cpu=1,mem=1G")
    path = folder / "jobs.txt"
    path.write_text("\n".join(lines) + "\n")
    return READERS["sacct"].read(path, Options(zone=zone, max_lost=1.0, **options), ignore_progress).workload


def written(tmp_path, workload, name="W"):
    folder = tmp_path / name
    folder.mkdir()
    workload.write(folder)
    return folder


# -- a calendar --------------------------------------------------------------------------------------------------------


@given(st.integers(-10**9, 4 * 10**9), ZONES, st.integers(0, 10**9))
def test_seconds_become_a_date_and_the_same_seconds(epoch, zone, seconds):
    calendar = Calendar(float(epoch), zone)
    assert calendar.seconds(calendar.text(seconds)) == seconds
    assert read_when(calendar.text(seconds)) == calendar.text(seconds)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)), ZONES)
def test_a_date_becomes_seconds_and_the_same_date(shown, zone):
    calendar, shown = Calendar(1e9, zone), shown.replace(microsecond=0)
    try:
        seconds = calendar.seconds(shown.isoformat())
    except InputError as error:
        assert "does not exist" in str(error)
        return
    assert calendar.text(seconds)[:19] == shown.isoformat()
    expected = shown.replace(tzinfo=ZoneInfo(zone or "UTC")).timestamp() - 1e9
    assert seconds == expected


def test_forms_of_dates():
    calendar = Calendar(0.0, PARIS)
    assert calendar.seconds("1970-01-02") == 23 * HOUR
    assert calendar.seconds("1970-01-02T12:30") == 23 * HOUR + 12.5 * HOUR
    assert calendar.seconds("1970-01-02 12:30:15.25") == 23 * HOUR + 12.5 * HOUR + 15.25
    assert calendar.seconds("1970-01-02T00:00Z") == 24 * HOUR
    for offset in ("+01:00", "+0100", "+01"):
        assert calendar.seconds(f"1970-01-02T00:00{offset}") == 23 * HOUR
    for text in ("2d", 90, "inf", "1-02:30:00"):
        assert isinstance(read_when(text), float)
    for text in ("2024-03-01", " 2024-03-01T12:00 "):
        assert read_when(text) == text.strip()
    for text in ("2024-13-01", "2024-02-30", "2024-03-01T25:00", "2024-03-01T12:00+99:99"):
        with pytest.raises(InputError, match="a date must be one that a calendar and a clock have, not '2024"):
            read_when(text)
    for text in ("tomorrow", "2024-3-1", "2024-03-01T12", "2024-03-01T12:00 PM", "01/03/2024"):
        with pytest.raises(InputError, match=r"a time must be a number of seconds.*or a date such as 2024-03-01 or"):
            read_when(text)


def test_hours_that_clocks_skip_and_repeat():
    calendar = Calendar(float(MARCH), PARIS)
    with pytest.raises(InputError, match="2024-03-31T02:30 does not exist in Europe/Paris, whose clocks skip it"):
        calendar.seconds("2024-03-31T02:30")
    first = calendar.seconds("2024-10-27T02:30")  # of two, the first
    assert calendar.seconds("2024-10-27T02:30+02:00") == first
    assert calendar.text(first + HOUR) == "2024-10-27T02:30:00+01:00"
    assert Calendar(float(MARCH)).seconds("2024-03-31T02:30") > 0  # clocks of no zone have all hours


def test_clocks_without_a_zone_know_of_none():
    with pytest.raises(InputError, match="2024-03-01T12:00Z names a zone, but the clocks of this workload are"):
        Calendar(0.0).seconds("2024-03-01T12:00Z")


def test_instants_that_no_date_names():
    assert calendar_at(1e18, "") is None
    assert calendar_at(math.nan, "") is None
    assert Calendar(0.0).text(math.inf) == ""
    assert instant_words(90.0, None) == "1m30s"
    for text in ("0001-01-01", "9999-12-31T23:59:59"):
        with pytest.raises(InputError, match="is in no year from 1 to 9999 of UTC"):
            Calendar(0.0, "Asia/Tokyo" if text < "1" else "America/New_York").seconds(text)
    with pytest.raises(InputError, match="no zone is called 'Mars' here"):
        Calendar(0.0, "Mars").seconds("2024-03-01")


def test_dates_outside_of_a_trace():
    calendar, last = Calendar(float(MARCH), PARIS), 3 * DAY
    assert seconds_of("x", "2024-03-28", calendar, last) == 0.0  # the day of time 0
    assert seconds_of("x", 5.0, None, 0.0) == 5.0
    assert seconds_of("x", "2024-04-01", calendar, last) == 3 * DAY + 14.75 * HOUR + 2 * 60  # the end of the last day
    for text in ("2024-03-27", "2024-03-28T08:12", "2024-04-01T00:01", "1970-01-01"):
        with pytest.raises(InputError) as raised:
            seconds_of("--until", text, calendar, last)
        assert str(raised.value) == ("--until: must be a date from 2024-03-28 to 2024-03-31 (Europe/Paris), the days "
                                     f"of this workload, not {text}")


# -- readers -----------------------------------------------------------------------------------------------------------


def test_a_folder_keeps_its_calendar(tmp_path):
    for zone in ("", PARIS):
        workload = accounting(tmp_path, zone)
        assert workload.provenance.calendar == Calendar(MARCH + (HOUR if not zone else 0.0), zone)
        folder = written(tmp_path, workload, f"W{zone[-1:]}")
        assert read_workload(folder).provenance == workload.provenance
        assert days_in(folder) == (workload.provenance.calendar, workload.tasks["arrival"].max())


def test_epochs_are_of_utc(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text(f"{HEAD}\n1|a|u|p|{MARCH}|{MARCH}|00:10:00|COMPLETED|cpu=1\n")
    for zone in ("", PARIS):
        found = READERS["sacct"].read(path, Options(zone=zone), ignore_progress).workload.provenance.calendar
        assert found == Calendar(float(MARCH), zone or "UTC")


def test_a_table_knows_its_zone(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,r\n2024-03-28 08:13:00,60\n2024-03-29 08:13:00,60\n")
    for unit, zone, expected in (("", "", Calendar(MARCH + HOUR)), ("", PARIS, Calendar(float(MARCH), PARIS)),
                                 (f"[iso@{PARIS}]", "", Calendar(float(MARCH), PARIS))):
        options = Options(columns=(f"arrival=a{unit},run_time=r",), zone=zone)
        found = READERS["table"].read(path, options, ignore_progress).workload
        assert found.provenance.calendar == expected
    path.write_text("a,r\n0,60\n5,60\n")
    options = Options(columns=("arrival=a[s],run_time=r",))
    assert READERS["table"].read(path, options, ignore_progress).workload.provenance.calendar is None
    with pytest.raises(InputError, match=r"--from: must be a time .* not 2024-03-01: this trace has no dates"):
        READERS["table"].read(path, msgspec.structs.replace(options, from_date="2024-03-01"), ignore_progress)


@pytest.mark.parametrize("name", TRACES)
def test_a_reader_that_says_what_time_0_is_writes_it(tmp_path, name):
    """And cuts by its dates; the others take none."""
    trace = TRACES[name]
    head = f"; UnixStartTime: {MARCH}\n" if name == "frontier" else ""
    for path, content in trace.whole.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(head + content)
    options = Options(columns=trace.options[1::2], max_lost=1.0)
    found = READERS[name].read(tmp_path / trace.source, options, ignore_progress)
    calendar, said = found.workload.provenance.calendar, found.remarks.get(TIME_0)
    assert (calendar is None) == (said is None)
    if calendar is None or said is None:
        return
    assert said.startswith(calendar.text(0.0).replace("T", " ").replace("+00:00", ""))
    assert ("zone not named" in said or "Pacific" in said) == (not calendar.zone)
    begin = calendar.text(0.0)
    cut = msgspec.structs.replace(options, from_date=begin, until_date=f"{begin[:10]}T23:59:59")
    assert len(READERS[name].read(tmp_path / trace.source, cut, ignore_progress).workload.tasks)
    with pytest.raises(InputError, match=r"^--until: must be a date from .* not 1999-01-01$"):
        READERS[name].read(tmp_path / trace.source, msgspec.structs.replace(options, until_date="1999-01-01"),
                           ignore_progress)


def test_every_reader_with_a_time_0_takes_dates():
    """Those that may say "time 0 is" are those that cut by dates."""
    assert {name for name, reader in READERS.items() if reader.options >= DATED} == {
        "sacct", "supercloud", "helios", "table", "philly", "pods", "frontier", "acme", "fdata", "in2p3",
        "pai2020", "pm100"}


def test_a_slice_by_dates(tmp_path):
    whole = accounting(tmp_path, PARIS)
    cut = accounting(tmp_path, PARIS, from_date="2024-03-29", until_date="2024-03-30T12:00")
    begin, end = (whole.provenance.calendar.seconds(text) for text in ("2024-03-29", "2024-03-30T12:00"))
    expected = whole.tasks.filter((whole.tasks["arrival"] >= begin) & (whole.tasks["arrival"] < end))
    assert 0 < len(expected) < len(whole.tasks)
    assert cut.tasks["arrival"].to_list() == expected["arrival"].to_list()
    assert cut.provenance.notes["options"] == whole.provenance.notes["options"] | {"from": begin, "until": end}
    with pytest.raises(InputError, match=r"--until: must be a date from 2024-03-28 to 2024-04-01 \(by the trace"):
        accounting(tmp_path, until_date="2023-01-01")


def test_a_slice_beyond_the_trace_is_cut_to_it(tmp_path, caplog):
    """A month of which the dump holds a part."""
    whole = accounting(tmp_path, PARIS)
    cut = accounting(tmp_path, PARIS, from_date="2024-03-01", until_date="2024-05-01")
    assert cut.tasks["arrival"].to_list() == whole.tasks["arrival"].to_list()
    assert caplog.messages == ["--from: the trace begins later than 2024-03-01: cut to its first day, 2024-03-28",
                               "--until: the trace ends before 2024-05-01: cut to its last day, 2024-04-01"]


def test_times_that_are_no_calendar_any_more(tmp_path):
    workload = accounting(tmp_path)
    calendar = workload.provenance.calendar
    assert calendar is not None
    assert at_load(workload, 1.0).provenance.calendar == of_queues(workload, ["p"]).provenance.calendar == calendar
    assert at_load(workload, 2.0).provenance.calendar is None
    last = workload.tasks["arrival"].max()
    assert resampled(workload, "days", 1, 0.0, last).provenance.calendar == calendar
    assert resampled(workload, "days", 2, 0.0, last).provenance.calendar is None


# -- where dates are given ---------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path, accounting(tmp_path))


BEGIN, END = 15 * HOUR + 47 * 60, 39 * HOUR + 47 * 60  # 2024-03-29 and 2024-03-30


def test_options_take_dates(folder):
    given = Given(workload=str(folder), measure_from="2024-03-29", measure_until="2024-03-30", until="2d")
    scenario = scenario_from(given, None, None, ["first-fit"])
    assert (scenario.measure_from, scenario.measure_until, scenario.until) == (BEGIN, END, 2 * DAY)
    for name, text in (("measure_until", "2024-03-28T12:00"), ("until", "2024-03-28T12:00")):
        with pytest.raises(InputError, match=rf"--{name.replace('_', '-')}: must be later than --measure-from, 15h47m "
                                             r"\(2024-03-29 00:00:00\), not 3h47m \(2024-03-28 12:00:00\)"):
            scenario_from(Given(workload=str(folder), measure_from="2024-03-29", **{name: text}), None, None, ["easy"])


def test_a_run_at_another_load_has_no_dates(folder):
    """The window is of the trace, and goes with it; the end of the run does not."""
    given = Given(workload=str(folder), measure_from="2024-03-29", load=2.0)
    assert scenario_from(given, None, None, ["first-fit"]).measure_from == BEGIN
    with pytest.raises(InputError, match=r"--until: must be a time since the run.* not 2024-03-29: at load 2"):
        scenario_from(Given(given | {"until": "2024-03-29"}), None, None, ["first-fit"])


def test_scenario_files_take_dates(folder):
    path = folder.parent / "s.toml"
    for begin in ("2024-03-29", '"2024-03-29"', "2024-03-29T00:00:00"):
        path.write_text(f'workload = "W"\nmeasure_from = {begin}\nmeasure_until = "2024-03-30"\nuntil = "3d"\n')
        scenario = read_scenario(path)
        assert (scenario.measure_from, scenario.measure_until, scenario.until) == (BEGIN, END, 3 * DAY)
    path.write_text('workload = "W"\nmeasure_from = "2025-01-01"\n')
    with pytest.raises(InputError, match=r"s.toml: measure_from: must be a date from 2024-03-28 to 2024-04-01"):
        read_scenario(path)


def test_a_window_is_cut_to_the_trace_with_a_note(folder, caplog):
    """The days are 2024-03-28 to 2024-04-01; only a window of which nothing is left is refused."""
    def window(**given):
        caplog.clear()
        scenario = scenario_from(Given(workload=str(folder), **given), None, None, ["first-fit"])
        return scenario.measure_from, scenario.measure_until

    end = window(measure_until="2024-04-02")[1]  # of the last day, which is no cut
    assert not caplog.messages
    assert window(measure_from="2024-03-01", measure_until="2024-05-01") == (0.0, end)
    assert caplog.messages == [
        "--measure-from: the trace begins later than 2024-03-01: cut to its first day, 2024-03-28",
        "--measure-until: the trace ends before 2024-05-01: cut to its last day, 2024-04-01"]
    assert window(measure_until="2024-04-03") == (None, end) and len(caplog.messages) == 1
    for outside in ({"measure_from": "2024-05-01"}, {"measure_until": "2024-03-01"}):
        with pytest.raises(InputError, match="must be a date from 2024-03-28 to 2024-04-01"):
            window(**outside)
    with pytest.raises(InputError, match="must be a date from"):  # of a run's end nothing is cut
        scenario_from(Given(workload=str(folder), until="2024-05-01"), None, None, ["first-fit"])


def test_studies_take_dates(folder):
    given = Given(workload=str(folder), measure_from="2024-03-29,2024-03-30,1d")
    points = points_of(study_from(given, None, None, None))
    assert [each.scenario.measure_from for each in points] == [BEGIN, END, DAY]


def test_python_takes_dates(folder):
    inputs = subak.load(folder, machines=2, capacity={"cpu": 8, "memory": "8Gi"})
    for begin in ("2024-03-29", date(2024, 3, 29), datetime(2024, 3, 29), BEGIN):
        scenario = scenario_of(inputs, ["first-fit"], [1], {"measure_from": begin, "measure_until": "2024-03-30"})
        assert (scenario.measure_from, scenario.measure_until) == (BEGIN, END)
    run = subak.run(inputs, "first-fit", measure_from="2024-03-29", measure_until="2024-03-30")
    window = run.summary.window
    assert (window.begin, window.end) == (BEGIN, END)


def test_a_workload_from_before_has_no_dates(tmp_path):
    workload = accounting(tmp_path)
    old = msgspec.structs.replace(workload.provenance, calendar=None)
    folder = tmp_path / "old"
    folder.mkdir()
    type(workload)(**{**vars(workload), "provenance": old}).write(folder)
    assert "calendar" not in (folder / "workload.toml").read_text()
    with pytest.raises(InputError) as raised:
        scenario_from(Given(workload=str(folder), measure_from="2024-03-29"), None, None, ["first-fit"])
    assert str(raised.value) == ("--measure-from: this workload does not know which day its time 0 is: give a time "
                                 "since its begin such as 2d, or convert it again")
    assert scenario_from(Given(workload=str(folder), measure_from="2d"), None, None, ["easy"]).measure_from == 2 * DAY


def test_a_pipe_has_no_dates_beforehand():
    with pytest.raises(InputError, match="the days of a workload that comes through a pipe are not known beforehand"):
        scenario_from(Given(workload="-", measure_from="2024-03-29"), None, None, ["first-fit"])


def test_a_window_says_its_dates(tmp_path):
    workload = accounting(tmp_path)
    assert window_of(workload, BEGIN, END).why == ("as asked for: 2024-03-29 00:00:00 to 2024-03-30 00:00:00 "
                                                   "(by the trace's clocks)")
    assert window_of(workload, BEGIN, math.inf).why.endswith("2024-03-29 00:00:00 to the end (by the trace's clocks)")
    with pytest.raises(InputError, match=r"from 1m \(2024-03-28 08:14:00\) to 2m \(2024-03-28 08:15:00\); they"):
        window_of(workload, 60.0, 120.0)
