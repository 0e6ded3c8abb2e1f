"""Removes machines for good: a local master refuses one from then on and reuses its number.

Only one that was silent for a lease is taken out: what ran there is lost already and runs elsewhere, so none of it can
run twice; or one whose worker says that it leaves, when no attempt is left there. The local master that speaks for the
cluster decides; then its partner is told, at once or when it is back. A number is given to another machine when
nothing is left of the one that had it: no attempt, and no connection.
"""

from msgspec import structs

from subak.federation.megha.local_master.state import ABSENT, LISTED, LOST_MACHINE
from subak.federation.messages import LOCAL_MASTER, NOBODY, PREEMPTED_BY_OPERATOR, WORKER
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.frames import Ask, Dismissed, Join
from subak.live.role.global_master.base import GlobalRoleBase
from subak.live.role.layout import cluster_of_local
from subak.live.role.local_role_base import LocalRoleBase

REMOVE = "remove "  # word of a question; behind it the identity of the machine, *offset* is the version that is known
NOT_LOST = "is not lost"


def remove(role: LocalRoleBase, ask: Ask) -> str:
    """Take a machine out for good; return why not, or nothing."""
    machine, identity = role.machines[ask.machine], ask.words.removeprefix(REMOVE)
    if machine.identity != identity or machine.removed:
        return ""  # its number is another's by now, or it was asked before
    if role.local.standing.active and int(role.local.machine[ask.machine]["state"]) not in (LOST_MACHINE, ABSENT):
        return (f"machine {machine.name} {NOT_LOST}: end its worker; when it was silent for a lease, "
                f"{role.timing.lease:g} s, it can be removed")
    _take_out(role, ask.machine, ask.offset)
    return ""


def end_removed(role: LocalRoleBase) -> None:
    """End what global masters that were removed have begun here, and note for them that it is over."""
    for owner in role.layout.no_masters:
        held = role.held(owner).tolist()
        if held and role.local.standing.active:
            role.end_rows(held, PREEMPTED_BY_OPERATOR)
            role.note_for(owner)


def let_leave(role: LocalRoleBase) -> None:
    """Take out machines that leave by themselves, as soon as no attempt is known there; the partner is told of it."""
    if role.leaving and role.local.standing.active and not role.pending:
        for number in [each for each in role.leaving if _is_empty(role, each)]:
            role.leaving.discard(number)
            _take_out(role, number, 0)


def _is_empty(role: LocalRoleBase, number: int) -> bool:
    """Whether a machine has said what it holds, and nothing is left of that."""
    return int(role.local.machine[number]["state"]) == LISTED and int(role.local.rows.first[number]) == NOBODY


def _take_out(role: LocalRoleBase, number: int, version: int) -> None:
    machine = role.machines[number]
    version = max(machine.version, version)  # so that it holds against what the partner said of it
    role.write_machine(number, structs.replace(machine, gone=True, removed=True, joining=False, version=version))
    role.frame_to((WORKER, number), dismissal(machine.name))


def dismissal(name: str) -> Dismissed:
    """Return what the worker of a machine that was removed is told."""
    return Dismissed(f"machine {name} was removed from the federation; to join again as another, give its worker a new "
                     "folder (data)")


def was_removed(role: LocalRoleBase, join: Join) -> bool:
    """Whether a machine that wants to join was taken out."""
    return any(machine.removed and machine.identity == join.identity for machine in role.machines.values())


def is_free_again(role: LocalRoleBase, number: int) -> bool:
    """Whether no attempt is left of a machine that had a number and was removed."""
    machine = role.machines.get(number)
    return machine is not None and machine.removed and int(role.local.rows.first[number]) == NOBODY


def begin_anew(role: LocalRoleBase, number: int) -> None:
    """Let a number mean another machine: its worker counts its incarnations from the first."""
    role.local.machine[number]["worker_incarnation"] = 0


def number_for_another(role: LocalRoleBase) -> int | None:
    """Return a number that a new machine may have: one that nobody had, or of a machine that was removed."""
    if role.free:
        return role.free.pop()
    own = (number for number in role.layout.machines_of(role.number)
           if is_free_again(role, number) and (WORKER, number) not in role.links)
    return next(own, None)


def no_room(role: LocalRoleBase, name: str) -> str:
    """Return why a cluster takes no further machine, and what helps."""
    own = len(role.layout.machines_of(role.number))
    return (f"machine {name}: this local master has given all its {own:,} numbers, of "
            f"{role.layout.machines_each:,} of the cluster: raise machines of [rooms] in the federation file, or take "
            "those out that are lost for good: subak machines remove NAME")


def no_more_kinds(role: LocalRoleBase, join: Join) -> str:
    """Return why a cluster takes no machine that has other amounts than any before, or nothing where it does."""
    kinds, nothing = role.catalog.configurations, (0,) * len(join.capacity)  # of one that is cordoned, or joins
    if len({join.capacity, nothing} - kinds.of.keys()) <= kinds.left:
        return ""
    return (f"machine {join.name}: this local master tells {role.layout.rooms.configurations:,} different amounts that "
            "machines have apart, and no more: raise configurations of [rooms] in the federation file, or round what "
            "machines say that they have")


def tell_removed(role: GlobalRoleBase, local: int) -> None:
    """Tell a local master, which may not have heard of it, which machines of its cluster were removed."""
    first = role.layout.machine_of(cluster_of_local(local))
    for number in range(first, first + role.layout.machines_each):
        fact = role.facts.known.get((MACHINE, number))
        if fact is not None and (machine := read_machine(fact.body)).removed:
            role.frame_to((LOCAL_MASTER, local), Ask(0, REMOVE + machine.identity, number, offset=fact.version))


def settle_removal(role: GlobalRoleBase, machine: int) -> None:
    """Tell both local masters of a machine's cluster that it was removed; who is not connected is told later."""
    for local in role.layout.masters_of(role.layout.cluster_of(machine)):
        tell_removed(role, local)
