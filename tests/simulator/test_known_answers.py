"""Answers from outside: queueing theory, SimPy, and a published score. None may be loosened."""
import math

import numpy as np
import polars as pl
import pytest
import simpy

from published import answers
from small import CPU, TWO, fleet_of, plain
from subak.fleet.table import uniform_fleet
from subak.policy import find_scheduler
from subak.simulator.simulate import simulate
from subak.workload.table import make_workload

ANSWERS = answers("queueing")
ERLANG_C = [tuple(case[name] for name in ("servers", "load", "probability_of_waiting", "mean_wait_over_mean_service"))
            for case in ANSWERS["erlang_c"]]
FREE, JOBS = ANSWERS["tetris_dot_product"]["free"], ANSWERS["tetris_dot_product"]["jobs"]

TASKS, WARM_UP, BATCHES = 2_200_000, 200_000, 20
STUDENT_T = 3.883  # 19 degrees of freedom, two-sided 99.9 %
SEED = 1  # chosen before the first run, like the sizes above


def one_slot_tasks(arrival, run_time):
    """A workload of tasks of one core, all of one stage."""
    count = len(arrival)
    return make_workload(
        pl.DataFrame({"job": ["all"], "queue": ["all"], "user": ["ada"]}),
        pl.DataFrame({"job": [0], "name": ["only"], "depends_on": [[]], "kind": ["TASK"], "priority": [0],
                      "constraints": [None], "cpu": [1.0]}),
        pl.DataFrame({"stage": np.zeros(count, np.uint32), "index": np.arange(count), "arrival": arrival,
                      "run_time": run_time}),
        CPU,
    )


def markov_times(servers, load, count):
    """Poisson arrivals and exponential service times of mean 1."""
    random = np.random.default_rng([SEED, servers])
    return np.cumsum(random.exponential(1 / (load * servers), count)), random.exponential(1.0, count)


def interval_of_means(values):
    """The mean and half the width of its confidence interval, from the means of consecutive batches."""
    means = values.reshape(BATCHES, -1).mean(axis=1)
    return means.mean(), STUDENT_T * means.std(ddof=1) / math.sqrt(BATCHES)


@pytest.mark.parametrize(("servers", "load", "waiting", "mean_wait"), ERLANG_C)
def test_erlang_c(servers, load, waiting, mean_wait):
    workload = one_slot_tasks(*markov_times(servers, load, TASKS))
    outcome = simulate(workload, uniform_fleet(servers, {"cpu": 1}, CPU), find_scheduler("first-fit"))
    progress = outcome.simulation.progress
    wait = (progress.start - progress.ready)[WARM_UP:]
    assert (wait >= 0).all()
    for values, known in (((wait > 0).astype(float), waiting), (wait, mean_wait)):
        mean, half_width = interval_of_means(values)
        assert abs(mean - known) <= half_width, f"{known} is outside {mean:.5f} +- {half_width:.5f}"
        assert half_width < 0.2 * known, f"+- {half_width:.5f} says too little about {known}"


def completion_by_simpy(arrival, run_time, slots):
    """The mean completion time of a first-in-first-out queue before alike slots, by SimPy."""
    env = simpy.Environment()
    machines = simpy.Resource(env, capacity=slots)
    completion = np.zeros(len(arrival))

    def task(number):
        with machines.request() as request:
            yield request
            yield env.timeout(run_time[number])
        completion[number] = env.now - arrival[number]

    def source():
        for number, time in enumerate(arrival):
            yield env.timeout(time - env.now)
            env.process(task(number))

    env.process(source())
    env.run()
    return completion.mean()


def test_simpy_has_the_same_mean_completion_time():
    arrival, run_time = markov_times(20, 0.95, 20_000)
    workload = one_slot_tasks(arrival, run_time)
    outcome = simulate(workload, uniform_fleet(20, {"cpu": 1}, CPU), find_scheduler("first-fit"))
    completion = (outcome.simulation.progress.start + run_time - arrival).mean()
    by_simpy = completion_by_simpy(arrival, run_time, 20)
    assert by_simpy > 1.2 * run_time.mean()  # the queue matters in this comparison
    assert completion == pytest.approx(by_simpy, rel=1e-6)


def test_tetris_starts_the_task_of_the_higher_dot_product():
    # free (10, 100): X scores 5010, Y 160, so X goes first although Y came first; a second X (2509 against 104) takes
    # the last of the memory, and the two Ys follow one by one, as 6 + 6 cores are more than 10
    tasks = [(0, 1, *JOBS[name]) for name in "YYXX"]
    workload, fleet = plain(*tasks, resources=TWO), fleet_of(FREE, resources=TWO)
    starts = {name: simulate(workload, fleet, find_scheduler(name)).simulation.progress.start.tolist()
              for name in ("tetris", "first-fit+backfill")}
    assert starts == {"tetris": [1, 2, 0, 0], "first-fit+backfill": [0, 1, 0, 1]}
