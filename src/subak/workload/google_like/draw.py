"""Draws tasks and jobs by number, so that any range can be drawn by itself.

A *unit* is what arrives: a job with its tasks, or a lone task where the parameters have no jobs. Units and tasks are
numbered from 0; every column depends on the seed and the number only.
"""
from typing import NamedTuple

import numpy as np

from subak.workload.google_like.laws import (
    bernoulli_sets,
    discrete,
    lognormal,
    lognormal_of_two,
    pareto_gaps,
    truncated_exponential,
    zipf_weights,
)
from subak.workload.google_like.load import mean_tasks_per_job
from subak.workload.google_like.parameters import Constraints, Jobs, Parameters
from subak.workload.google_like.streams import Purpose, uniforms

FINISHES, FAILS, IS_KILLED = 0, 1, 2  # endings


class PaperTasks(NamedTuple):
    """The paper's four columns, one row a task (Fig. 8)."""

    gap: np.ndarray  # float64[task], seconds since the task before
    service: np.ndarray  # bool[task]: a service, else a task
    priority: np.ndarray  # float64[task], ]0, 1]
    makespan: np.ndarray  # float64[task], seconds


class Units(NamedTuple):
    """Units *first* onwards and their tasks: everything but the arrivals, which need all gaps before."""

    gap: np.ndarray  # float64[unit], seconds since the unit before
    sizes: np.ndarray  # int64[unit], tasks; 1 for lone tasks
    service: np.ndarray  # bool[unit]
    level: np.ndarray  # int64[unit]: 1 to priority_levels, or a row of the table of priorities
    request: np.ndarray  # int64[unit], row of the requests
    user: np.ndarray  # int64[unit], 0 is the busiest
    stages: np.ndarray  # int64[unit], how many, 1 or more
    fan_in: np.ndarray  # bool[unit]: the last stage waits for all others, else a chain
    gang: np.ndarray  # bool[unit]
    constraints: np.ndarray  # int64[stage of the unit, unit], bit masks over the choices, 0 for none
    run_time: np.ndarray  # float64[task], seconds
    ending: np.ndarray  # uint8[task]

    def keep(self, units: int) -> "Units":
        """Return the first *units* of them and their tasks."""
        tasks = int(self.sizes[:units].sum())
        own = {name: getattr(self, name)[:units] for name in self._fields}
        return Units(**{**own, "constraints": self.constraints[:, :units], "run_time": self.run_time[:tasks],
                        "ending": self.ending[:tasks]})


def draw(parameters: Parameters, seed: int, first: int, count: int) -> PaperTasks:
    """Return tasks *first* to first + count - 1 of the paper's model alone."""
    service = _services(parameters, seed, first, count)
    return PaperTasks(
        pareto_gaps(uniforms(seed, Purpose.GAP, first, count), parameters.gap_shape, parameters.dynamism),
        service,
        _priorities(parameters, seed, first, service),
        _makespans(parameters, seed, first, service),
    )


def job_sizes(jobs: Jobs | None, seed: int, first: int, count: int) -> np.ndarray:
    """Return int64[unit]: the tasks of units *first* onwards."""
    if jobs is None:
        return np.ones(count, np.int64)
    drawn = 1.0 + np.floor(lognormal(uniforms(seed, Purpose.JOB_SIZE, first, count), jobs.law))
    single = uniforms(seed, Purpose.JOB_SINGLE, first, count) < jobs.single
    return np.where(single, 1.0, np.minimum(drawn, jobs.most)).astype(np.int64)


def draw_units(parameters: Parameters, seed: int, first: int, sizes: np.ndarray, first_task: int) -> Units:
    """Return units *first* onwards, which have *sizes* tasks; the first of their tasks is number *first_task*."""
    count = len(sizes)
    service = _services(parameters, seed, first, count)
    stages, fan_in = _stages(parameters, seed, first, sizes)
    run_time, ending = _endings(parameters, seed, first_task,
                                _makespans(parameters, seed, first_task, np.repeat(service, sizes)))
    mean_gap = parameters.dynamism * mean_tasks_per_job(parameters.jobs)
    return Units(
        gap=pareto_gaps(uniforms(seed, Purpose.GAP, first, count), parameters.gap_shape, mean_gap),
        sizes=sizes,
        service=service,
        level=_levels(parameters, seed, first, service),
        request=_choices(seed, Purpose.REQUEST, first, count, np.array([one.share for one in parameters.requests])),
        user=_choices(seed, Purpose.USER, first, count,
                      zipf_weights(parameters.queues.users, parameters.queues.exponent)),
        stages=stages,
        fan_in=fan_in,
        gang=_happens(seed, Purpose.GANG, first, count, parameters.gangs),
        constraints=_constraints(parameters.constraints, seed, first, stages),
        run_time=run_time,
        ending=ending,
    )


