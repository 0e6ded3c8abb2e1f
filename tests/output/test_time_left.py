"""How long a reproduction may still take: by the figures that are done, before that by the present step."""
import pytest

from subak.cli.reproduce.time_left import TimeLeft


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_figures_to_come_take_as_long_as_those_done():
    clock = Clock()
    left = TimeLeft(["3", "4", "5", "6"], clock)
    assert (left.seconds(), left.words(), left.place) == (None, "", "0 of 4")
    keys = left.each(["3", "4", "5", "6"])
    assert next(keys) == "3"
    assert (left.seconds(), left.place) == (None, "1 of 4")
    clock.now, left.part = 130.0, 0.5  # half of the first after 30 s: four of 60 s, less 30 s
    assert (left.seconds(), left.words()) == (210.0, "about 4 min left")
    clock.now = 140.0
    assert next(keys) == "4"
    assert left.seconds() == 40.0 * 3
    clock.now = 150.0
    assert left.seconds() == 40.0 * 2 + 30.0
    clock.now = 200.0  # longer than the first: it may end any moment
    assert (left.seconds(), left.words()) == (80.0, "about 80 s left")
    assert next(keys) == "5"
    assert left.seconds() == 50.0 * 2  # the mean of 40 and 60
    assert next(keys) == "6"
    assert list(keys) == []
    assert (left.seconds(), left.words(), left.place) == (0.0, "seconds left", "4 of 4")


@pytest.mark.parametrize(("part", "words"), [(0.01, ""), (0.5, "seconds left"), (0.05, "about 60 s left")])
def test_a_step_that_has_just_begun_tells_nothing(part, words):
    clock = Clock()
    left = TimeLeft(["1"], clock)
    next(left.each(["1"]))
    clock.now, left.part = 103.0, part
    assert left.words() == words
