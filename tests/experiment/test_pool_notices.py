"""What processes of a pool have to say is said by the first process, each text once."""
import logging

from subak.experiment.spawn import end_with, new_pool, starting


def begin(lifeline, word):
    end_with(lifeline)
    logging.getLogger("subak").warning("%s cannot be used", word)


def say(text):
    logging.getLogger("subak").warning(text)
    return len(text)


def test_a_notice_of_several_processes_is_said_once_and_by_the_first(caplog, capfd):
    """Two processes say the same as they begin, and each of four tasks says one of two texts; one is very long."""
    long = "x" * 100_000
    pool = new_pool(2, begin, "the cache")
    with starting():
        found = list(pool.map(say, ["a", long, "a", long]))
    pool.shutdown()
    assert found == [1, 100_000, 1, 100_000]
    said = sorted(record.getMessage() for record in caplog.records)
    assert said == ["a", "the cache cannot be used", "x" * 3_000]
    assert capfd.readouterr().err.count("the cache cannot be used") <= 1  # where this process writes notices down


def test_a_pool_that_never_began_ends_without_a_word(caplog):
    pool = new_pool(1, begin, "nothing")
    pool.shutdown()
    pool.shutdown()
    assert not caplog.records
