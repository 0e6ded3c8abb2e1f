"""Work on threads: results in order, not far ahead, and no error is lost."""
import threading
import time

import pytest

from subak.threads import in_order, one_by_one, usable_cores


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_in_which_they_were_asked_for(threads):
    def slower_at_first(number):
        time.sleep(0.002 * (7 - number % 7))
        return number * number

    assert list(in_order(slower_at_first, ((number,) for number in range(30)), threads)) == [n * n for n in range(30)]


def test_no_more_is_asked_for_than_is_under_way():
    asked = []

    def asks():
        for number in range(20):
            asked.append(number)
            yield (number,)

    results = in_order(lambda number: number, asks(), 2)
    assert asked == []
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert asked == [0, 1, 2, 3, 4]  # two and one more are ahead of the last that came
    results.close()
    assert len(asked) == 5


def test_an_error_comes_where_its_result_would():
    def refuses_three(number):
        if number == 3:
            raise ValueError(f"{number} is refused")
        return number

    came = []
    with pytest.raises(ValueError, match="3 is refused"):
        came.extend(in_order(refuses_three, ((number,) for number in range(9)), 4))
    assert came == [0, 1, 2]


def test_a_thread_does_one_thing_after_the_other_and_all_of_it():
    done, at_once = [], threading.Semaphore(1)

    def do(number):
        assert at_once.acquire(blocking=False)
        time.sleep(0.001 * (5 - number % 5))
        done.append(number)
        at_once.release()

    with one_by_one() as tell:
        for number in range(20):
            tell(do, number)
            assert len(done) >= number - 1  # what goes on, and one that waits
    assert done == list(range(20))


@pytest.mark.parametrize("last", [False, True])
def test_an_error_of_the_thread_is_not_lost(last):
    def refuse():
        raise ValueError("refused")

    told = 0
    with pytest.raises(ValueError, match="refused"), one_by_one() as tell:
        tell(refuse)
        for _ in range(0 if last else 9):
            tell(int)
            told += 1
    assert told <= 1


def test_what_waits_is_not_done_when_the_caller_fails():
    begun, done = threading.Event(), []

    def slow():
        begun.set()
        time.sleep(0.05)

    with pytest.raises(KeyError), one_by_one(ahead=3) as tell:
        tell(slow)
        tell(done.append, 1)
        tell(done.append, 2)
        assert begun.wait(5)
        raise KeyError
    assert done == []


def test_there_is_a_core():
    assert usable_cores() >= 1
