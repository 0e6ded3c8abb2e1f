"""Golden scripts: a few lines that say what federation runs what, and below a line of dashes every message it causes.

    set global_masters=2 delay=0.01           settings of the federation
    machine 1 2                               amounts of cpu and memory; one line a machine
    change 3 0 leaves                         at 3 s machine 0 leaves; or: takes 1 2
    job queue=a asks=0.25,0.75 arrives=0,0 runs=5,5 gang=yes priority=1
    job after=0 asks=0.25,0.75 arrives=0 runs=5   of the same job as the first line, begins when that has
                                              ended; or after=0,1
    crash local master 0 at 1 for 2           without `for`: for ever
    cut global master 0, workers from 1 until 2
    faults duplication=1 late_max=0.01 faults_until=0.5
    lose START 1                              the first START that is sent never arrives
    late KILL 2 by 1.5                        the second KILL comes so much later
    again LAUNCH 1 after 3 5                  the first LAUNCH comes twice more, so long after it was sent
    terms retries=1 backoff=1 losses_max=0 wait_max=5 run_max=5
    plan 1 fails=2 after=0.5 cancel=3         of task 1: two attempts fail after 0.5 s each; it is cancelled at 3 s
    room 4                                    attempts that a local master can note
    hold after 2                              seconds, before machines are held back for who is passed over
    outbox 1                                  messages that a walk may post before it stops
    hide TICK ALIVE LEASE                     kinds that are not shown
    show all                                  every field of what is answered that says something, and tallies
    until 3

Times are seconds. What follows # is a remark.
"""
import math
import re
from collections import Counter

import numpy as np
import polars as pl

from subak.federation.megha.global_master.state import PHASES, TALLY
from subak.federation.megha.jobs import OUTCOMES, TERMS
from subak.federation.megha.local_master.state import LOCAL_TALLY, STATES
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import KINDS, NOBODY, NOBODYS
from subak.federation.settings import Federation
from subak.fleet.table import make_fleet
from subak.placement.claims import STATUSES
from subak.resources import Resource
from subak.simulator.engine.heap import SEQUENCE, SIZE, insert
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.failures.planned import Planned
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.delay_line import PUT, TAKEN, all_events
from subak.simulator.federated.fault_plan import Crash, Cut, FaultPlan
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.network import ARRIVING, enter, release_slot
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.invariants import Watch
from subak.simulator.torture.message_text import MASK, event_words
from subak.simulator.torture.torture import next_event
from subak.workload.table import STAGE_COLUMNS, make_workload

MORE = (*NOBODYS, "priority", "count", "in_gang", "preempted", "refusals", "repartitions", "round", "code", "limit",
        "seen", "incarnation", "report", "delay")
RESOURCES = (Resource("cpu", 0.25, "cores"), Resource("memory", 0.25, "GB"))


