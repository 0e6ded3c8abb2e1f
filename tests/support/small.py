"""Small workloads and fleets: written by hand in one line, or drawn by hypothesis with few amounts and many ties."""
import math

import numpy as np
import polars as pl
from hypothesis import strategies as st

from subak.fleet.table import make_fleet
from subak.resources import Resource
from subak.workload.table import STAGE_COLUMNS, make_workload

CPU = (Resource("cpu", 1.0, "cores"),)
TWO = (Resource("cpu", 1.0, "cores"), Resource("memory", 1.0, "GB"))
THREE = (Resource("cpu", 0.5, "cores"), Resource("memory", 0.25, "GB"), Resource("gpu", 1.0, "cards"))


def staged(stages, tasks, resources=CPU, jobs=None):
    """A workload of dicts (stages: job, request, depends_on, priority, constraints) and tuples.

    A task is (stage, arrival, run time) or (stage, arrival, run time, estimate); a request is a tuple of amounts.
    """
    count = 1 + max(stage.get("job", 0) for stage in stages)
    names = jobs or [f"j{number}" for number in range(count)]
    rows = [
        {
            "job": stage.get("job", 0), "name": f"s{row}", "depends_on": stage.get("depends_on", []),
            "kind": "TASK", "priority": stage.get("priority", 0),
            "constraints": [dict(zip(("attribute", "operator", "value"), constraint, strict=True))
                            for constraint in stage.get("constraints", [])],
            **{resource.name: float(amount)
               for resource, amount in zip(resources, stage["request"], strict=True)},
        }
        for row, stage in enumerate(stages)
    ]
    schema = {**STAGE_COLUMNS, **{resource.name: pl.Float64 for resource in resources}}
    table = {
        "stage": [task[0] for task in tasks], "index": list(range(len(tasks))),
        "arrival": [float(task[1]) for task in tasks], "run_time": [float(task[2]) for task in tasks],
    }
    if any(len(task) > 3 for task in tasks):
        table["estimate"] = [float(task[3]) if len(task) > 3 and task[3] is not None else None for task in tasks]
    return make_workload(
        pl.DataFrame({"job": names, "queue": ["all/of/us"] * count, "user": ["ada"] * count}),
        pl.DataFrame(rows, schema=schema),
        pl.DataFrame(table, schema_overrides={"estimate": pl.Float64} if "estimate" in table else None),
        resources,
    )


def plain(*tasks, resources=CPU):
    """A workload of tasks (arrival, run time, amount of each resource), each a job of its own."""
    stages = [{"job": row, "request": task[2:]} for row, task in enumerate(tasks)]
    return staged(stages, [(row, task[0], task[1]) for row, task in enumerate(tasks)], resources)


def fleet_of(*capacities, resources=CPU, present=None, attributes=(), changes=()):
    """A fleet of machines with the given tuples of amounts.

    *attributes* are (machine, attribute, value), *changes* (time, machine, present, amounts...).
    """
    rows = len(capacities)
    machines = pl.DataFrame({
        "machine": [f"m{row}" for row in range(rows)], "cluster": ["c"] * rows,
        "present": [True] * rows if present is None else list(present),
        **{resource.name: [float(capacity[column]) for capacity in capacities]
           for column, resource in enumerate(resources)},
    })
    names = ["time", "machine", "present", *[resource.name for resource in resources]]
    kinds = [pl.Float64, pl.UInt32, pl.Boolean, *[pl.Float64] * len(resources)]
    return make_fleet(
        machines, resources,
        attributes=pl.DataFrame([tuple(row) for row in attributes], orient="row",
                                schema={"machine": pl.UInt32, "attribute": pl.String, "value": pl.String}),
        changes=pl.DataFrame([tuple(row) for row in changes], orient="row",
                             schema=dict(zip(names, kinds, strict=True))),
    )


def some_workload(jobs=40, tasks=3, seed=5):
    """Jobs of a few alike tasks that arrive at random, and three machines that they fill."""
    random = np.random.default_rng(seed)
    stages = [{"job": job, "request": (int(random.integers(1, 4)), int(random.integers(1, 5)))} for job in range(jobs)]
    arrivals = np.cumsum(random.exponential(3.0, jobs))
    rows = [(job, float(arrivals[job]), float(random.exponential(20.0))) for job in range(jobs) for _ in range(tasks)]
    return staged(stages, rows, TWO), fleet_of((4, 8), (4, 4), (8, 8), resources=TWO)


