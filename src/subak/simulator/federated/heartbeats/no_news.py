"""Decides when a heartbeat would change nothing, without sending it.

A heartbeat of a local master that has no news for anybody is an empty update to every global master. Where that is
heeded, the global master counts it, and answers that it has seen what the local master knows it has. That is all, if

- the local master knows of every global master that it has seen all of the ledger, and nothing is kept for it to note;
- the global master obeys the epoch that speaks, has the whole state, and no task waits that a turn might place: none in
  its queues, or nothing was freed in its view since it looked; where tasks are preempted, none at all.

What is counted, and when each was heard last, is all that is left of so many such heartbeats (`note_beats`, `hear`).
This holds where nothing is lost on the network: then no worker gives signs of life, and nothing is said again.
"""
from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.local_master.state import LocalMaster
from subak.federation.megha.topology import OFF, Rules
from subak.federation.messages import NOBODY
from subak.fleet.state import LOG
from subak.marks import inlined


@inlined
def has_no_news(local: LocalMaster, master: GlobalMaster, number: int) -> bool:
    """Whether an update of a local master to the global master of a *number* is empty, and the answer says nothing."""
    asker, view = local.asker[number], master.cluster[local.cluster]
    seen, epoch = local.ledger.counts.version, local.standing.epoch
    speaks = local.standing.active == 1 and view["epoch"] == epoch and view["known"]
    return bool(speaks and asker["known"] == seen and view["seen"] == seen and asker["over_first"] == NOBODY)


@inlined
def waits_for_news(master: GlobalMaster, rules: Rules) -> bool:
    """Whether an empty update makes a global master take no turn."""
    has_looked = rules.preemption == OFF and master.counts.scanned == master.fleet.freed_blocks[LOG]
    return bool(master.counts.queued == 0 or has_looked)


@inlined
def note_beats(master: GlobalMaster, rules: Rules, count: int) -> None:
    """Note so many empty updates."""
    master.tally.updates += count
    master.counts.beats += count
    if rules.preemption != OFF:
        master.counts.scanned = master.fleet.freed_blocks[LOG] - LOG - 1


@inlined
def hear(local: LocalMaster, master: GlobalMaster, number: int, update_at: float, answer_at: float) -> None:
    """Note when the last of them came, and its answer, unless something has come since."""
    view, asker = master.cluster[local.cluster], local.asker[number]
    view["seen_at"] = max(view["seen_at"], update_at)
    asker["heard"] = max(asker["heard"], answer_at)