class Script:
    """A script that was read."""

    def __init__(self, text):
        self.settings, self.faults = {"service_scale": 0.0, "heartbeat": 1000.0, "local_masters": 1}, {}
        self.machines, self.changes, self.jobs = [], [], []
        self.crashes, self.cuts, self.hidden, self.until = [], [], set(), math.inf
        self.aimed, self.terms, self.planned = {}, {}, {}
        self.room, self.outbox, self.hold_back_after = 0, 256, math.inf
        self.all = False
        for line in text.splitlines():
            words = line.split("#")[0].split()
            if words:
                getattr(self, f"read_{words[0]}")(*words[1:])

    def read_set(self, *pairs):
        self.settings.update(values(pairs))

    def read_faults(self, *pairs):
        self.faults.update(values(pairs))

    def read_machine(self, *amounts):
        self.machines.append([float(amount) for amount in amounts])

    def read_change(self, time, machine, what, *amounts):
        there = what == "takes"
        self.changes.append((float(time), int(machine), there, *(float(word) for word in amounts or ("0", "0"))))

    def read_job(self, *pairs):
        self.jobs.append(dict(pair.split("=") for pair in pairs))

    def read_crash(self, *words):
        role, at, length = re.fullmatch(r"(.*) at (\S+)(?: for (\S+))?", " ".join(words)).groups()
        self.crashes.append(Crash(role=role, at=float(at), restart_after=float(length or "inf")))

    def read_cut(self, *words):
        one, other, begin, until = re.fullmatch(r"(.*), (.*) from (\S+) until (\S+)", " ".join(words)).groups()
        self.cuts.append(Cut(between=[one, other], begin=float(begin), until=float(until)))

    def read_lose(self, kind, number):
        self.aimed[kind, int(number)] = ("lose", ())

    def read_late(self, kind, number, _by, seconds):
        self.aimed[kind, int(number)] = ("late", (float(seconds),))

    def read_again(self, kind, number, _after, *seconds):
        self.aimed[kind, int(number)] = ("again", tuple(map(float, seconds)))

    def read_terms(self, *pairs):
        self.terms.update(values(pairs))

    def read_plan(self, task, *pairs):
        self.planned[int(task)] = values(pairs)

    def read_room(self, rows):
        self.room = int(rows)

    def read_outbox(self, more):
        self.outbox = int(more)

    def read_hold(self, _after, seconds):
        self.hold_back_after = float(seconds)

    def read_show(self, what):
        self.all = what == "all"

    def read_hide(self, *kinds):
        self.hidden.update(kinds)

    def read_until(self, time):
        self.until = float(time)

    def plan(self):
        if not (self.crashes or self.cuts or self.faults or self.aimed):
            return None
        return FaultPlan(crash=self.crashes, cut=self.cuts, **self.faults)

    def failures(self):
        """What befalls tasks, and TERMS[task]; None where all finish."""
        if not (self.planned or self.terms):
            return None
        tasks = sum(len(job["arrives"].split(",")) for job in self.jobs)
        terms = np.zeros(tasks, TERMS)
        for name, value in {"losses_max": 30_000, "wait_max": math.inf, "run_max": math.inf, **self.terms}.items():
            terms[name] = value

        def column(name, default, kind):
            return np.array([self.planned.get(task, {}).get(name, default) for task in range(tasks)], kind)

        return Planned(column("fails", 0, np.int16), column("after", math.inf, np.float64), np.full(tasks, 7, np.int16),
                       column("cancel", math.inf, np.float64)), terms

    def workload(self):
        tasks = sorted(
            (float(arrival), row, float(run_time)) for row, job in enumerate(self.jobs)
            for arrival, run_time in zip(job["arrives"].split(","), job["runs"].split(","), strict=True))
        asks = [[float(amount) for amount in job["asks"].split(",")] for job in self.jobs]
        rows, job_of = range(len(self.jobs)), []
        for job in self.jobs:
            job_of.append(job_of[parents(job)[0]] if parents(job) else max(job_of, default=-1) + 1)
        heads = [job for job in self.jobs if "after" not in job]
        stages = pl.DataFrame({
            "job": job_of, "name": [f"s{row}" for row in rows],
            "depends_on": [parents(job) for job in self.jobs],
            "kind": ["TASK" for _ in rows], "priority": [int(job.get("priority", "0")) for job in self.jobs],
            "constraints": [[] for _ in rows], "gang": [job.get("gang") == "yes" for job in self.jobs],
            **{resource.name: [asked[place] for asked in asks] for place, resource in enumerate(RESOURCES)},
        }, schema={**STAGE_COLUMNS, "gang": pl.Boolean, "cpu": pl.Float64, "memory": pl.Float64})
        jobs = pl.DataFrame({"job": [f"j{row}" for row in range(len(heads))],
                             "queue": [job.get("queue", "a") for job in heads], "user": ["ada" for _ in heads]})
        return make_workload(jobs, stages, pl.DataFrame({
            "stage": [row for _, row, _ in tasks], "index": list(range(len(tasks))),
            "arrival": [arrival for arrival, _, _ in tasks], "run_time": [run_time for _, _, run_time in tasks],
        }), RESOURCES)

    def fleet(self):
        machines = pl.DataFrame({
            "machine": [f"m{row}" for row in range(len(self.machines))], "cluster": ["c"] * len(self.machines),
            "present": [True] * len(self.machines), "cpu": [amounts[0] for amounts in self.machines],
            "memory": [amounts[1] for amounts in self.machines],
        })
        changes = pl.DataFrame(self.changes, orient="row", schema={
            "time": pl.Float64, "machine": pl.UInt32, "present": pl.Boolean, "cpu": pl.Float64, "memory": pl.Float64})
        return make_fleet(machines, RESOURCES, changes=changes)


def parents(job):
    """The lines that a job's line comes after."""
    return [int(row) for row in job.get("after", "").split(",") if row]


def values(pairs):
    """The values of settings written as name=value."""
    found = {}
    for pair in pairs:
        name, text = pair.split("=")
        try:
            found[name] = int(text) if text.isdigit() else float(text)
        except ValueError:
            found[name] = text == "yes" if text in ("yes", "no") else text
    return found


class Aim:
    """Befalls single messages, counted by kind in the order in which they are sent."""

    def __init__(self, faults):
        self.faults, self.sent, self.known = faults, Counter(), 0

    def __call__(self, network, now):
        """Let what was just sent be lost, late, or come again."""
        size, known = network.events.size, self.known
        self.known = int(size[SEQUENCE])
        if not self.faults or known == self.known:
            return
        waiting, again = np.sort(all_events(network.line, network.events), order="sequence"), []
        size[SIZE], network.line.size[TAKEN] = 0, network.line.size[PUT]
        for event in waiting:
            time, message = event["time"], network.flight[event["item"]]
            if event["sequence"] >= known and event["place"] == ARRIVING:
                self.sent[KINDS[message["kind"]]] += 1
                what, seconds = self.faults.get((KINDS[message["kind"]], self.sent[KINDS[message["kind"]]]), ("", ()))
                if what == "lose":
                    release_slot(network, event["item"])
                    continue
                time += sum(seconds) if what == "late" else 0.0
                again += [(now + each, message.copy()) for each in seconds if what == "again"]
            insert(network.events, time, event["sequence"], event["item"], event["place"])
        for time, message in again:
            enter(network, now, time, message)
        self.known = int(size[SEQUENCE])


