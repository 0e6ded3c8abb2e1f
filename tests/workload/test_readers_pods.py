"""Kubernetes' pods and nodes, by hand in the form that kubectl prints."""

import json
from pathlib import Path

import pytest

from subak.errors import InputError
from subak.workload.constraints import satisfied
from subak.workload.predicates import Constraint
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.kubernetes.objects import Container, PodSpec, Resources
from subak.workload.readers.kubernetes.requests import amount, effective
from subak.workload.readers.options import Options

DAY = "2024-01-31T"


def pod(
    name,
    *,
    start="12:00:05",
    end="12:10:05",
    phase="Succeeded",
    owner=("Job", "train"),
    spec=None,
    requests=None,
    created="12:00:00",
    **status,
):
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{DAY}{start}Z"}] if start else []
    ended = [{"state": {"terminated": {"finishedAt": f"{DAY}{end}Z"}}}] if end else []
    owners = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else None
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "creationTimestamp": f"{DAY}{created}Z",
            "ownerReferences": owners,
        },
        "spec": {
            "containers": [{"resources": {"requests": requests or {"cpu": "500m", "memory": "4Gi"}}}],
            **(spec or {}),
        },
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": ended, **status},
    }


def node(name, labels=None, taints=None, **has):
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", **has}},
    }


def read(tmp_path: Path, **files):
    options = files.pop("options", {})
    for name, items in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))
    return READERS["pods"].read(tmp_path, Options(**options), ignore_progress)


def requiring(*terms):
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        }
    }


def term(*requirements):
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": list(values)} for key, operator, *values in requirements
        ]
    }


# Quantities and requests


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", 0.5),
        ("4Gi", 2.0**32),
        ("1k", 1000.0),
        ("2", 2.0),
        (2, 2.0),
        (0.5, 0.5),
        ("1e3", 1000.0),
        ("12E", 1.2e19),
        ("1.5M", 1.5e6),
        ("100u", 1e-4),
        (".5", 0.5),
        ("1E2", 100.0),
    ],
)
def test_quantities(text, value):
    assert amount(text, "x") == pytest.approx(value, rel=1e-15)


def containers(*requests, restart=None):
    return tuple(Container(Resources({"cpu": each}), restart) for each in requests)


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        (PodSpec(containers(1, 2)), 3),
        (PodSpec(containers(1), containers(5, 2)), 5),
        (PodSpec(containers(1), containers(3, restart="Always")), 4),
        # A sidecar of 3, an init container of 5 beside it, another of 1 beside both sidecars: 8 at most, then 1 + 3 + 2
        (
            PodSpec(
                containers(1),
                (*containers(3, restart="Always"), *containers(5), *containers(2, restart="Always"), *containers(1)),
            ),
            8,
        ),
        (PodSpec(containers(1), overhead={"cpu": "250m"}), 1.25),
        (PodSpec(containers(1, 2), resources=Resources({"cpu": 2})), 2),
        (PodSpec((Container(Resources(None, {"cpu": 7})),)), 7),
        (PodSpec((Container(Resources({"cpu": 1}, {"cpu": 7})),)), 1),
    ],
)
def test_what_kubernetes_reserves(spec, cpu):
    assert effective(spec, "x") == {"cpu": cpu, "pods": 1.0}


# Pods


