"""Kubernetes' pods, as `kubectl get` prints them: one file, or a folder of *.json, of pods and of nodes.

    kubectl get pods --all-namespaces --output=json > pods.json
    kubectl get nodes --output=json > nodes.json

Pods that are gone are not in such a list: one that is taken now and then, of a cluster whose finished pods stay for a
while, shows more than one. A pod (by its uid, else its name and creation) that is in several files is read once, as it
stands in the last by name.

- A pod is a task; those of one owner (Job, ReplicaSet, ...) are one job, named namespace/kind/name. The queue is the
  namespace, the priority the pod's (spec.priority). Who made it is not in the list.
- It asks for what Kubernetes reserves for it (init containers, sidecars, overhead and limits counted as it does) of
  cpu, memory and whatever else it names, such as nvidia.com/gpu; and for one of the `pods` that a node has room for.
- Node selectors and required node affinity are constraints; so are the taints of the nodes that it does not tolerate.
  Labels are attributes of the machines. Affinity to other pods, spreading, and what is only preferred are not modelled;
  the remarks count them.
- It arrives at its creationTimestamp, counted from the first pod. It starts when it was scheduled (the condition
  PodScheduled, else status.startTime), which is the recorded start: from then on its node holds its requests, whatever
  its phase, also while it is Pending for an image. It runs until its last container finished, or where none is named,
  as of evicted pods, until the last of its conditions changed. A pod that was never scheduled is dropped; so is one
  that ended nobody knows when.
- Succeeded is FINISH; Failed is FAIL, of an evicted pod EVICT, of a lost node LOST, at a deadline KILL. One that has
  not ended has run until the last instant that any pod names, and its end is unknown (CENSORED); `--censored drop`
  leaves it out, and with `forever` it never ends.
- A pod of a ReplicaSet, StatefulSet, DaemonSet or ReplicationController, of a node itself, or of nobody that still
  runs, is a SERVICE; all others are TASKs.
- The fleet is the nodes, with what of each may be allocated. Without a node in the files none is written, and the
  constraints stand as they are.

Source: the API reference, https://kubernetes.io/docs/reference/kubernetes-api/ (v1.32). Made from that schema and lists
written by hand.
"""
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from subak.dates import UTC_NAME, calendar_at
from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.readers.conversion import DROPPED_COLUMNS, Account, Conversion, Reader, account_of, kept_load, notes
from subak.workload.readers.files.json_text import json_files
from subak.workload.readers.files.stream import Advance
from subak.workload.readers.files.times import instant_text, stamp_seconds
from subak.workload.readers.kubernetes.affinity import Places, Predicate
from subak.workload.readers.kubernetes.nodes import fleet_of
from subak.workload.readers.kubernetes.objects import Item, Node, Pod, PodStatus, items_of
from subak.workload.readers.kubernetes.requests import Amounts, effective, in_unit_of, resources_of
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.rows import NEVER_STARTED, SEEN_BEFORE, usual_rules, workload_of_rows
from subak.workload.readers.rulings import KEPT, Ruling, with_ruling
from subak.workload.table import OUTCOMES, TIME_0

ENDED = {"Succeeded": "FINISH", "Failed": "FAIL"}
REASONS = {"Evicted": "EVICT", "Preempting": "EVICT", "Preempted": "EVICT", "NodeLost": "LOST", "NodeShutdown": "LOST",
           "Terminated": "LOST", "DeadlineExceeded": "KILL"}
