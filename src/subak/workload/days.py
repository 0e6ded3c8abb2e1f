"""Cuts a trace into days and redraws them, to see how an answer varies over other weeks.

A trace is one draw of what may arrive. Its whole days are put into each other's places, with replacement: a day of the
same class, weekday or weekend, in the place of each. That is done in two ways. Whole days move with all that arrives in
them, and each user's days move apart from the others'. Hours, sessions and arrays of jobs stay as they are.

The trace need not say on which date it began. A day begins at the hour in which the fewest users are there. Two days of
seven are the weekend where plainly fewer sessions or jobs begin on them; else all days are of one class. Days are a
circle: what arrives before the first cut belongs to the last day. What is left behind the last whole day stays. A
trace of fewer than five days is cut into eighths, which are drawn as days of one class are.

Source: docs/decisions/0069-days-of-a-trace.md; blocks: Politis and Romano, A Circular Block-Resampling Procedure
(1992); users apart: Zakay and Feitelson, Workload Resampling for Performance Evaluation of Parallel Job Schedulers
(2014).
"""
import itertools
import math
from typing import NamedTuple

import numpy as np

DAY_S, HOUR_S, WEEK = 86_400.0, 3_600.0, 7
LACKING = 1 / 8  # of what a day has: the last day may lack as much, for what arrives last does so before the end
SESSION_GAP_S = 1_200.0
DAYS_LEAST, EIGHTHS = 5, 8  # a trace of fewer days is cut into so many parts
DAYS_MAX = 36_525  # of what comes later nobody asks
WITH_WEEKEND = 6  # days: with fewer, two classes would leave too few that are free to differ
SESSIONS_FEW, SESSIONS_LEAST = 30, 10  # that weigh as much as if all were alike: a warning below, no draw below
WEEKEND_P = 0.005  # that two days of seven would be as quiet by chance
CELLS = 4_000_000  # days of users that are drawn at once
ITSELF, WHOLE_DAYS, USERS_DAYS = range(3)  # what a seed takes of a trace


class Days(NamedTuple):
    """Where the days of a trace are, and what arrives in each."""

    begin: float  # of what is drawn, s
    length: float  # of a day, s
    kind: np.ndarray  # int64[day]: its class, 0 weekday, 1 weekend; all 0 where they do not differ
    of_job: np.ndarray  # int64[job]: the day in which it arrives, -1 where it stays

    @property
    def number(self) -> int:
        """Return how many days there are."""
        return self.kind.size

    @property
    def freedom(self) -> int:
        """Return how many of them are free to differ: days less classes."""
        return self.kind.size - len(set(self.kind.tolist()))


class Groups(NamedTuple):
    """Rows of a table by the group that each belongs to; rows of a group keep their order."""

    rows: np.ndarray  # int64[row], those of the first group first
    first: np.ndarray  # int64[group + 1], where those of each begin

    def of(self, groups: np.ndarray) -> np.ndarray:
        """Return the rows of *groups*, one after the other, each as often as it occurs."""
        count = self.counts(groups)
        ends = np.cumsum(count)
        return self.rows[np.repeat(self.first[groups] - ends + count, count) + np.arange(count.sum())]

    def counts(self, groups: np.ndarray) -> np.ndarray:
        """Return how many rows each of *groups* has."""
        return np.asarray(self.first[groups + 1] - self.first[groups])

    def place(self) -> np.ndarray:
        """Return int64[row]: which one of its group each row of the table is."""
        place = np.empty(self.rows.size, np.int64)
        place[self.rows] = np.arange(self.rows.size) - np.repeat(self.first[:-1], np.diff(self.first))
        return place


def grouped(group: np.ndarray, groups: int) -> Groups:
    """Return the rows of each group, of int[row]: the group of each row."""
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))])
    return Groups(np.argsort(group, kind="stable"), first)


def drawn_by(seed: int) -> int:
    """Return what a seed takes: the first the trace as it is, even ones whole days, odd ones each user's days."""
    return ITSELF if seed == 1 else WHOLE_DAYS if seed % 2 == 0 else USERS_DAYS


def days_of(arrival: np.ndarray, user: np.ndarray, begin: float, end: float) -> Days:
    """Return the days from *begin* to *end*, s; *arrival* float64[job], s, and *user* int64[job], from 0 on."""
    of_job = np.full(arrival.size, -1)
    inside = (arrival >= begin) & (arrival <= end) & np.isfinite(arrival)
    if inside.any() and end == math.inf:
        end = float(arrival[inside].max())
    if not inside.any() or end <= begin:  # all arrives at once
        return Days(begin, DAY_S, np.zeros(0, np.int64), of_job)
    span, hours = min(end - begin, DAYS_MAX * DAY_S), _hours(arrival[inside] - begin, user[inside])
    count = _whole_days(hours, span)
    if count < DAYS_LEAST:
        length = span / EIGHTHS
        of_job[inside] = np.minimum((arrival[inside] - begin) / length, EIGHTHS - 1).astype(np.int64)
        return Days(begin, length, np.zeros(EIGHTHS, np.int64), of_job)
    inside &= arrival - begin < count * DAY_S
    day = np.floor((arrival[inside] - begin - _quietest(hours) * HOUR_S) / DAY_S).astype(np.int64) % count
    of_job[inside] = day
    session = sessions_of(user[inside], arrival[inside])
    first = np.zeros(session.max() + 1, np.int64)
    first[session[::-1]] = day[::-1]
    return Days(begin, DAY_S, _classes(*(np.bincount(each, minlength=count) for each in (first, day))), of_job)


