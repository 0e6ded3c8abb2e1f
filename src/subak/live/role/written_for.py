"""Checks that a store was written for this federation, and which settings may change under it.

Masters, clusters and queues may come and go: what they number depends on their own numbers. It also depends on the
rooms and the resources, so those stay; and who is removed must have nothing left that others still answer for.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec import ValidationError, msgpack

from subak.errors import InputError
from subak.federation.megha.global_master.losses import NOTHING_SENT
from subak.federation.megha.jobs import SUBMISSION_OPEN, SUBMISSION_WITHDRAWN
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, NOBODY
from subak.live.role.base import Put, Write
from subak.live.role.global_master.queues import QueuesFact
from subak.live.role.global_master.rows import open_rows
from subak.live.role.layout import NUMBERING, Layout, cluster_of_local

WITH_NUMBERS = ("job", "ended", "client", "machine", "claim")  # tables that mean nothing under other numbers
Disk = Mapping[str, Mapping[Any, bytes]]


class WrittenFor(NamedTuple):
    """What numbers depend on that are in the store of a master."""

    numbering: int
    role: int
    number: int  # of the master
    tasks: int
    machines: int
    shapes: int
    configurations: int
    resources: tuple[str, ...]

    def words(self) -> dict[str, str]:
        """Return it in words, by what the file of a federation calls it."""
        cluster = cluster_of_local(self.number)
        who = f"global master number {self.number}" if self.role != LOCAL_MASTER else (
            f"the {'local master' if self.number == cluster else 'standby'} of cluster number {cluster}")
        return {"its master": f"{who} (from 0 on)", "[rooms] tasks": f"{self.tasks:,}",
                "[rooms] machines": f"{self.machines:,}", "[rooms] shapes": f"{self.shapes:,}",
                "[rooms] configurations": f"{self.configurations:,}", "resources": ", ".join(self.resources)}


def written_for(role: int, number: int, layout: Layout) -> WrittenFor:
    """Return for what a master writes its store now."""
    return WrittenFor(NUMBERING, role, number, layout.places, layout.machines_each, layout.rooms.shapes,
                      layout.rooms.configurations, layout.resources)


def refuse_another(disk: Disk, key: int, now: WrittenFor) -> list[Write]:
    """Return what is to be written into a store, whose `incarnation` says under *key* for which federation it is.

    Raises InputError where it has numbers of another one than *now*.
    """
    body = disk.get("incarnation", {}).get(key)
    if body == msgpack.encode(now):
        return []
    if any(disk.get(table) for table in WITH_NUMBERS):
        before = _read(body)
        if before is None or before.numbering != now.numbering:
            theirs = "none" if before is None else before.numbering
            raise InputError("the store was written by another version of subak, which numbered jobs and machines in "
                             f"another way (numbering {theirs} there, {now.numbering} here): let that version end its "
                             "jobs (`subak store backup` keeps them), then begin with another folder")
        then, words = before.words(), now.words()
        what = next(name for name in words if then[name] != words[name])
        raise InputError(f"the store was written for another federation: {what} was {then[what]}, and is "
                         f"{words[what]} in the file now, under which its numbers mean others. Put that back, or begin "
                         "with another folder")
    return [Put("incarnation", [key], [msgpack.encode(now)])]


def _read(body: bytes | None) -> WrittenFor | None:
    """Return what a store says; None where nothing, or what a former version wrote."""
    try:
        return msgpack.decode(body, type=WrittenFor) if body is not None else None
    except ValidationError:
        return None


def refuse_removed(disk: Disk, queues: QueuesFact, layout: Layout) -> None:
    """Raise InputError where the store of a global master needs another, or a cluster, that was removed."""
    for queue in queues.queues:
        if queue.path and not layout.is_peer((GLOBAL_MASTER, queue.owner)):
            raise InputError(f"queue {queue.path}: global master number {queue.owner} (from 0 on), which serves it, is "
                             "removed: put that back, take the queue out with `subak apply`, and let its jobs end")
    rows = open_rows(list(disk.get("task", {}).values()))
    may_run = np.isin(rows["state"], (SUBMISSION_OPEN, SUBMISSION_WITHDRAWN)) & (rows["sent"] != NOTHING_SENT)
    sent = rows["sent_to"][may_run & (rows["sent_to"] != NOBODY)].tolist()
    for cluster in sorted(set(sent)):
        if not layout.has(cluster):
            raise InputError(f"cluster number {cluster} (from 0 on) is removed, and {sent.count(cluster):,} tasks may "
                             "still run there: put it back, drain its machines, and let the tasks begin elsewhere")


def refuse_shorter(entries: str, known: int, now: int) -> None:
    """Raise InputError where a store knows of more masters, or clusters, than the file has, removed ones included."""
    if known > now:
        raise InputError(f"{entries}: the file has {now}, with those removed, and the store knows {known}: one that is "
                         "there no more stays in the file, with removed = true, so that its number is never another's")
