"""Studies that no simulator ran: a plan, and records whose waits are a formula of the point and the seed."""
import numpy as np

from subak.experiment.study.document import Axis
from subak.experiment.study.plan import Plan, Planned
from subak.experiment.study.records import Record
from subak.measures.runs import FederationFacts, Spread, Summary, Waiting

HEARTBEATS, MASTERS, SCHEDULERS = (1.0, 5.0, 10.0, 30.0), ("few", "many"), ("megha", "central")


def axes():
    """A setting of numbers, and two that change together and have names."""
    return (Axis("heartbeat", ("federation.heartbeat",), tuple((f"{each:g}",) for each in HEARTBEATS),
                 tuple(f"{each:g}" for each in HEARTBEATS)),
            Axis("masters", ("federation.global_masters", "federation.local_masters"), (("2", "2"), ("10", "10")),
                 MASTERS, True))


def fake_study(seeds=6, schedulers=SCHEDULERS, measures=(), broken=()):
    """Return a plan and its records; runs whose digests are *broken* failed."""
    rows, records = [], {}
    for heartbeat in range(len(HEARTBEATS)):
        for masters in range(len(MASTERS)):
            for scheduler in schedulers:
                for seed in range(1, seeds + 1):
                    digest = f"{heartbeat}{masters}{scheduler}{seed}"
                    rows.append(Planned(digest, (heartbeat, masters), scheduler, seed))
                    records[digest] = (Record(error="the disk is full") if digest in broken else
                                       Record(fake_summary(heartbeat, masters, scheduler, seed)))
    plan = Plan("Heartbeats", measures, {"workload": "W", "seeds": "1-6"}, axes(), tuple(schedulers), ("cpu",),
                (), tuple(rows))
    return plan, records


def fake_summary(heartbeat, masters, scheduler, seed):
    """A wait that grows with the heartbeat, and messages that fall with it."""
    noise = np.random.default_rng([heartbeat, masters, seed]).normal(0, 0.05)
    wait = (2.0 + HEARTBEATS[heartbeat] / 3 - masters * 0.4 + noise) * (1.3 if scheduler == "central" else 1.0)
    messages = {"UPDATE": int(1000 * (1 + masters) / HEARTBEATS[heartbeat])}
    return Summary(scheduler, f"{scheduler}-s{seed}", seed, status={"FINISHED": 100},
                   wait_time=Spread(wait, wait / 2, wait * 2, wait * 4, wait * 5, wait * 6),
                   slowdown=Spread(1 + wait / 10, 1.0, 2.0, 3.0, 4.0, 5.0), makespan=1000.0 + wait,
                   utilisation={"cpu": 0.5}, waiting=Waiting(wait * 3, 40.0),
                   federation=FederationFacts(messages=messages, counts={"launches": 10}))
