"""Plans a new configuration of a running federation: changes of queues, weights and masters.

Masters, clusters, resources and rooms are agreed on by all processes, and take a restart: a file that changes them is
refused, with what differs.
"""
from itertools import cycle

import msgspec

from subak.errors import InputError
from subak.federation.choices import ROUND_ROBIN
from subak.live.api.errors import InvalidError, RefusedError
from subak.live.api.models import Change, Plan
from subak.live.config import FederationFile, QueueEntry, check, decoded
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.global_master.queues import QueueSetup, QueuesFact, changed
from subak.queues.orders import FAIR_ORDERS

FIXED = ("name", "global_master", "cluster", "resources", "timing", "rooms")


def setups_of(file: FederationFile) -> tuple[list[QueueSetup], tuple[QueueSetup, ...]]:
    """Return the queues of a file that have jobs, and those above others, which only have weights."""
    owners = {master.name: number for number, master in file.masters().items()}
    above = {"/".join(queue.name.split("/")[:depth]) for queue in file.queue
             for depth in range(1, queue.name.count("/") + 1)}
    leaves = [queue for queue in file.queue if queue.name not in above]
    turn = dict(zip((queue.name for queue in leaves), cycle(owners.values()), strict=False))

    def setup(queue: QueueEntry) -> QueueSetup:
        owner = owners[queue.owner] if queue.owner else turn.get(queue.name, next(iter(owners.values())))
        return QueueSetup(queue.name, owner, queue.weight)

    return [setup(queue) for queue in leaves], tuple(setup(queue) for queue in file.queue if queue.name in above)


def check_order(order: str) -> None:
    """Raise InputError for what is no order of queues."""
    if order not in (ROUND_ROBIN, *FAIR_ORDERS):
        raise InputError(f"order: must be one of {', '.join((ROUND_ROBIN, *FAIR_ORDERS))}, not {order!r}")


def first_queues(file: FederationFile) -> QueuesFact:
    """Return the queues with which a federation begins."""
    leaves, inner = setups_of(file)
    return QueuesFact(1, tuple(leaves), file.order, inner)


def _read(file: FederationFile, config: bytes) -> FederationFile:
    try:
        wanted = decoded(config, FederationFile)
        check(wanted)
        check_order(wanted.order)
    except (msgspec.ValidationError, msgspec.DecodeError, InputError) as error:
        raise InvalidError(f"configuration: {error}", field="configuration") from None
    for name in FIXED:
        if getattr(wanted, name) != getattr(file, name):
            raise RefusedError(f"configuration: {name} differs; that takes a restart of all processes with the file")
    return wanted


def new_queues(role: GlobalRole, file: FederationFile, config: bytes) -> QueuesFact:
    """Return the queues as a configuration wants them. Raises InvalidError, RefusedError."""
    wanted = _read(file, config)
    leaves, inner = setups_of(wanted)
    before = {queue.path: queue for queue in role.queues.queues if queue.path}
    # a queue that stays keeps its master, unless the file names another: its jobs are there
    named = {queue.name for queue in wanted.queue if queue.owner}
    for queue in leaves:
        if queue.path in before and queue.path in named and queue.owner != before[queue.path].owner:
            raise RefusedError(f"queue {queue.path}: its jobs are with another global master; remove it, and add it "
                               "again when it is empty")
    leaves = [msgspec.structs.replace(queue, owner=before[queue.path].owner)
              if queue.path in before else queue for queue in leaves]
    try:
        return changed(role.queues, leaves, inner, wanted.order, role.layout.rooms.queues)
    except InputError as error:
        raise InvalidError(str(error), field="queue") from None


def plan_of(role: GlobalRole, file: FederationFile, config: bytes) -> Plan:
    """Return what a configuration would change. Raises InvalidError, RefusedError."""
    after = new_queues(role, file, config)
    old = {queue.path: queue for queue in (*role.queues.queues, *role.queues.inner) if queue.path}
    new = {queue.path: queue for queue in (*after.queues, *after.inner) if queue.path}
    changes, warnings = [], []
    for path in sorted({*old, *new}):
        before, then = old.get(path), new.get(path)
        if before is None and then is not None:
            changes.append(Change(kind="add", what=f"queue {path}", after=f"weight {then.weight:g}"))
        elif then is None and before is not None:
            changes.append(Change(kind="remove", what=f"queue {path}", before=f"weight {before.weight:g}"))
            warnings.append(f"queue {path} takes no jobs any more; what it has is served until it has ended")
        elif before is not None and then is not None and before.weight != then.weight:
            changes.append(Change(kind="change", what=f"queue {path}: weight", before=f"{before.weight:g}",
                                  after=f"{then.weight:g}"))
    if role.queues.order != after.order:
        changes.append(Change(kind="change", what="order", before=role.queues.order, after=after.order))
    return Plan(version=role.queues.version, changes=tuple(changes), warnings=tuple(warnings))