def _happens(seed: int, purpose: int, first: int, count: int, share: float) -> np.ndarray:
    """bool[unit]; nothing is drawn for a share of 0."""
    return uniforms(seed, purpose, first, count) < share if share > 0 else np.zeros(count, np.bool_)


def _choices(seed: int, purpose: Purpose, first: int, count: int, weights: np.ndarray) -> np.ndarray:
    """int64[unit]; nothing is drawn where there is no choice."""
    if len(weights) == 1:
        return np.zeros(count, np.int64)
    return discrete(uniforms(seed, purpose, first, count), weights)


def _services(parameters: Parameters, seed: int, first: int, count: int) -> np.ndarray:
    return uniforms(seed, Purpose.KIND, first, count) >= parameters.type


def _priorities(parameters: Parameters, seed: int, first: int, service: np.ndarray) -> np.ndarray:
    rates = np.array([parameters.task_priority_rate, parameters.service_priority_rate])
    return truncated_exponential(uniforms(seed, Purpose.PRIORITY, first, len(service)), rates[service.view(np.uint8)])


def _makespans(parameters: Parameters, seed: int, first: int, service: np.ndarray) -> np.ndarray:
    drawn = uniforms(seed, Purpose.MAKESPAN, first, len(service))
    return lognormal_of_two(drawn, service, (parameters.tasks, parameters.services))


def _levels(parameters: Parameters, seed: int, first: int, service: np.ndarray) -> np.ndarray:
    table = parameters.priorities
    if table is None:
        return np.ceil(_priorities(parameters, seed, first, service) * parameters.priority_levels).astype(np.int64)
    drawn = uniforms(seed, Purpose.PRIORITY, first, len(service))
    tasks, services = (np.array(list(weights.values())) for weights in (table.tasks, table.services))
    return np.where(service, discrete(drawn, services), discrete(drawn, tasks))


def _endings(parameters: Parameters, seed: int, first: int, makespan: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run times and endings: what fails or is killed does so at a uniform point of its makespan."""
    rates = parameters.failures
    ending = np.full(len(makespan), FINISHES, np.uint8)
    if rates is None:
        return makespan, ending
    drawn = uniforms(seed, Purpose.ENDING, first, len(makespan))
    ending[drawn < rates.fail + rates.kill] = IS_KILLED
    ending[drawn < rates.fail] = FAILS
    point = uniforms(seed, Purpose.CUT, first, len(makespan))
    return np.where(ending == FINISHES, makespan, makespan * point), ending


def _stages(parameters: Parameters, seed: int, first: int, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    law, count = parameters.stages, len(sizes)
    if law is None:
        return np.ones(count, np.int64), np.zeros(count, np.bool_)
    several = _happens(seed, Purpose.STAGED, first, count, law.share)
    wanted = 2 + np.floor(uniforms(seed, Purpose.STAGE_COUNT, first, count) * (law.most - 1)).astype(np.int64)
    return np.where(several, np.minimum(wanted, sizes), 1), _happens(seed, Purpose.FAN_IN, first, count, law.fan_in)


def _constraints(law: Constraints | None, seed: int, first: int, stages: np.ndarray) -> np.ndarray:
    """int64[stage of the unit, unit]; each stage of a unit has streams of its own."""
    count = len(stages)
    most = int(stages.max(initial=1))
    masks = np.zeros((most, count), np.int64)
    if law is None or law.rate == 0:
        return masks
    frequencies = np.array([frequency for _, frequency in law.choices])
    width = len(frequencies) + 2
    for stage in range(most):
        streams = Purpose.CONSTRAINTS + stage * width
        chosen = uniforms(seed, streams, first, count) < law.rate
        drawn = np.stack([uniforms(seed, streams + 1 + row, first, count) for row in range(width - 1)])
        masks[stage] = np.where(chosen & (stage < stages), bernoulli_sets(drawn, frequencies), 0)
    return masks
