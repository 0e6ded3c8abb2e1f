"""How far the simulations of a figure are: words, parts and what is left; two at a time; what one raises ends all."""
import threading

import pytest

from subak.reproduce.lotes.course import Course, Stopped, at_once


def told(parts, clock):
    said = []
    return Course(lambda words, part: said.append((words, part)), parts, clock), said


def test_parts_are_weighted_and_what_is_left_follows_from_what_was_spent():
    now = [0.0]
    course, said = told([("long", 3.0), ("short", 1.0)], lambda: now[0])
    first, second = course.part(0), course.part(1)
    now[0] = 4.0
    first(0.5)
    now[0] = 30.0
    first(1.0)
    now[0] = 35.0
    second(0.5)
    second(1.0)
    assert said == [
        ("long", 0.0), ("1 of 2, long", 0.375), ("1 of 2, long, about 10 s left", 0.75),
        ("2 of 2, short, about 5 s left", 0.875), ("2 of 2, short", 1.0)]


def test_tasks_are_done_two_at_a_time_and_their_pairs_returned():
    meeting = threading.Barrier(2, timeout=10)

    def met(name):
        return lambda: (name, meeting.wait() >= 0)

    assert at_once([met(name) for name in "abcd"], threading.Event()) == dict.fromkeys("abcd", True)


def test_what_one_raises_stops_the_others():
    course, _ = told([("a", 1.0), ("b", 1.0), ("c", 1.0)], lambda: 0.0)
    begun, going = [], threading.Event()

    def failing():
        begun.append("a")
        going.wait(10)
        raise ValueError("no")

    def endless():
        begun.append("b")
        going.set()
        part = course.part(1)
        while True:
            part(0.1)

    with pytest.raises(ValueError, match="no"):
        at_once([failing, *[endless] * 3], course.stop)
    assert begun.count("a") == 1
    assert 1 <= begun.count("b") <= 2  # at most the one that took the thread before the others were called off
    with pytest.raises(Stopped):
        course.part(2)(0.5)
