"""Small MapReduce batches: written by hand as tuples, or drawn by hypothesis, on machines of two kinds of slots."""
import numpy as np
import polars as pl
from hypothesis import strategies as st

from subak.fleet.table import make_fleet
from subak.resources import Resource
from subak.workload.table import STAGE_COLUMNS, make_workload

SLOTS = (Resource("map_slot", 1.0, "slots"), Resource("reduce_slot", 1.0, "slots"))
ONE_KIND = (Resource("slot", 1.0, "slots"),)


def batch(*jobs, resources=SLOTS, grouped=True, shuffle=0.0):
    """A workload of jobs (maps, seconds, reduces, seconds) or (maps, seconds, reduces, seconds, arrival).

    A stage without tasks is left out. Each job is a speed group of its own, unless not *grouped*.
    """
    stages, tasks = [], []
    for job, (maps, map_seconds, reduces, reduce_seconds, *arrival) in enumerate(jobs):
        index = 0
        for name, count, seconds in (("map", maps, map_seconds), ("reduce", reduces, reduce_seconds)):
            if count:
                asked = ([1.0] if len(resources) == 1 else [float(name == "map"), float(name == "reduce")])
                stages.append({
                    "job": job, "name": name, "depends_on": [len(stages) - 1] if index else [], "kind": "TASK",
                    "priority": 0, "constraints": [], "speed_group": job if grouped else 0,
                    "shuffle": shuffle if name == "reduce" else 0.0,
                    **{each.name: amount for each, amount in zip(resources, asked, strict=True)},
                })
                tasks += [(len(stages) - 1, index + number, float(arrival[0]) if arrival else 0.0, float(seconds))
                          for number in range(count)]
                index += count
    names = [f"j{job}" for job in range(len(jobs))]
    schema = {**STAGE_COLUMNS, "speed_group": pl.UInt32, "shuffle": pl.Float64,
              **{each.name: pl.Float64 for each in resources}}
    return make_workload(
        pl.DataFrame({"job": names, "queue": ["all"] * len(jobs), "user": ["ada"] * len(jobs)}),
        pl.DataFrame(stages, schema=schema),
        pl.DataFrame(tasks, schema={"stage": pl.UInt32, "index": pl.UInt32, "arrival": pl.Float64,
                                    "run_time": pl.Float64}, orient="row"),
        resources,
    )


def machines(*slots, resources=SLOTS, speeds=None):
    """A fleet of machines with the given tuples of slots."""
    table = {"machine": [f"m{row}" for row in range(len(slots))], "cluster": ["c"] * len(slots)}
    amounts = {each.name: [float(row[column]) for row in slots] for column, each in enumerate(resources)}
    return make_fleet(pl.DataFrame({**table, **amounts}), resources,
                      speeds=None if speeds is None else np.array(speeds, float))


@st.composite
def batches(draw, jobs_most=6, tasks_most=5, machines_most=4, arrivals=False, slots_most=1, whole=True):
    """A batch and its fleet: map machines, then reduce machines, a speed for each job and machine.

    Not *whole*, times are such that no two sums are equal by chance.
    """
    seconds = st.integers(1, 6) if whole else st.floats(1.0, 50.0)
    factors = st.sampled_from([0.25, 0.5, 1.0, 2.0]) if whole else st.floats(0.1, 1.0)
    jobs = []
    for _ in range(draw(st.integers(1, jobs_most))):
        maps, reduces = draw(st.tuples(st.integers(0, tasks_most), st.integers(0, tasks_most)).filter(any))
        jobs.append((maps, draw(seconds), reduces, draw(seconds), *((draw(seconds) - 1,) if arrivals else ())))
    kinds = [[(draw(st.integers(1, slots_most)) * (kind == 0), draw(st.integers(1, slots_most)) * (kind == 1))
              for _ in range(draw(st.integers(1, machines_most)))] for kind in range(2)]
    slots = [*kinds[0], *kinds[1]]
    speeds = [[draw(factors) for _ in slots] for _ in jobs]
    return batch(*jobs), machines(*slots, speeds=speeds)
