"""Carries out one run of a study in any process, and returns its record."""
import logging
from collections.abc import Generator, Mapping
from contextlib import closing

import msgspec

from subak.errors import SubakError
from subak.experiment.run import do_drawn, with_bound
from subak.experiment.scenario import Scenario
from subak.experiment.study.inputs import Kept
from subak.experiment.study.plan import Work
from subak.experiment.study.records import Record, packed
from subak.experiment.workers import FAILED, LAST, NOTICE, Say, news_of
from subak.measures.runs import Speed, Summary

# One thread of Polars a process, which does small tables faster, and adds up in one order however many cores there are.
ENVIRONMENT = {"POLARS_MAX_THREADS": "1"}
KEPT = Kept()


def record_of(name: str, told: bytes) -> bytes:
    """Do a run, and return its record: what a process does, here or elsewhere. *told* is from `told_of`."""
    try:
        scenario = msgspec.msgpack.decode(told, type=Scenario)
        drawn, window = KEPT.of_run(scenario)
        done = with_bound(do_drawn(scenario, scenario.schedulers[0], scenario.seeds[0], drawn, window), drawn)
        return packed(Record(_without_time(done.summary)))
    except SubakError as error:
        return packed(Record(error=str(error)))
    except MemoryError:
        return packed(Record(error=f"run {name}: out of memory"))


def _without_time(summary: Summary) -> Summary:
    """Leave out what is of the process and of the time that it took: the same run has the same record."""
    plan = summary.plan and msgspec.structs.replace(summary.plan, seconds=0.0)
    return msgspec.structs.replace(summary, speed=Speed(), plan=plan)


def told_of(work: Work) -> bytes:
    """Return what a process is told of a run."""
    return msgspec.msgpack.encode(work.scenario)


def done_here(todo: Mapping[str, Work], processes: int) -> Generator[tuple[str, bytes], None, None]:
    """Do runs in processes of this machine that are kept, and yield the digest and the record of each that ended."""
    digest_of = {work.name: digest for digest, work in todo.items()}
    jobs = {work.name: told_of(work) for work in todo.values()}
    notices: set[str] = set()
    with closing(news_of(_work, jobs, processes, kept=True, environment=ENVIRONMENT)) as found:
        for news in found:
            if news.kind == NOTICE and news.notice not in notices:
                notices.add(news.notice)
                logging.getLogger("subak").warning(news.notice)
            if news.kind in LAST:
                failed = news.kind == FAILED
                yield digest_of[news.label], packed(Record(error=news.error)) if failed else news.result


def _work(name: str, told: bytes, _say: Say) -> bytes:
    return record_of(name, told)