def test_pods_of_an_owner_are_a_job(tmp_path):
    conversion = read(
        tmp_path,
        pods=[
            pod("t-0", spec={"priority": 7}),
            pod("t-1", end="12:20:05", spec={"priority": 7}, requests={"cpu": 1, "nvidia.com/gpu": "2"}),
            pod("lone", owner=None, created="12:00:30", start="12:00:40", phase="Failed"),
            pod("evicted", owner=None, phase="Failed", reason="Evicted", created="12:00:31"),
            pod("web", start="12:30:00", end=None, phase="Running", owner=("ReplicaSet", "web"), created="12:01:00"),
            pod("queued", start=None, end=None, phase="Pending"),
            pod("vanished", end=None, phase="Failed", owner=None),
        ],
    )
    workload = conversion.workload
    assert workload.jobs.rows() == [
        ("ml/Job/train", "ml", "unknown"),
        ("ml/Pod/lone", "ml", "unknown"),
        ("ml/Pod/evicted", "ml", "unknown"),
        ("ml/ReplicaSet/web", "ml", "unknown"),
    ]
    assert [(each.name, each.of) for each in workload.resources] == [
        ("cpu", "cores"),
        ("memory", "MiB"),
        ("pods", "pods"),
        ("gpu", "nvidia.com/gpu"),
    ]
    assert workload.requests.tolist() == [
        [500, 1000, 500, 500, 500],
        [4096, 0, 4096, 4096, 4096],
        [1] * 5,
        [0, 2, 0, 0, 0],
    ]
    assert workload.stages["kind"].to_list() == ["TASK", "TASK", "TASK", "TASK", "SERVICE"]
    assert workload.stages["priority"].to_list() == [7, 7, 0, 0, 0]
    assert workload.tasks.select("arrival", "run_time", "recorded_start", "outcome").rows() == [
        (0.0, 600.0, 5.0, "FINISH"),
        (0.0, 1200.0, 5.0, "FINISH"),
        (30.0, 565.0, 40.0, "FAIL"),
        (31.0, 600.0, 31.0, "EVICT"),
        (60.0, 0.0, 1800.0, "CENSORED"),
    ]
    assert conversion.accounts[0].dropped == {
        "never started, so its run time is unknown": 1,
        "how long it ran is unknown": 1,
    }
    assert conversion.dropped["line"].to_list() == [6, 7]


def test_pods_that_had_one_name_after_another_are_two(tmp_path):
    """As those of a StatefulSet; what is the same is known by its uid, else by its name and creation."""
    first, second = (pod("db-0", owner=("StatefulSet", "db"), created=created) for created in ("12:00:00", "12:00:04"))
    conversion = read(tmp_path, a=[first], b=[first, second])
    assert (conversion.accounts[0].used, sum(conversion.accounts[0].dropped.values())) == ({"kept": 2}, 1)
    first["metadata"]["uid"] = second["metadata"]["uid"] = "u"
    assert read(tmp_path, a=[first], b=[second]).accounts[0].used == {"kept": 1}


def test_what_the_api_itself_returns(tmp_path):
    """Its lists say of what kind all items are; a byte order mark, as PowerShell writes it, is no part of them."""
    bare = {name: value for name, value in pod("x").items() if name != "kind"}
    (tmp_path / "x.json").write_text("\ufeff" + json.dumps({"kind": "PodList", "items": [bare]}))
    conversion = READERS["pods"].read(tmp_path / "x.json", Options(), ignore_progress)
    assert conversion.accounts[0].used == {"kept": 1}


@pytest.mark.parametrize(
    ("censored", "times"), [("keep", [600.0, 300.0]), ("forever", [600.0, float("inf")]), ("drop", [600.0])]
)
def test_what_still_runs(tmp_path, censored, times):
    pods = [pod("a"), pod("b", start="12:05:05", end=None, phase="Running", created="12:01:00")]
    assert read(tmp_path, pods=pods, options={"censored": censored}).workload.tasks["run_time"].to_list() == times


def test_the_last_of_several_lists_counts(tmp_path):
    conversion = read(
        tmp_path,
        a=[pod("x", end=None, phase="Running"), node("n", cpu="4")],
        b=[pod("x"), node("n"), {"kind": "Service"}],
    )
    assert conversion.workload.tasks["outcome"].to_list() == ["FINISH"]
    assert conversion.fleet.capacity.tolist() == [[8000], [32768], [110]]
    assert [(account.table, account.rows, sum(account.dropped.values())) for account in conversion.accounts] == [
        ("pods", 2, 1),
        ("nodes", 2, 1),
        ("other objects", 1, 1),
    ]


# Where they may run


