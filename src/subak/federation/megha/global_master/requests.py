"""Sends requests to local masters, repeats those without an answer, and knows which are settled."""
from subak.federation.counts import told
from subak.federation.megha.global_master.placement import hold
from subak.federation.megha.global_master.state import (
    PHASE_FLYING,
    PHASE_LEAVING,
    GlobalMaster,
)
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import INCARNATION_BITS, Rules, Topology, speaker
from subak.federation.messages import (
    ABANDON,
    GANG_LOST,
    GO,
    LAUNCH,
    NO_REASON,
    NOBODY,
    REPARTITION,
    RETRY,
    Outbox,
    post,
)
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes

FOREVER = float("inf")


@inlined
def note_flight(master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int, machine: int) -> None:
    """Take a task's amounts in the view, before the local master has agreed."""
    hold(master.fleet, master.bins, tasks, tasks.shape[task], machine)
    consume(master, tasks, tasks.shape[task], topology.machine[machine]["cluster"], tasks.queue[task], 1)
    master.task[task]["phase"], master.task[task]["machine"], master.task[task]["flying"] = PHASE_FLYING, machine, True


@inlined
def consume(master: GlobalMaster, shapes: Shapes, shape: int, cluster: int, queue: int, sign: int) -> None:
    """Count a task's amounts in or out of what its queue uses."""
    for resource in range(master.total.shape[1]):
        amount = sign * shapes.request[resource, shape]
        master.consumed[cluster, queue, resource] += amount
        master.total[queue, resource] += amount


@inlined
def request_launch(  # noqa: PLR0913, PLR0917  (a message has many fields)
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, kind: int, victims: int,
    out: Outbox,
) -> None:
    """Ask the local master for the attempt that the view was changed for; *victims*: of which queue, or NOBODY's."""
    cluster = topology.machine[master.task[task]["machine"]]["cluster"]
    master.cluster[cluster]["numbers"] += 1
    master.task[task]["attempt"] = (master.counts.incarnation << INCARNATION_BITS) + master.cluster[cluster]["numbers"]
    master.task[task]["sent_epoch"], master.task[task]["sent_to"] = master.cluster[cluster]["epoch"], cluster
    master.task[task]["sent"] = master.task[task]["attempt"]
    if topology.machine[master.task[task]["machine"]]["home"] == master.number:
        master.tally.launches += 1
    else:
        master.tally.repartitions += 1
        master.task[task]["repartitioned"] = told(master.task[task]["repartitioned"], 1)
    send_request(master, topology, rules, tasks, task, kind, victims, 0, out)


@inlined
def send_request(  # noqa: PLR0913, PLR0917  (a message has many fields)
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, kind: int, victims: int,
    repeats: int, out: Outbox,
) -> None:
    """Send, or send for the *repeats*-th time again, the request for a task's attempt, and look after it later."""
    post_request(master, topology, tasks, task, kind, victims, out)
    if kind != GO:
        look_again(master, rules, tasks, task, kind, victims, repeats, out)


@inlined
def look_again(  # noqa: PLR0913, PLR0917  (a message has many fields)
    master: GlobalMaster, rules: Rules, tasks: OpenTasks, task: int, kind: int, victims: int, repeats: int, out: Outbox
) -> None:
    """Look after a request later, if requests are ever sent again."""
    if rules.retry < FOREVER:
        later = post(out, RETRY, master.number, master.number, tasks.number[task], master.task[task]["machine"])
        later["row"], later["round"] = task, tasks.round[task]
        later["attempt"], later["delay"] = master.task[task]["attempt"], rules.retry
        later["victims"], later["repeats"], later["count"] = victims, kind, repeats


@inlined
def post_request(
    master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int, kind: int, victims: int, out: Outbox
) -> None:
    """Send the request for a task's attempt."""
    machine = master.task[task]["machine"]
    cluster = topology.machine[machine]["cluster"]
    instance = speaker(topology, cluster, master.cluster[cluster]["epoch"])
    row = post(out, kind, master.number, instance, tasks.number[task], machine)
    row["row"], row["shape"], row["queue"], row["owner"] = task, tasks.shape[task], tasks.queue[task], master.number
    row["round"], row["priority"], row["in_gang"] = tasks.round[task], tasks.priority[task], tasks.gang[task] != NOBODY
    row["limit"] = tasks.limit[task]
    if kind == ABANDON:
        row["reason"] = master.task[task]["withdrawn"] if master.task[task]["withdrawn"] != NO_REASON else GANG_LOST
    row["attempt"], row["epoch"] = master.task[task]["attempt"], master.task[task]["sent_epoch"]
    row["preempted"], row["seen"] = master.task[task]["preempted"], master.cluster[cluster]["seen"]
    row["victims"], row["incarnation"] = victims, master.counts.incarnation


@inlined
def launch_kind(master: GlobalMaster, topology: Topology, machine: int) -> int:
    """Return what a request for a machine is: LAUNCH on an own partition, REPARTITION on another's."""
    return LAUNCH if topology.machine[machine]["home"] == master.number else REPARTITION


@inlined
def is_settled(master: GlobalMaster, task: int) -> bool:
    """Whether it is known what became of a task's last request: its cluster has told its state to this incarnation."""
    cluster = master.task[task]["sent_to"]
    return bool(cluster == NOBODY or master.cluster[cluster]["known"])


@noinline
def leave(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, out: Outbox) -> None:
    """Give a task's attempt up; it is LEAVING until the local master has confirmed it."""
    master.task[task]["phase"] = PHASE_LEAVING
    send_request(master, topology, rules, tasks, task, ABANDON, NOBODY, 0, out)
