"""The days of a trace: where they are cut, which of them are alike, and what a draw takes from where."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subak.workload import days as days_module
from subak.workload.days import (
    DAY_S,
    HOUR_S,
    ITSELF,
    USERS_DAYS,
    WHOLE_DAYS,
    alike_sessions,
    days_of,
    draw_days,
    drawn_by,
    sessions_of,
)


def by_day(weeks, weekday, weekend, hour=12.0):
    """Arrivals of single jobs of a user each, so many a day, an hour apart, from a Monday on."""
    arrival = [day * DAY_S + hour * HOUR_S + number * 60.0 for day in range(7 * weeks)
               for number in range(weekend if day % 7 > 4 else weekday)]
    return np.array(arrival), np.arange(len(arrival))


def test_the_first_seed_is_the_trace_and_others_draw_in_turn():
    assert [drawn_by(seed) for seed in range(1, 6)] == [ITSELF, WHOLE_DAYS, USERS_DAYS, WHOLE_DAYS, USERS_DAYS]


def test_days_are_cut_where_nobody_is_there_and_what_is_before_belongs_to_the_last():
    """Everybody works from 22 to 3: midnight cuts nothing, and what arrives from 0 to 3 on the first day is the last's.
    """
    arrival = np.array([day * DAY_S + hour * HOUR_S for day in range(7) for hour in (0.5, 2.5, 22.5, 23.5)])
    found = days_of(arrival, np.zeros(arrival.size, np.int64), 0.0, 7 * DAY_S)
    assert found.number == 7 and found.length == DAY_S
    assert found.of_job.tolist() == [6, 6, *(day for day in range(6) for _ in range(4)), 6, 6]


@pytest.mark.parametrize(("weekday", "weekend", "classes"), [(20, 5, 2), (20, 20, 1)])
def test_a_weekend_is_where_it_is_quiet_whatever_day_the_trace_begins_on(weekday, weekend, classes):
    arrival, user = by_day(2, weekday, weekend)
    for first in range(7):  # a week, from a Monday on, or a Tuesday
        inside = (arrival >= first * DAY_S) & (arrival < (first + 7) * DAY_S)
        found = days_of(arrival[inside] - first * DAY_S, user[inside], 0.0, 7 * DAY_S)
        assert found.freedom == 7 - classes
        expected = [int(classes == 2 and (first + day) % 7 > 4) for day in range(7)]
        assert found.kind.tolist() == expected


def test_days_that_differ_by_chance_are_of_one_class():
    """Two of seven are the quietest in a third of all weeks; hardly ever may they be called a weekend for it."""
    random = np.random.default_rng(1)
    weekends = 0
    for _ in range(300):
        arrival = np.concatenate([day * DAY_S + 8 * HOUR_S + 60.0 * np.arange(random.poisson(30)) for day in range(7)])
        weekends += days_of(arrival, np.arange(arrival.size), 0.0, 7 * DAY_S).freedom < 6
    assert weekends < 300 * 0.12  # 7 places for it, and two measures, of 0.5 % each


def test_the_last_day_may_lack_hours_in_which_hardly_anybody_comes():
    arrival = np.arange(8 * 24) * HOUR_S + 60.0  # around the clock: an eighth of a day is three hours
    user = np.zeros(arrival.size, np.int64)
    assert [days_of(arrival, user, 0.0, days * DAY_S).number for days in (6.9, 6.8, 6.0)] == [7, 6, 6]
    mornings = np.arange(8) * DAY_S + 60.0
    assert days_of(mornings, user[:8], 0.0, 6.01 * DAY_S).number == 7


def test_what_is_left_behind_the_last_whole_day_stays():
    arrival = np.arange(8 * 24) * HOUR_S + 60.0
    user = np.zeros(arrival.size, np.int64)
    found = days_of(arrival, user, 0.0, 7.5 * DAY_S)
    behind = np.flatnonzero(arrival > 7 * DAY_S)
    assert found.number == 7 and np.flatnonzero(found.of_job < 0).tolist() == behind.tolist()
    chosen, shift = draw_days(found, arrival, user, WHOLE_DAYS, np.random.default_rng(1))
    assert np.isin(behind, chosen).all() and not shift[np.isin(chosen, behind)].any()


def test_a_short_trace_is_cut_into_eighths_of_one_class_and_one_without_length_into_none():
    arrival = np.linspace(600.0, 5400.0, 81)
    found = days_of(arrival, np.zeros(81, np.int64), 600.0, 5400.0)
    assert (found.number, found.length, found.freedom) == (8, 600.0, 7)
    assert np.bincount(found.of_job).tolist() == [10] * 7 + [11]  # the last instant is inside
    for end in (0.0, float("inf")):
        assert days_of(np.zeros(3), np.zeros(3, np.int64), 0.0, end).number == 0


def test_a_window_without_an_end_has_the_days_that_there_are_and_one_that_is_endless_a_century():
    arrival, user = by_day(2, 20, 5)
    known = days_of(arrival, user, 0.0, float(arrival[-1]))
    endless = days_of(arrival, user, 0.0, float("inf"))
    assert known.number == endless.number == 14 and known.of_job.tolist() == endless.of_job.tolist()
    assert days_of(arrival, user, 0.0, 1e300).number == 36_525


JOBS = st.lists(st.tuples(st.floats(0, 8 * DAY_S), st.integers(0, 3)), min_size=1, max_size=60)


@given(JOBS, st.sampled_from([WHOLE_DAYS, USERS_DAYS]), st.integers(0, 99), st.sampled_from([1, 20, 4_000_000]))
def test_in_the_place_of_each_day_is_one_of_its_class(jobs, what, seed, cells):
    """Day by day, and for each who is drawn apart: all jobs of one day of the class, moved by whole days, no others."""
    arrival, user = np.array([job[0] for job in jobs]), np.array([job[1] for job in jobs])
    days = days_of(arrival, user, 0.0, 7 * DAY_S)
    before, days_module.CELLS = days_module.CELLS, cells
    try:
        chosen, shift = draw_days(days, arrival, user, what, np.random.default_rng(seed))
    finally:
        days_module.CELLS = before
    stay = days.of_job[chosen] < 0
    assert sorted(chosen[stay]) == np.flatnonzero(days.of_job < 0).tolist() and not shift[stay].any()
    chosen, shift = chosen[~stay], shift[~stay]
    apart = shift / DAY_S
    assert np.allclose(apart, np.round(apart), atol=1e-6)
    if days.number:
        assert ((arrival[chosen] + shift > -1e-6) & (arrival[chosen] + shift < days.number * DAY_S + 1e-6)).all()
        slot = (days.of_job[chosen] + np.round(apart).astype(int)) % days.number
        owner = user if what == USERS_DAYS else np.zeros(user.size, int)
        for who in set(owner[days.of_job >= 0].tolist()):
            of_day = [np.flatnonzero((owner == who) & (days.of_job == day)).tolist() for day in range(days.number)]
            for day in range(days.number):
                drawn = sorted(chosen[(owner[chosen] == who) & (slot == day)].tolist())
                assert drawn in [of_day[source] for source in range(days.number)
                                 if days.kind[source] == days.kind[day]]


def test_whole_days_move_together_and_each_users_days_apart():
    arrival = np.array([day * DAY_S + 12 * HOUR_S + user for day in range(7) for user in range(50)])
    user = np.tile(np.arange(50), 7)
    days = days_of(arrival, user, 0.0, 7 * DAY_S)
    sources = []
    for what in (WHOLE_DAYS, USERS_DAYS):
        chosen, shift = draw_days(days, arrival, user, what, np.random.default_rng(4))
        on_first = (arrival[chosen] + shift) // DAY_S == 0
        sources.append(len(set(days.of_job[chosen[on_first]].tolist())))
    assert sources == [1, 7]  # of the first day's jobs: all of one day; of days of their own


def test_a_session_ends_where_its_user_pauses():
    user, arrival = np.array([0, 1, 0, 0, 1]), np.array([0.0, 10.0, 1200.0, 2401.0, 100.0])
    assert sessions_of(user, arrival).tolist() == [0, 2, 0, 1, 2]
    assert sessions_of(user[:0], arrival[:0]).size == 0


def test_sessions_count_by_how_alike_their_work_is():
    session = np.array([0, 0, 1, 2, 3])
    assert alike_sessions(session, np.array([1.0, 1.0, 2.0, 2.0, 2.0])) == pytest.approx(4.0)
    assert alike_sessions(session, np.array([1e9, 1e9, 2.0, 2.0, 2.0])) == pytest.approx(1.0)
    assert alike_sessions(session, np.array([2.0, 2.0, 4.0, 2.0, 2.0])) == pytest.approx(12**2 / (16 + 16 + 4 + 4))
    assert alike_sessions(session[:0], np.zeros(0)) == 0.0
