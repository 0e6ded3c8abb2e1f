"""Removes machines for good: a local master refuses one from then on and reuses its number.

Only one that was silent for a lease is taken out: what ran there is lost already and runs elsewhere, so none of it can
run twice; or one whose worker says that it leaves, when no attempt is left there. The local master that speaks for the
cluster decides; then its partner is told, at once or when it is back. A number is given to another machine when
nothing is left of the one that had it: no attempt, and no connection.
"""

from msgspec import structs

from subak.federation.megha.local_master.state import ABSENT, ACTIVE, LISTED, LOST_MACHINE
from subak.federation.messages import LOCAL_MASTER, NOBODY, PREEMPTED_BY_OPERATOR, WORKER
from subak.live.node.facts import MACHINE, read_machine
from subak.live.node.frames import Ask, Dismissed, Join
from subak.live.node.global_master.role import GlobalRole
from subak.live.node.layout import cluster_of_local
from subak.live.node.local_role import LocalRole

REMOVE = "remove "  # word of a question; behind it the identity of the machine, *offset* is the version that is known
NOT_LOST = "is not lost"


def remove(node: LocalRole, ask: Ask) -> str:
    """Take a machine out for good; return why not, or nothing."""
    machine, identity = node.machines[ask.machine], ask.words.removeprefix(REMOVE)
    if machine.identity != identity or machine.removed:
        return ""  # its number is another's by now, or it was asked before
    if node.local.scalar[ACTIVE] and int(node.local.machine[ask.machine]["state"]) not in (LOST_MACHINE, ABSENT):
        return (f"machine {machine.name} {NOT_LOST}: end its worker; when it was silent for a lease, "
                f"{node.timing.lease:g} s, it can be removed")
    _take_out(node, ask.machine, ask.offset)
    return ""


def end_removed(node: LocalRole) -> None:
    """End what global masters that were removed have begun here, and note for them that it is over."""
    for owner in node.layout.no_masters:
        held = node.held(owner).tolist()
        if held and node.local.scalar[ACTIVE]:
            node.end_rows(held, PREEMPTED_BY_OPERATOR)
            node.note_for(owner)


def let_leave(node: LocalRole) -> None:
    """Take out machines that leave by themselves, as soon as no attempt is known there; the partner is told of it."""
    if node.leaving and node.local.scalar[ACTIVE] and not node.pending:
        for number in [each for each in node.leaving if _is_empty(node, each)]:
            node.leaving.discard(number)
            _take_out(node, number, 0)


def _is_empty(node: LocalRole, number: int) -> bool:
    """Whether a machine has said what it holds, and nothing is left of that."""
    return int(node.local.machine[number]["state"]) == LISTED and int(node.local.rows.first[number]) == NOBODY


def _take_out(node: LocalRole, number: int, version: int) -> None:
    machine = node.machines[number]
    version = max(machine.version, version)  # so that it holds against what the partner said of it
    node.write_machine(number, structs.replace(machine, gone=True, removed=True, joining=False, version=version))
    node.frame_to((WORKER, number), dismissal(machine.name))


def dismissal(name: str) -> Dismissed:
    """Return what the worker of a machine that was removed is told."""
    return Dismissed(f"machine {name} was removed from the federation; to join again as another, give its worker a new "
                     "folder (data)")


def was_removed(node: LocalRole, join: Join) -> bool:
    """Whether a machine that wants to join was taken out."""
    return any(machine.removed and machine.identity == join.identity for machine in node.machines.values())


def is_free_again(node: LocalRole, number: int) -> bool:
    """Whether no attempt is left of a machine that had a number and was removed."""
    machine = node.machines.get(number)
    return machine is not None and machine.removed and int(node.local.rows.first[number]) == NOBODY


def begin_anew(node: LocalRole, number: int) -> None:
    """Let a number mean another machine: its worker counts its incarnations from the first."""
    node.local.machine[number]["worker_incarnation"] = 0


def number_for_another(node: LocalRole) -> int | None:
    """Return a number that a new machine may have: one that nobody had, or of a machine that was removed."""
    if node.free:
        return node.free.pop()
    own = (number for number in node.layout.machines_of(node.number)
           if is_free_again(node, number) and (WORKER, number) not in node.links)
    return next(own, None)


def no_room(node: LocalRole, name: str) -> str:
    """Return why a cluster takes no further machine, and what helps."""
    own = len(node.layout.machines_of(node.number))
    return (f"machine {name}: this local master has given all its {own:,} numbers, of "
            f"{node.layout.machines_each:,} of the cluster: raise machines of [rooms] in the federation file, or take "
            "those out that are lost for good: subak machines remove NAME")


def no_more_kinds(node: LocalRole, join: Join) -> str:
    """Return why a cluster takes no machine that has other amounts than any before, or nothing where it does."""
    kinds, nothing = node.catalog.configurations, (0,) * len(join.capacity)  # of one that is cordoned, or joins
    if len({join.capacity, nothing} - kinds.of.keys()) <= kinds.left:
        return ""
    return (f"machine {join.name}: this local master tells {node.layout.rooms.configurations:,} different amounts that "
            "machines have apart, and no more: raise configurations of [rooms] in the federation file, or round what "
            "machines say that they have")


def tell_removed(node: GlobalRole, local: int) -> None:
    """Tell a local master, which may not have heard of it, which machines of its cluster were removed."""
    first = node.layout.machine_of(cluster_of_local(local))
    for number in range(first, first + node.layout.machines_each):
        fact = node.facts.known.get((MACHINE, number))
        if fact is not None and (machine := read_machine(fact.body)).removed:
            node.frame_to((LOCAL_MASTER, local), Ask(0, REMOVE + machine.identity, number, offset=fact.version))


def settle_removal(node: GlobalRole, machine: int) -> None:
    """Tell both local masters of a machine's cluster that it was removed; who is not connected is told later."""
    for local in node.layout.masters_of(node.layout.cluster_of(machine)):
        tell_removed(node, local)