def trace(text):
    """Every message that a script causes, with its answers, and how everything stands at the end."""
    script = Script(text)
    opened = open_federated(script.workload(), script.fleet(), MEGHA, Federation(**script.settings), 1, 1e6,
                            script.until, script.plan(), compiled=False, rows=script.room, outbox=script.outbox,
                            failures=script.failures(), hold_back_after=script.hold_back_after)
    aim = Aim(script.aimed)
    watch = Watch(opened.simulation, opened.network, opened.roles)
    lines, why = [], None
    while why != LOOP_DONE:
        why, handled = next_event(opened)
        watch(handled, opened.due[0])
        aim(opened.network, opened.simulation.clock.now)
        if handled:
            said = event_words(opened, script.hidden)
            if said and script.all:
                said = with_fields(opened, said, script.hidden)
            lines += [said] if said else []
    tallies = [*tallies_of(opened)] if script.all else []
    return "\n".join([*lines, *ending(opened, watch), *tallies]) + "\n"


def with_fields(opened, said, hidden):
    """An event in words, with all that each answer says beside what is in words already."""
    first, *answers = said.split("\n")
    posted = [row for row in opened.out.row[: int(np.argmax(opened.out.row["kind"] == NOBODY))]
              if KINDS[row["kind"]] not in hidden]
    for place, (answer, row) in enumerate(zip(answers, posted, strict=True)):
        more = [f"{name} {row[name]:g}" for name in MORE if row[name] != (NOBODY if name in NOBODYS else 0)]
        more += [f"start {row['start'] >> INCARNATION_BITS}.{row['start'] & MASK}"] if row["start"] else []
        answers[place] = f"{answer}  ({', '.join(more)})" if more else answer
    return "\n".join([first, *answers])


def tallies_of(opened):
    """How tasks have ended, what masters have counted, and what they and the workers know."""
    for task, ending in enumerate(opened.roles.jobs.ending):
        said = ", ".join(f"{name} {ending[name]}" for name in ending.dtype.names[1:] if ending[name])
        yield f"  task {task}: {OUTCOMES[ending['outcome']] or 'open'}{': ' if said else ''}{said}"
    for number, master in enumerate(opened.roles.masters):
        used = ", ".join(f"queue {queue} uses {' '.join(map(str, held))}" for queue, held in enumerate(master.total))
        yield f"  global master {number}: {counts(TALLY, master.tally.values())}; {used}"
    for number, local in enumerate(opened.roles.locals):
        active = "active" if local.standing.active else "standby"
        tally = counts(LOCAL_TALLY, local.tally.values())
        yield f"  local master {number}: {active}, epoch {local.standing.epoch}; {tally}"
    for machine, place in enumerate(opened.prepared.machine_order):
        if place >= 0:
            me = opened.roles.workers.machine[machine]
            free = " ".join(map(str, opened.roles.workers.free[:, machine]))
            yield (f"  worker {place}: epoch {me['epoch']}, incarnation {me['incarnation']}, "
                   f"heard at {me['heard']:.4f}, free {free}")


def counts(names, tally):
    """What was counted, in words."""
    return ", ".join(f"{name} {count}" for name, count in zip(names, tally, strict=True) if count)


def ending(opened, watch):
    """How everything stands."""
    sim, roles = opened.simulation, opened.roles
    lines = [f"at {sim.clock.now:g} s:"]
    for task, status in enumerate(sim.claims.status):
        machine = sim.progress.machine[task]
        where = f" on machine {opened.prepared.machine_order[machine]}" if machine >= 0 else ""
        phase, attempts = states_by_task(roles)["phase"][task], sim.progress.attempts[task]
        lines.append(f"  task {task}: {STATUSES[status]}{where}, attempts {attempts}; to its global master "
                     f"{PHASES[phase]}")
    for machine, place in enumerate(opened.prepared.machine_order):
        if place >= 0:
            local = roles.locals[watch.speaker(roles.topology.machine["cluster"][machine])]
            free = [int(amount) * resource.unit for amount, resource in
                    zip(sim.fleet.free[:, machine], RESOURCES, strict=True)]
            left = [STATES[row["state"]] for row in watch.rows(local.rows.row, local.rows.first, machine)]
            attempts = f"; attempts at its local master: {', '.join(left)}" if left else ""
            lines.append(f"  machine {place}: free {free[0]:g} cpu, {free[1]:g} memory{attempts}")
    return lines
