"""What a global master says to Prometheus: read from its tables on the event loop, written as text beside it.

Names follow Prometheus' rules: base units (seconds, ratios), `_total` for what only grows. Labels are bounded: of
queues the first `QUEUES_SAID` are told, and how many are not.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest

from subak.live.api.models import QueueView
from subak.live.role.frames import WIRE_VERSION
from subak.live.role.waits import Waits
from subak.live.store.sqlite import STORE_VERSION
from subak.version import VERSION

QUEUES_SAID = 200
COUNTED = {  # of the tally of a global master: what each counts
    "searches": "searches for a machine", "launches": "requests to local masters to start a task",
    "repartitions": "launches on a partition of another global master", "preemptions": "preemptions asked for",
    "refusals": "requests that a local master refused, since its cluster had changed",
    "lost_attempts": "attempts that were lost", "updates": "updates of the view that came",
    "entries_applied": "changes of machines that were taken into the view",
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is to be said, as it stood at a moment."""

    master: str
    federation: str
    is_ready: bool
    tally: dict[str, int]
    ended: dict[str, int]  # tasks, by outcome
    queues: Sequence[QueueView]
    machines: Callable[[], Mapping[tuple[str, str], int]]  # by cluster and state; takes a while for many
    view_age_s: dict[str, float]  # by cluster; infinite where nothing was heard yet
    connected: dict[str, bool]  # by local master
    pending: int  # messages that are to be served
    timers: int
    held_s: float
    disk_refuses: bool
    task_waits: Waits  # from submission
    commits: Waits


class Collector:
    """Says what was seen, as Prometheus' client asks for it."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def collect(self) -> Iterator[Metric]:
        """Yield all families of metrics."""
        seen = self.seen
        yield InfoMetricFamily("subak_build", "The version of this global master, of its wire and its stores.", {
            "version": VERSION, "wire": str(WIRE_VERSION), "store": str(STORE_VERSION), "master": seen.master,
            "federation": seen.federation})
        yield from self._of_tasks()
        yield from self._of_queues()
        yield from self._of_clusters()
        yield from self._of_process()

    def _of_tasks(self) -> Iterator[Metric]:
        seen = self.seen
        for name, what in COUNTED.items():
            yield CounterMetricFamily(f"subak_{name}", f"How many {what}.", value=seen.tally[name])
        yield _counters("subak_tasks_ended", "Tasks that have ended, by outcome.", "outcome", seen.ended.items())
        yield HistogramMetricFamily(
            "subak_task_wait_seconds", "From the submission of a job to the begin of a task's first attempt.",
            buckets=seen.task_waits.buckets(), sum_value=seen.task_waits.sum)

    def _of_queues(self) -> Iterator[Metric]:
        told = self.seen.queues[:QUEUES_SAID]
        yield GaugeMetricFamily("subak_queues_left_out", f"Queues beyond the first {QUEUES_SAID}, of which nothing is "
                                "said.", value=len(self.seen.queues) - len(told))
        for name, what, value in (
                ("share_ratio", "The largest part of any resource that a queue holds.", "dominant_share"),
                ("guarantee_ratio", "The part of the federation that a queue is entitled to.", "guarantee"),
                ("jobs", "Jobs that have not ended.", "jobs"), ("waiting_tasks", "Tasks that wait.", "waiting"),
                ("running_tasks", "Tasks that run, or start.", "running")):
            yield _gauges(f"subak_queue_{name}", what, "queue",
                          ((queue.path, getattr(queue, value)) for queue in told))

    def _of_clusters(self) -> Iterator[Metric]:
        machines = GaugeMetricFamily("subak_machines", "Machines, by cluster and state.", labels=("cluster", "state"))
        for place, count in self.seen.machines().items():
            machines.add_metric(place, count)
        yield machines
        yield _gauges("subak_view_age_seconds", "Since a cluster was last heard of; infinite where it never was.",
                      "cluster", self.seen.view_age_s.items())
        yield _gauges("subak_local_master_connected", "Whether a local master, or a standby, is connected.", "name",
                      self.seen.connected.items())

    def _of_process(self) -> Iterator[Metric]:
        seen = self.seen
        yield GaugeMetricFamily("subak_ready", "Whether this master takes jobs.", value=seen.is_ready)
        yield GaugeMetricFamily("subak_disk_refuses", "Whether the disk takes nothing.", value=seen.disk_refuses)
        yield GaugeMetricFamily("subak_messages_pending", "Messages that are to be served.", value=seen.pending)
        yield GaugeMetricFamily("subak_timers", "Timers that are to ring.", value=seen.timers)
        yield GaugeMetricFamily("subak_event_loop_held_seconds", "The longest that the event loop was held in the last "
                                "minute or two.", value=seen.held_s)
        yield HistogramMetricFamily("subak_commit_seconds", "How long the disk took for a commit.",
                                    buckets=seen.commits.buckets(), sum_value=seen.commits.sum)


def _gauges(name: str, what: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=(label,))
    for key, value in values:
        family.add_metric((key,), value)
    return family


def _counters(name: str, what: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = CounterMetricFamily(name, what, labels=(label,))
    for key, value in values:
        family.add_metric((key,), value)
    return family


def text_of(seen: Seen) -> bytes:
    """Return what was seen in the format of OpenMetrics."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(seen))
    ProcessCollector(registry=registry)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text