SERVICES = ("ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Node")
KINDS = ("Pod", "Node")
LICENCE = "the cluster's own"
TIMES = ("arrival", "start", "end", "latest")
TEXTS = dict.fromkeys(("file", "job", "queue", "phase", "outcome", "kind", *TIMES), pl.String)
SCHEMA = {"line": pl.Int64, "place": pl.Int64, "priority": pl.Int64, "constraint_set": pl.Int64,
          "later": pl.Boolean, **TEXTS}


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read lists of pods and nodes. Raises InputError naming the line, or the item and the field, of a mistake."""
    items = [item for path in json_files(source) for item in items_of(path, advance)]
    pods, nodes = ([item for item in items if item.kind == kind] for kind in KINDS)
    if not pods:
        raise InputError(f"{source}: has no pods")
    used = _last_of_each(nodes)
    places = Places(taint for item in used if isinstance(item.value, Node) for taint in item.value.spec.taints or ())
    asked = [effective(pod.spec, item.where) for item, pod in _of_pods(pods)]
    resources = resources_of(asked)
    sets: dict[tuple[Predicate, ...], int] = {}
    table = _table(pods, places, sets)
    first, last = table.select(first=pl.min("arrival"), last=pl.max("arrival")).row(0)
    calendar = calendar_at(float(first), UTC_NAME)
    options = options.placed(calendar, float(last) - float(first))
    ruled = _with_rulings(table, _amounts(pods, asked, resources), resources, options)
    kept, loads = kept_load(ruled, source, "pods", tuple(resources.values()), options, "item")
    accounts, dropped = _accounts(items, nodes, used, ruled)
    remarks = _remarks(kept, pods, ruled, places, used)
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "censored": options.censored}
    provenance = Provenance(source.name.split(".")[0], f"{source.name}: pods as kubectl prints them", LICENCE,
                            notes(accounts, remarks, chosen), calendar)
    texts = [[{"attribute": name, "operator": operator, "value": value} for name, operator, value in each]
             for each in sets]
    workload = workload_of_rows(kept, tuple(resources.values()), provenance, texts)
    fleet = fleet_of(used, resources, places, provenance) if used else None
    return Conversion(workload, fleet, accounts, remarks, dropped, loads=loads)


READER = Reader("pods as kubectl get pods --output=json prints them: a file, or a folder of *.json; nodes among them "
                "are the fleet", json_files, read, frozenset({*DATED, "censored", "max_lost"}))


def _of_pods(items: list[Item]) -> Iterator[tuple[Item, Pod]]:
    return ((item, item.value) for item in items if isinstance(item.value, Pod))


def _last_of_each(nodes: list[Item]) -> list[Item]:
    """Return each node as it stands in the last file."""
    last = {item.value.metadata.name: item for item in nodes if item.value is not None}
    return list(last.values())


# Pods


def _table(pods: list[Item], places: Places, sets: dict[tuple[Predicate, ...], int]) -> pl.DataFrame:
    """Return a row a pod: texts and numbers as they stand, times in seconds since 1970."""
    rows = []
    last = {_identity(pod): number for number, (_, pod) in enumerate(_of_pods(pods))}
    for number, (item, pod) in enumerate(_of_pods(pods)):
        owners = pod.metadata.owner_references or ()
        owner = next((each for each in owners if each.controller), owners[0] if owners else None)
        kind, name = ("Pod", pod.metadata.name) if owner is None else (owner.kind, owner.name)
        predicates = places.predicates(pod.spec, kind == "Node", item.where)
        times = _times(pod.status)
        runs = pod.status.phase not in ENDED and times["start"] is not None
        rows.append({
            "line": item.place, "file": item.path.name, "place": number,
            "later": last[_identity(pod)] != number, "job": f"{pod.metadata.namespace}/{kind}/{name}",
            "queue": pod.metadata.namespace.replace("/", "_"), "priority": pod.spec.priority,
            "constraint_set": sets.setdefault(predicates, len(sets)) if predicates else None,
            "phase": pod.status.phase, "outcome": "CENSORED" if runs else _outcome(pod.status),
            "kind": "SERVICE" if kind in SERVICES or (runs and owner is None) else "TASK",
            "arrival": pod.metadata.creation_timestamp, **times,
        })
    table = pl.DataFrame(rows, SCHEMA)
    _refuse(table, pods)
    return table.with_columns(stamp_seconds(pl.col(name)).alias(name) for name in TIMES)


def _identity(pod: Pod) -> tuple[str | None, ...]:
    """Return what no other pod has: a StatefulSet gives the name of one that is gone to the next."""
    of = pod.metadata
    return (of.uid,) if of.uid else (of.namespace, of.name, of.creation_timestamp)


def _times(status: PodStatus) -> dict[str, str | None]:
    """Return start and end of a pod, and the latest instant that it names, as they stand."""
    conditions = status.conditions or ()
    scheduled = next((each.last_transition_time for each in conditions
                      if (each.type, each.status) == ("PodScheduled", "True")), None)
    ends = [each.state.terminated.finished_at for each in status.container_statuses or () if each.state.terminated]
    changes = [each.last_transition_time for each in conditions if each.type != "PodScheduled"]
    known = [text for text in (*changes, scheduled, status.start_time, *ends) if text]
    end = max(filter(None, ends or changes), default=None) if status.phase in ENDED else None
    return {"start": scheduled or status.start_time, "end": end, "latest": max(known, default=None)}


def _outcome(status: PodStatus) -> str | None:
    return REASONS.get(status.reason or "", ENDED[status.phase]) if status.phase in ENDED else None


def _refuse(table: pl.DataFrame, pods: list[Item]) -> None:
    """Raise InputError for the first pod with a time, a priority or a namespace that is none."""
    rules = [(pl.col(name).is_not_null() & stamp_seconds(pl.col(name)).is_null(), name,
              f"{name} must be an instant such as 2024-01-31T12:00:00Z") for name in TIMES]
    rules.append((~pl.col("priority").is_between(-(2**31), 2**31 - 1), "priority", "priority must fit 32 bits"))
    rules.append((~pl.col("queue").str.contains(r"^[^/[:cntrl:]]+$"), "queue", "namespace must be a name"))
    for bad, name, rule in rules:
        rows = table.filter(bad)
        if len(rows):
            raise InputError(f"{pods[rows['place'][0]].where}: {rule}, not {str(rows[name][0])[:60]!r}")


def _amounts(pods: list[Item], asked: list[Amounts], resources: dict[str, Resource]) -> pl.DataFrame:
    return pl.DataFrame({each.name: [in_unit_of(name, amounts.get(name, 0.0), each, item.where)
                                     for item, amounts in zip(pods, asked, strict=True)]
                         for name, each in resources.items()}, dict.fromkeys((r.name for r in resources.values()),
                                                                             pl.Float64))


def _with_rulings(table: pl.DataFrame, amounts: pl.DataFrame, resources: dict[str, Resource],
                options: Options) -> pl.DataFrame:
    last_instant = table.select(pl.max_horizontal(pl.max(name) for name in TIMES)).item()
    first = table["arrival"].min()
    running = pl.col("outcome") == "CENSORED"
    end = pl.when(running).then(pl.lit(last_instant)).otherwise("end")
    forever = running & (options.censored == "forever")
    rows = pl.concat([table, amounts], how="horizontal").with_columns(
        arrival=pl.col("arrival") - first, count=pl.lit(1, pl.Int64), origin=pl.lit(first),
        recorded_start=pl.max_horizontal("arrival", "start") - first,
        run_time=pl.when(forever).then(float("inf")).otherwise(end - pl.col("start")),
        outcome=pl.col("outcome").cast(OUTCOMES))
    return with_ruling(rows, [
        Ruling(pl.col("later"), f"pod {SEEN_BEFORE}: as a later file has it, it is read", load=False),
        Ruling(pl.col("start").is_null() | pl.col("outcome").is_null(), NEVER_STARTED, load=False),
        Ruling(running if options.censored == "drop" else pl.lit(False), "still running", load=False),
        *usual_rules(tuple(resources.values()), options),
    ])


# The account


def _accounts(items: list[Item], nodes: list[Item], used: list[Item],
              ruled: pl.DataFrame) -> tuple[tuple[Account, ...], pl.DataFrame]:
    """Return the accounts of pods, nodes and other objects, and the list of what was dropped."""
    kept = set(map(id, used))
    of_nodes = [("nodes", item.path.name, item.place, KEPT if id(item) in kept else "node seen before: as a later file "
                 "has it, it is read") for item in nodes]
    others = [("other objects", item.path.name, item.place, "neither a pod nor a node") for item in items
              if item.kind not in KINDS]
    schema = dict(zip(DROPPED_COLUMNS, (pl.String, pl.String, pl.Int64, pl.String), strict=False))
    listed = pl.DataFrame([*of_nodes, *others], schema, orient="row")
    of_pods = ruled.select(table=pl.lit("pods"), file="file", line="line", reason="ruling")
    accounts = [account_of("pods", ruled)]
    for name, count in (("nodes", len(of_nodes)), ("other objects", len(others))):
        if count:
            accounts.append(account_of(name, listed.filter(table=name).rename({"reason": "ruling"})))
    nothing = [pl.lit(None, pl.String).alias(name) for name in DROPPED_COLUMNS[len(schema):]]
    return tuple(accounts), pl.concat([of_pods, listed]).filter(pl.col("reason") != KEPT).with_columns(nothing)


def _remarks(kept: pl.DataFrame, pods: list[Item], ruled: pl.DataFrame, places: Places,
             used: list[Item]) -> dict[str, int | float | str]:
    specs = [pod.spec for _, pod in _of_pods([pods[place] for place in kept["place"]])]
    affinities = [spec.affinity for spec in specs if spec.affinity is not None]
    node_affinities = [each.node_affinity for each in affinities if each.node_affinity is not None]
    counts: dict[str, Any] = {
        "pods that still run": kept.filter(outcome="CENSORED").height,
        "pods with constraints": kept["constraint_set"].count(),
        "pods that must or like to be near, or far from, others (not modelled)": sum(
            bool(each.pod_affinity or each.pod_anti_affinity) for each in affinities),
        "pods that prefer nodes (not modelled)": sum(bool(each.preferred) for each in node_affinities),
        "pods that are to be spread (not modelled)": sum(bool(spec.topology_spread_constraints) for spec in specs),
        "pods with run time 0": kept.filter(run_time=0.0).height,
        "taints of nodes": len(places.taints), "attributes made of requirements": len(places.derived),
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    said[TIME_0] = instant_text(float(ruled["origin"][0]))
    return said if used else said | {"fleet": "none written: there is no node in the files"}