def _hours(after: np.ndarray, user: np.ndarray) -> np.ndarray:
    """Return int64[presence]: the hours from the begin on in which each user submits, each once; *after* s."""
    return np.unique(np.column_stack([user, (after // HOUR_S).astype(np.int64)]), axis=0)[:, 1]


def _whole_days(hours: np.ndarray, span: float) -> int:
    """Return how many days there are: the last may lack hours in which on other days hardly anybody is there."""
    count, left = int(span // DAY_S), span % DAY_S
    return count + int(np.mean((hours % 24) * HOUR_S >= left) <= LACKING)


def _quietest(hours: np.ndarray) -> int:
    """Return the hour of the day, from 0 on, in which and around which the fewest users submit."""
    users = np.bincount(hours % 24, minlength=24)
    return int(np.argmin(np.roll(users, 1) + users + np.roll(users, -1)))


def _classes(sessions: np.ndarray, jobs: np.ndarray) -> np.ndarray:
    """Return the class of each day, of int64[day], what begins in it: the weekend is where it is quiet."""
    of_week = np.arange(sessions.size) % WEEK
    found, least = np.zeros(sessions.size, np.int64), WEEKEND_P if sessions.size >= WITH_WEEKEND else 0.0
    for busy, first in itertools.product((np.log1p(sessions), np.log1p(jobs)), range(WEEK)):
        quiet = (of_week == first) | (of_week == (first + 1) % WEEK)
        if min(quiet.sum(), (~quiet).sum()) < 2:  # a class with one day has nothing to draw
            continue
        p = _by_chance(busy[quiet], busy[~quiet])
        if p < least:
            found, least = quiet.astype(np.int64), p
    return found


def _by_chance(less: np.ndarray, more: np.ndarray) -> float:
    """Return how probable it is by chance that one mean is as far below another (Student's t of two samples)."""
    from scipy.stats import t as student  # noqa: PLC0415  (takes a while to load)

    freedom = less.size + more.size - 2
    apart = float(more.mean() - less.mean())
    error = math.sqrt((less.var() * less.size + more.var() * more.size) / freedom * (1 / less.size + 1 / more.size))
    return float(student.sf(apart / error, freedom)) if error > 0.0 else float(apart <= 0.0)


def sessions_of(user: np.ndarray, arrival: np.ndarray) -> np.ndarray:
    """Return int64[job]: the number of each job's session, from 0 on; *user* int[job], *arrival* float64[job], s.

    A session is a row of jobs of one user, each at most 20 minutes behind the one before it.
    """
    order = np.lexsort((arrival, user))
    new = np.ones(order.size, bool)
    new[1:] = (np.diff(user[order]) != 0) | (np.diff(arrival[order]) > SESSION_GAP_S)
    session = np.empty(order.size, np.int64)
    session[order] = np.cumsum(new) - 1
    return session


def alike_sessions(session: np.ndarray, work: np.ndarray) -> float:
    """Return how many sessions there are, weighed by their work: Kish's (sum w)^2 / sum w^2; *work* float64[job]."""
    weight = np.bincount(session, work)
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


def draw_days(
    days: Days, arrival: np.ndarray, user: np.ndarray, what: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return which jobs are drawn (int64[draw]), and by how much later each arrives (float64[draw], s).

    *arrival* float64[job], s; *user* int64[job], from 0 on; *what* is WHOLE_DAYS or USERS_DAYS.
    """
    stay, move = np.flatnonzero(days.of_job < 0), np.flatnonzero(days.of_job >= 0)
    owner = user[move] if what == USERS_DAYS else np.zeros(move.size, np.int64)
    _, owner = np.unique(owner, return_inverse=True)  # users without a job in these days have none to draw
    owners = int(owner.max(initial=-1)) + 1
    of_day = grouped(owner * days.number + days.of_job[move], owners * days.number)
    chosen, shift = [stay], [np.zeros(stay.size)]
    at_once = max(CELLS // max(days.number, 1), 1)
    for first in range(0, owners, at_once):
        source = _sources(days, min(at_once, owners - first), random)
        drawn = ((first + np.arange(len(source)))[:, None] * days.number + source).ravel()
        later = ((np.arange(days.number) - source) * days.length).ravel()
        jobs = move[of_day.of(drawn)]
        after = arrival[jobs] - days.begin + np.repeat(later, of_day.counts(drawn))
        chosen.append(jobs)
        shift.append(days.begin + after % (days.number * days.length) - arrival[jobs])
    return np.concatenate(chosen), np.concatenate(shift)


def _sources(days: Days, owners: int, random: np.random.Generator) -> np.ndarray:
    """Return int64[owner, day]: the day that comes in the place of each, of its class."""
    source = np.empty((owners, days.number), np.int64)
    for kind in set(days.kind.tolist()):
        of_kind = np.flatnonzero(days.kind == kind)
        source[:, of_kind] = of_kind[random.integers(of_kind.size, size=(owners, of_kind.size))]
    return source