# -- drawn ones ------------------------------------------------------------------------------------------------------
# Capacities are powers of two and units fractions of two, so that every score is exact and equal scores are equal.

ARRIVALS = [0, 0, 0, 1, 1, 2, 3, 4.5, 6]
RUN_TIMES = [0, 0, 1, 1, 2, 3, 3.5, math.inf]  # the endless one is last
CONSTRAINTS = [
    ("rack", "=", "a"), ("rack", "=", ""), ("rack", "!=", "a"), ("rack", "!=", ""), ("level", ">=", "2"),
    ("level", "<", "2"), ("level", "<=", "1"), ("level", ">", "0"), ("color", "=", "red"),
]


def amounts(resources, choices):
    """Natural amounts: whole units drawn from *choices*."""
    return st.tuples(*[st.sampled_from([unit * resource.unit for unit in choices]) for resource in resources])


@st.composite
def workloads(draw, resources, task_most=40, dependencies=True, endless=True):
    """1 to *task_most* tasks in several jobs and stages; no stage is empty."""
    stage_count = draw(st.integers(1, 6))
    stages = []
    for row in range(stage_count):
        job = draw(st.integers(0, stages[-1]["job"] + 1)) if stages else 0
        before = [number for number, stage in enumerate(stages) if stage["job"] == job]
        request = draw(amounts(resources, [0, 1, 1, 2, 3]))
        if not any(request):
            request = (resources[0].unit, *request[1:])
        stages.append({
            "job": job, "request": request, "priority": draw(st.integers(0, 2)),
            "depends_on": draw(st.lists(st.sampled_from(before), max_size=2)) if before and dependencies else [],
            "constraints": draw(st.lists(st.sampled_from(CONSTRAINTS), max_size=2)) if row % 2 else [],
        })
    extra = draw(st.lists(st.integers(0, stage_count - 1), max_size=task_most - stage_count))
    of_task = [*range(stage_count), *extra]
    with_estimates = draw(st.booleans())
    tasks = []
    for stage in of_task:
        times = (draw(st.sampled_from(ARRIVALS)), draw(st.sampled_from(RUN_TIMES[: None if endless else -1])))
        estimate = (draw(st.sampled_from([None, 1, 2, 4])),) if with_estimates else ()
        tasks.append((stage, *times, *estimate))
    return staged(stages, tasks, resources)


@st.composite
def fleets(draw, resources, changes_most=6):
    """1 to 8 machines, or a few behind one or two whole blocks of nearly useless ones."""
    few = draw(st.lists(amounts(resources, [0, 1, 2, 4, 4, 8]), min_size=1, max_size=8))
    useless = draw(st.sampled_from([0, 0, 63, 64, 130]))
    capacities = [tuple(0.0 for _ in resources)] * useless + few
    usable = st.integers(useless, len(capacities) - 1)
    present = [True] * len(capacities)
    for machine in draw(st.lists(usable, max_size=2)):
        present[machine] = False
    attributes = {}
    for machine in draw(st.lists(usable, max_size=6)):
        attributes[machine, "rack"] = draw(st.sampled_from(["a", "b"]))
        attributes[machine, "level"] = draw(st.sampled_from(["0", "1", "2", "high"]))
    changes = draw(st.lists(
        st.tuples(st.sampled_from(ARRIVALS), usable, st.booleans(), amounts(resources, [0, 1, 2, 4, 8])),
        max_size=changes_most,
    ))
    return fleet_of(
        *capacities, resources=resources, present=present,
        attributes=[(machine, name, value) for (machine, name), value in attributes.items()],
        changes=[(time, machine, there, *amount) for time, machine, there, amount in changes],
    )


@st.composite
def cases(draw, **options):
    """A workload and a fleet of the same resources."""
    resources = draw(st.sampled_from([CPU, TWO, THREE]))
    return draw(workloads(resources, **options)), draw(fleets(resources))