NODES = [
    node("n0", {"zone": "a", "gen": "2", "old": ""}, [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]),
    node("n1", {"zone": "b", "gen": "3"}),
    node("n2", {"zone": "c", "gen": "ten"}, [{"key": "soft", "effect": "PreferNoSchedule"}]),
]
TOLERANT = {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({}, "12"),
        (TOLERANT, "012"),
        ({"tolerations": [{"key": "gpu", "value": "x"}]}, "012"),
        ({"tolerations": [{"key": "gpu", "value": "y"}]}, "12"),
        ({"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]}, "12"),
        ({**TOLERANT, "nodeSelector": {"zone": "a"}}, "0"),
        ({**TOLERANT, "nodeSelector": {"old": ""}}, "0"),
        ({**TOLERANT, **requiring(term(("zone", "In", "a", "b")))}, "01"),
        ({**TOLERANT, **requiring(term(("zone", "NotIn", "a", "b")))}, "2"),
        ({**TOLERANT, **requiring(term(("old", "Exists")))}, "0"),
        ({**TOLERANT, **requiring(term(("old", "DoesNotExist")))}, "12"),
        ({**TOLERANT, **requiring(term(("gen", "Gt", "2")))}, "1"),
        ({**TOLERANT, **requiring(term(("gen", "Lt", "3")))}, "0"),
        (
            {**TOLERANT, **requiring(term(("zone", "In", "a")), term(("gen", "Gt", "2"), ("zone", "In", "b", "c")))},
            "01",
        ),
        ({**TOLERANT, **requiring()}, ""),
        ({**TOLERANT, **requiring({})}, ""),
        (
            {**TOLERANT, **requiring({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]})},
            "2",
        ),
    ],
)
def test_constraints_are_met_by_the_nodes_that_kubernetes_would_take(tmp_path, spec, nodes):
    conversion = read(tmp_path, pods=[pod("p", spec=spec)], nodes=NODES)
    met = [True] * len(NODES)
    for each in conversion.workload.stages["constraints"][0]:
        constraint = Constraint(**each)
        met = [
            held and bool(more)
            for held, more in zip(
                met, satisfied(constraint, conversion.fleet.attribute(constraint.attribute)), strict=True
            )
        ]
    assert "".join(str(place) for place, held in enumerate(met) if held) == nodes


def test_pods_of_a_node_itself_stay_there(tmp_path):
    spec = {"nodeName": "n1", **TOLERANT}
    conversion = read(
        tmp_path, pods=[pod("static", owner=("Node", "n1"), spec=spec), pod("other", spec=spec)], nodes=NODES
    )
    assert [[tuple(each.values()) for each in stage] for stage in conversion.workload.stages["constraints"]] == [
        [("metadata.name", "=", "n1")],
        [],
    ]


# Mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "Pod",\n "metadata": {"name" "p"}}', r"x.json, line 2, column 22: is no JSON"),
        ('{"kind": "List", "items": [{"kind": "Pod"', "is no JSON, or is cut off"),
        (
            json.dumps({"kind": "List", "items": [pod("p", spec={"priority": "high"})]}),
            r"item 1 \(Pod p\): Expected `int`, got `str` - at `\$.spec.prio",
        ),
        (
            json.dumps(pod("p", requests={"cpu": "lots"})),
            r"item 1 \(Pod p\), cpu: a quantity must be a number .*, not 'lots'",
        ),
        (json.dumps(pod("p", requests={"cpu": "1e"})), "a quantity must be a number .*, not '1e'"),
        (json.dumps(pod("p", requests={"cpu": "1Ex"})), "a quantity must be a number .*, not '1Ex'"),
        (json.dumps(pod("p", requests={"": "1"})), r"item 1 \(Pod p\): a resource needs a name"),
        ('{"items": []}', "has no kind; it must be what kubectl"),
        ('{"kind": "List", "items": [{}]}', "item 1: has no kind"),
        (json.dumps(pod("p", created="25:00:00")), r"item 1 \(Pod p\): arrival must be an instant"),
        (json.dumps(pod("p", spec=requiring(term(("a", "Is", "b"))))), "operator must be one of In, NotIn"),
        ('{"kind": "List", "items": []}', "has no pods"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message):
        READERS["pods"].read(tmp_path / "x.json", Options(), ignore_progress)
