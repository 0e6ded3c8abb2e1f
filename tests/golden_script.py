"""Golden scripts: a few lines that say what federation runs what, and below a line of dashes every message it causes.

    set global_masters=2 delay=0.01           settings of the federation
    machine 1 2                               amounts of cpu and memory; one line a machine
    change 3 0 leaves                         at 3 s machine 0 leaves; or: takes 1 2
    job queue=a asks=0.25,0.75 arrives=0,0 runs=5,5 gang=yes priority=1
    crash local master 0 at 1 for 2           without `for`: for ever
    cut global master 0, workers from 1 until 2
    faults duplication=1 late_max=0.01 faults_until=0.5
    hide TICK ALIVE LEASE                     kinds that are not shown
    until 3

Times are seconds. What follows # is a remark.
"""
import math
import re

import polars as pl

from subak.federation.megha.global_master.state import PHASES
from subak.federation.megha.local_master.state import STATES
from subak.federation.settings import Federation
from subak.fleet.table import make_fleet
from subak.placement.claims import STATUSES
from subak.resources import Resource
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.fault_plan import Crash, Cut, FaultPlan
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.invariants import Watch
from subak.simulator.torture.message_text import event_words
from subak.simulator.torture.torture import next_event
from subak.workload.table import STAGE_COLUMNS, make_workload

RESOURCES = (Resource("cpu", 0.25, "cores"), Resource("memory", 0.25, "GB"))


class Script:
    """A script that was read."""

    def __init__(self, text):
        self.settings, self.faults = {"service_scale": 0.0, "heartbeat": 1000.0, "local_masters": 1}, {}
        self.machines, self.changes, self.jobs = [], [], []
        self.crashes, self.cuts, self.hidden, self.until = [], [], set(), math.inf
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

    def read_hide(self, *kinds):
        self.hidden.update(kinds)

    def read_until(self, time):
        self.until = float(time)

    def plan(self):
        if not (self.crashes or self.cuts or self.faults):
            return None
        return FaultPlan(crash=self.crashes, cut=self.cuts, **self.faults)

    def workload(self):
        tasks = sorted(
            (float(arrival), row, float(run_time)) for row, job in enumerate(self.jobs)
            for arrival, run_time in zip(job["arrives"].split(","), job["runs"].split(","), strict=True))
        asks = [[float(amount) for amount in job["asks"].split(",")] for job in self.jobs]
        rows = range(len(self.jobs))
        stages = pl.DataFrame({
            "job": list(rows), "name": [f"s{row}" for row in rows], "depends_on": [[] for _ in rows],
            "kind": ["TASK" for _ in rows], "priority": [int(job.get("priority", "0")) for job in self.jobs],
            "constraints": [[] for _ in rows], "gang": [job.get("gang") == "yes" for job in self.jobs],
            **{resource.name: [asked[place] for asked in asks] for place, resource in enumerate(RESOURCES)},
        }, schema={**STAGE_COLUMNS, "gang": pl.Boolean, "cpu": pl.Float64, "memory": pl.Float64})
        jobs = pl.DataFrame({"job": [f"j{row}" for row in rows], "queue": [job.get("queue", "a") for job in self.jobs],
                             "user": ["ada" for _ in rows]})
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


def trace(text):
    """Every message that a script causes, with its answers, and how everything stands at the end."""
    script = Script(text)
    opened = open_federated(script.workload(), script.fleet(), MEGHA, Federation(**script.settings), 1, 1e6,
                            script.until, script.plan(), compiled=False)
    watch = Watch(opened.simulation, opened.network, opened.roles)
    lines, why = [], None
    while why != LOOP_DONE:
        why, handled = next_event(opened)
        watch(handled, opened.due[0])
        if handled:
            said = event_words(opened, script.hidden)
            lines += [said] if said else []
    return "\n".join([*lines, *ending(opened, watch)]) + "\n"


def ending(opened, watch):
    """How everything stands."""
    sim, roles = opened.simulation, opened.roles
    lines = [f"at {sim.clock[0]:g} s:"]
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
