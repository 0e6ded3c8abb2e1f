"""Prints messages: a line for the received one, and one for each answer."""
from collections.abc import Collection

import numpy as np

from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import (
    ARRIVE,
    ASK,
    CANCEL,
    CARRIES,
    CATCH_UP,
    CHANGE,
    EXITED,
    GLOBAL_MASTER,
    HANDLER,
    HOLD_BACK,
    KINDS,
    LOCAL_MASTER,
    NOBODY,
    NOTED,
    PREEMPT,
    REASONS,
    RETRY,
    ROLES,
    SUBMITTER,
    WORKER,
)
from subak.simulator.federated.simulate import Opened

MASK = (1 << INCARNATION_BITS) - 1


def event_words(opened: Opened, hidden: Collection[str] = ()) -> str:
    """Return the last event that was handled, and its answers, in words; an empty text if its kind is *hidden*."""
    message = opened.due[0]
    if KINDS[message["kind"]] in hidden:
        return ""
    lines = [f"{opened.simulation.clock.now:.4f}  {receiver(opened, message)} <- {words(opened, message)}"]
    for row in opened.out.row:
        if row["kind"] == NOBODY:
            break
        if KINDS[row["kind"]] in hidden:
            continue
        lines.append(f"        {words(opened, row)} -> {receiver(opened, row)}")
    return "\n".join(lines)


def role_name(opened: Opened, role: int, number: int) -> str:
    """Return the name of a role by its number."""
    clusters = opened.roles.topology.local_masters
    if role == WORKER:
        return f"worker {opened.prepared.machine_order[number]}"
    if role == LOCAL_MASTER and number >= clusters:
        return f"standby {number - clusters}"
    return ROLES[role] if role in (SUBMITTER, len(ROLES) - 1) else f"{ROLES[role]} {number}"


def receiver(opened: Opened, message: np.void) -> str:
    """Return who a message is for."""
    kind, number = int(message["kind"]), int(message["to"])
    if kind == CHANGE:
        return "operator"
    return role_name(opened, int(HANDLER[kind]), number)


def words(opened: Opened, message: np.void) -> str:  # noqa: C901
    """Return a message in words, without what is nothing."""
    kind = int(message["kind"])
    name = KINDS[kind]
    said = [name]
    if message["task"] != NOBODY:
        said.append(f"task {message['task']}")
    if message["machine"] != NOBODY:
        said.append(f"machine {opened.prepared.machine_order[message['machine']]}")
    if kind in (ARRIVE, CANCEL, EXITED, CHANGE):
        return ", ".join(said)
    if message["attempt"] > MASK:
        said.append(f"attempt {message['attempt'] >> INCARNATION_BITS}.{message['attempt'] & MASK}")
    elif kind in (ASK, NOTED):
        said.append(f"incarnation {message['incarnation']}")
    if kind in (RETRY, CATCH_UP):
        said.append(f"of {KINDS[message['repeats']]}")
    elif message["reason"]:
        said.append(REASONS[message["reason"]])
    if message["epoch"]:
        said.append(f"epoch {message['epoch']}")
    if name in CARRIES and message["last"] > message["first"]:
        said.append(f"entries {message['first']}-{message['last'] - 1}")
    if kind == HOLD_BACK and message["task"] == NOBODY:
        said.append("no longer")
    if kind == PREEMPT:
        said.append(f"from queue {message['victims']}")
    if message["delay"] and HANDLER[kind] in (SUBMITTER, GLOBAL_MASTER, LOCAL_MASTER, WORKER) and name in (
        "RETRY", "RESUBMIT", "WAKE", "BEAT", "CHECK", "WATCH", "TICK"
    ):
        said.append(f"in {message['delay']:g} s")
    return ", ".join(said)
