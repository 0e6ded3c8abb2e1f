"""Sparrow, Hawk, Eagle, Dodoor and Pigeon: closed forms, and rules on random cases."""
import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from published import answers
from small import TWO, cases, fleet_of, fleets, plain, staged, workloads
from subak.errors import InputError
from subak.federation.messages import FETCH, PROBE, REJECTED, STEAL
from subak.federation.settings import Federation
from subak.placement.claims import TASK_BLOCKED, TASK_FINISHED, TASK_RUNNING, TASK_UNPLACEABLE, TASK_WAITING
from subak.simulator.federated.pigeon import PIGEON
from subak.simulator.federated.sampling import DODOOR, EAGLE, HAWK, SPARROW
from subak.simulator.federated.simulate import simulate_federated

ALL = {"sparrow": SPARROW, "hawk": HAWK, "eagle": EAGLE, "dodoor": DODOOR, "pigeon": PIGEON}
DELAY = 0.0005

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
names = st.sampled_from(sorted(ALL))
federations = st.builds(
    Federation, global_masters=st.sampled_from([1, 2, 7]), delay=st.sampled_from([0.0, DELAY, 0.5]),
    service_scale=st.sampled_from([0.0, 1.0, 1000.0]), probe_ratio=st.sampled_from([0.5, 1.0, 2.0, 2.5]),
    probes_min=st.sampled_from([1, 5]), sampling=st.sampled_from(["batch", "task"]),
    cutoff=st.sampled_from([0.0, 2.0, math.inf]), short_share=st.sampled_from([0.0, 0.3, 1.0]),
    steal_attempts=st.sampled_from([0, 3]), starvation_limit=st.sampled_from([0, 5]),
    push_ratio=st.sampled_from([0.0, 0.5, 3.0]), report_tasks=st.sampled_from([1, 2, 8]),
    duration_weight=st.sampled_from([0.0, 0.5, 1.0]),
    fair_weight=st.sampled_from([1, 3]), delay_law=st.sampled_from(["constant", "exponential"]),
)


def run(name, workload, fleet, federation=None, seed=1, until=math.inf, check=None):
    """Simulate, and return the state at the end, the federation, and what its loop recorded."""
    brought = simulate_federated(
        workload, fleet, ALL[name], federation or Federation(service_scale=0.0), seed, 1.0, False, until, check=check)
    return brought["prepared"].simulation, brought["federated"], brought["loop_result"]


def waits(simulation):
    return simulation.progress.start - simulation.progress.ready


def handled(federated, kind):
    return int(federated.network.handled[kind])


# -- by hand -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "messages"), [
    ("sparrow", 4), ("hawk", 4), ("eagle", 4), ("dodoor", 2), ("pigeon", 3)])
def test_a_task_starts_after_so_many_messages_on_an_idle_fleet(name, messages):
    simulation, federated, _ = run(name, plain((1, 3, 1)), fleet_of((1,), (1,)))
    assert simulation.progress.start[0] == pytest.approx(1 + messages * DELAY)
    assert federated.network.communication[0] == pytest.approx(messages * DELAY)


@pytest.mark.parametrize("name", ["hawk", "eagle"])
def test_a_long_task_is_sent_to_its_worker_at_once(name):
    simulation, _, _ = run(name, plain((1, 300, 1)), fleet_of((1,), (1,)), Federation(service_scale=0.0, cutoff=100))
    assert simulation.progress.start[0] == pytest.approx(1 + 2 * DELAY)


def test_a_reservation_waits_for_its_turn_and_its_wait_is_the_workers():
    simulation, federated, _ = run("sparrow", plain((0, 5, 1), (1, 1, 1)), fleet_of((1,)))
    # The other reservation of the first task comes first, and to nothing.
    assert simulation.progress.start[1] == pytest.approx(5 + 8 * DELAY)
    network = federated.network
    parts = network.communication[1] + network.at_worker[1] + network.processing[1]
    assert parts == pytest.approx(waits(simulation)[1])
    assert network.communication[1] == pytest.approx(4 * DELAY)


@pytest.mark.parametrize("name", ["hawk", "eagle", "dodoor"])
def test_a_task_that_was_sent_waits_at_its_worker(name):
    federation = Federation(cutoff=1.0, service_scale=1000.0)
    simulation, federated, _ = run(name, plain((0, 5, 1), (1, 2, 1)), fleet_of((1,)), federation)
    network = federated.network
    assert network.communication[1] == pytest.approx(2 * DELAY)
    assert network.processing[1] == pytest.approx(1e-3)  # SUBMIT's
    assert network.at_worker[1] == pytest.approx(waits(simulation)[1] - 2 * DELAY - 1e-3)


def test_service_times_are_part_of_the_allocation_time():
    simulation, federated, _ = run("sparrow", plain((0, 5, 1)), fleet_of((1,)), Federation())
    network = federated.network
    assert network.processing[0] > 0
    assert network.processing[0] + network.communication[0] == pytest.approx(waits(simulation)[0])


def test_a_stage_waits_for_the_one_it_depends_on():
    workload = staged([{"request": (1,)}, {"request": (1,), "depends_on": [0]}], [(0, 0, 2), (0, 0, 3), (1, 0, 1)])
    for name in ALL:
        simulation, _, _ = run(name, workload, fleet_of((1,), (1,), (1,)))
        ended = simulation.progress.start[1] + 3
        assert simulation.progress.ready[2] == pytest.approx(ended + DELAY), name
        assert simulation.progress.start[2] > ended, name


def test_a_batch_is_probed_for_with_different_workers():
    workload = staged([{"request": (1,)}], [(0, 0, 1)] * 5)
    _, federated, _ = run("sparrow", workload, fleet_of(*[(1,)] * 10))
    assert handled(federated, PROBE) == handled(federated, FETCH) == 10
    assert sorted(federated.roles.members.drawn.tolist()) == list(range(10))


def test_only_workers_that_meet_the_constraints_are_probed():
    workload = staged([{"request": (1,), "constraints": [("rack", "=", "a")]}], [(0, 0, 1)] * 4)
    fleet = fleet_of(*[(2,)] * 200, attributes=[(7, "rack", "a"), (130, "rack", "a")])
    for name in ALL:
        simulation, _, _ = run(name, workload, fleet)
        assert (simulation.claims.status == TASK_FINISHED).all(), name
        assert len(set(simulation.progress.machine.tolist())) <= 2, name


def test_hawk_keeps_workers_for_short_jobs():
    workload = staged([{"request": (1,)}], [(0, 0, 100)] * 20)
    simulation, _, _ = run("hawk", workload, fleet_of(*[(1,)] * 10),
                           Federation(service_scale=0.0, cutoff=50, short_share=0.3))
    assert set(simulation.progress.machine.tolist()) == set(range(3, 10))


def test_hawk_spreads_long_tasks_by_waiting_time():
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}],
                      [(0, 0, 100), (0, 0, 100), (1, 30, 60), (1, 30, 60)])
    simulation, _, _ = run("hawk", workload, fleet_of((1,), (1,), (1,)),
                           Federation(service_scale=0.0, cutoff=50, short_share=0.0))
    machine = simulation.progress.machine.tolist()
    assert machine[:2] == [0, 1]
    assert machine[2] == 2  # idle; then 60 s wait there, 70 s at the others
    assert machine[3] == 2


@pytest.mark.parametrize("name", ["hawk", "eagle"])
def test_a_long_task_goes_to_an_idle_worker_before_one_that_is_late(name):
    """Worker 0 was estimated to be idle at 200 s, which is the mean of its task and another."""
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}],
                      [(0, 0, 350), (0, 0, 50), (1, 250, 60)])
    simulation, _, _ = run(name, workload, fleet_of((1,), (1,)),
                           Federation(service_scale=0.0, cutoff=50, short_share=0.0))
    assert simulation.progress.machine.tolist() == [0, 1, 1]


def test_an_idle_hawk_worker_steals_what_waits_behind_a_long_task():
    stages = [{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}]
    workload = staged(stages, [(0, 0, 1000), (0, 0, 1000), (1, 1, 5), (1, 1, 5), (1, 1, 5), (1, 1, 5)])
    federation = Federation(service_scale=0.0, cutoff=100, short_share=0.5, steal_attempts=10)
    stolen, federated, _ = run("hawk", workload, fleet_of(*[(1,)] * 4), federation)
    assert handled(federated, STEAL) > 0
    assert waits(stolen)[2:].max() < 100
    alone, _, _ = run("hawk", workload, fleet_of(*[(1,)] * 3), replaced(federation, short_share=0.0, steal_attempts=0))
    assert alone.progress.start.size == 6


def replaced(federation, **changes):
    known = {field: getattr(federation, field) for field in federation.__struct_fields__}
    return Federation(**{**known, **changes})


def test_eagle_workers_with_long_tasks_reject_probes():
    stages = [{"job": 0, "request": (1,)}] + [{"job": 1 + row, "request": (1,)} for row in range(20)]
    workload = staged(stages, [(0, 0, 1000)] * 9 + [(1 + row, 1 + row, 0.5) for row in range(20)])
    simulation, federated, _ = run("eagle", workload, fleet_of(*[(1,)] * 10),
                                   Federation(service_scale=0.0, cutoff=100, short_share=0.1))
    assert handled(federated, REJECTED) > 0
    assert set(simulation.progress.machine[9:].tolist()) == {0}
    assert waits(simulation)[9:].max() < 1


def test_an_eagle_reservation_stays_until_its_batch_is_done():
    """Two reservations lead to three tasks, while the other worker is busy; a longer job waits meanwhile."""
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}],
                      [(0, 0, 10), *[(0, 0, 1)] * 3, (1, 0.5, 20)])
    federation = Federation(service_scale=0.0, probe_ratio=1.0)
    sticky, federated, _ = run("eagle", workload, fleet_of((1,), (1,)), federation)
    assert sticky.progress.start[[3, 4]] == pytest.approx([2, 3], abs=0.1)
    network = federated.network
    parts = network.communication + network.at_worker + network.processing
    assert parts == pytest.approx(waits(sticky))
    bound, _, _ = run("sparrow", workload, fleet_of((1,), (1,)), federation)
    assert bound.progress.start[[3, 4]] == pytest.approx([10, 2], abs=0.1)


def test_a_shorter_job_passes_an_eagle_reservation_that_stays():
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}],
                      [(0, 0, 1)] * 4 + [(1, 0.5, 0.1)])
    for limit, start in ((5, 1), (0, 4)):
        federation = Federation(service_scale=0.0, starvation_limit=limit, probe_ratio=1.0)
        simulation, _, _ = run("eagle", workload, fleet_of((1,)), federation)
        assert simulation.progress.start[4] == pytest.approx(start, abs=0.1)


def test_an_eagle_reservation_that_stays_starves_nobody():
    """The job with less left may go first once, as often as the limit says, not for its whole batch."""
    stages = [{"job": row, "request": (1,)} for row in range(3)]
    workload = staged(stages, [(0, 0, 2), *[(1, 0.5, 1)] * 10, *[(2, 0.6, 1)] * 8])
    federation = Federation(service_scale=0.0, starvation_limit=1, probe_ratio=1.0)
    simulation, _, _ = run("eagle", workload, fleet_of((1,)), federation)
    job = np.repeat([0, 1, 2], [1, 10, 8])
    assert job[np.argsort(simulation.progress.start)].tolist() == [0, 2, *[1] * 10, *[2] * 7]


def test_eagle_serves_the_shortest_job_first_unless_another_has_waited_long():
    stages = [{"job": row, "request": (1,)} for row in range(8)]
    short = [(row, 1 + row / 100, 1) for row in range(2, 8)]
    workload = staged(stages, [(0, 0, 2), (1, 0.5, 3), *short])
    order = {}
    for limit in (0, 1, 100):
        simulation, _, _ = run("eagle", workload, fleet_of((1,)),
                               Federation(service_scale=0.0, starvation_limit=limit, probe_ratio=1.0))
        order[limit] = np.argsort(simulation.progress.start).tolist()
    assert order[0] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert order[1] == [0, 2, 3, 4, 1, 5, 6, 7]  # three of 1 s hold one of 3 s up for once its time
    assert order[100] == [0, 2, 3, 4, 5, 6, 7, 1]


def test_pigeon_deals_evenly_and_keeps_workers_for_short_tasks():
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}], [(0, 0, 100)] * 40 + [(1, 1, 1)] * 4)
    federation = Federation(service_scale=0.0, cutoff=50, short_share=0.2, local_masters=4)
    simulation, federated, _ = run("pigeon", workload, fleet_of(*[(1,)] * 20), federation)
    group = federated.roles.groups.of_worker[simulation.progress.machine]
    assert np.bincount(group[:40]).tolist() == [10] * 4
    assert np.bincount(group[40:]).tolist() == [1] * 4
    assert waits(simulation)[40:].max() < 0.01
    assert len(set(simulation.progress.machine[:40].tolist())) == 16


def test_pigeon_serves_a_long_task_after_so_many_short_ones():
    stages = [{"job": row, "request": (1,)} for row in range(3)]
    workload = staged(stages, [(0, 0, 10), *[(1, 1, 1)] * 6, *[(2, 1, 60)] * 2])
    simulation, _, _ = run("pigeon", workload, fleet_of((1,)), Federation(service_scale=0.0, cutoff=50, fair_weight=3))
    assert np.argsort(simulation.progress.start).tolist() == [0, 1, 2, 3, 7, 4, 5, 6, 8]


def test_more_groups_than_machines_are_refused():
    with pytest.raises(InputError, match="local_masters: must be at most the number of machines, 2, not 3"):
        run("pigeon", plain((0, 1, 1)), fleet_of((1,), (1,)), Federation(local_masters=3))


# -- closed forms ------------------------------------------------------------------------------------------------------


def zero_wait_share(load, tasks, trials, workers=10_000, **options):
    """The share of jobs of which no task waited, where a share of the workers, drawn beforehand, is busy for good."""
    busy = np.random.default_rng(1).permutation(workers)[: round(load * workers)]
    fillers = 12 * busy.size  # so many, bound to them, that none stays idle
    jobs = np.arange(trials)
    stage = np.concatenate([np.zeros(fillers, int), np.repeat(jobs + 1, tasks)])
    arrival = np.concatenate([np.zeros(fillers), np.repeat(10.0 + jobs, tasks)])
    run_time = np.concatenate([np.full(fillers, 1e7), np.full(trials * tasks, 0.01)])
    template = staged([{"job": 0, "request": (1,), "constraints": [("busy", "=", "yes")]}, {"job": 1, "request": (1,)}],
                      [(0, 0, 1), (1, 0, 1)])
    stages = pl.concat([template.stages[:1], *[template.stages[1:]] * trials])
    workload = replace(
        template,
        jobs=pl.DataFrame({"job": [str(job) for job in range(trials + 1)]}).with_columns(
            queue=pl.lit("q"), user=pl.lit("u")),
        stages=stages.with_columns(job=pl.Series(np.arange(trials + 1), dtype=pl.UInt32)),
        tasks=pl.DataFrame({"stage": stage, "index": np.arange(stage.size), "arrival": arrival, "run_time": run_time}),
    )
    fleet = fleet_of(*[(1,)] * workers, attributes=[(int(worker), "busy", "yes") for worker in np.sort(busy)])
    simulation, _, _ = run("sparrow", workload, fleet, Federation(service_scale=0.0, **options), until=110.0 + trials)
    assert len(set(simulation.progress.machine[:fillers].tolist()) - {-1}) == busy.size
    waited = waits(simulation)[fillers:].reshape(trials, tasks)
    return float((waited < 4.5 * DELAY).all(axis=1).mean())


def zero_wait_cases():
    found = answers("queueing")["sparrow_zero_wait"]["cases"]
    return [(case["load"], case["tasks"], kind, case[kind]) for case in found
            for kind in ("random", "per_task", "batch") if kind in case]


@pytest.mark.parametrize(("load", "tasks", "kind", "expected"), zero_wait_cases())
def test_the_share_of_jobs_that_wait_for_nothing(load, tasks, kind, expected):
    trials = 5000
    options = {"random": {"probe_ratio": 1.0, "sampling": "task"}, "per_task": {"sampling": "task"}, "batch": {}}[kind]
    share = zero_wait_share(load, tasks, trials, **options)
    error = math.sqrt(expected * (1 - expected) / trials)
    assert abs(share - expected) < 4 * error + 1 / trials, f"{share} of {trials} jobs, the closed form says {expected}"


# -- rules, on random cases --------------------------------------------------------------------------------------------


def able_now(simulation, task):
    """Whether a machine that is there could hold the task when it is idle."""
    fleet, shape = simulation.fleet, simulation.tasks.shape[task]
    words = fleet.allowed[simulation.tasks.constraint_set[shape]]
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(bool)
    roomy = (fleet.capacity >= simulation.tasks.request[:, shape, None]).all(axis=0) & (fleet.free[0] >= 0)
    return bool((bits & roomy).any())


def check_ends(simulation, steady):
    """Every task ended, or there is a reason why it did not."""
    status, run_time, stages = simulation.claims.status, simulation.tasks.run_time, simulation.stages
    for task in range(status.size):
        if status[task] == TASK_FINISHED:
            assert not steady or simulation.progress.attempts[task] == 1
        elif status[task] == TASK_RUNNING:
            assert run_time[task] == math.inf
        elif status[task] == TASK_WAITING:
            endless = np.isinf(run_time[status == TASK_RUNNING]).any()
            assert endless or not able_now(simulation, task), f"task {task} waits"
        elif status[task] == TASK_BLOCKED:
            assert stages.of_task.size > 0
            assert (status != TASK_FINISHED).any()
        else:
            assert status[task] == TASK_UNPLACEABLE, f"task {task} is {status[task]}"


def rows_in_use(queues):
    """How many rows are neither free nor untouched."""
    free, untouched = (int(number) for number in queues.free)
    count = 0
    while free != -1:
        free, count = int(queues.row[free]["next"]), count + 1
    return untouched - count


def check_rest(roles):
    """When all has ended, workers have everything free, nothing is queued, nobody owes anything."""
    if hasattr(roles, "groups"):
        assert (roles.groups.room.free == roles.groups.room.capacity).all()
        assert (roles.groups.head == -1).all()
        own = roles.workers.own
    else:
        eagle_or_hawk = getattr(roles, "hawk", roles)
        sparrow = getattr(eagle_or_hawk, "sparrow", eagle_or_hawk)
        own = sparrow.workers.own
        assert (sparrow.queues.head == -1).all()
        assert (sparrow.queues.length == 0).all()
        assert (sparrow.workers.long_queued == 0).all()
        assert (sparrow.workers.long_running == 0).all()
        assert sparrow.schedulers.stranded_count[0] == 0
        assert rows_in_use(sparrow.queues) == 0
        if hasattr(roles, "loads"):
            assert (roles.loads.tasks_held == 0).all()
            assert (roles.loads.held == 0).all()
            assert (roles.loads.told == 0).all()
        if hasattr(eagle_or_hawk, "central"):
            assert (eagle_or_hawk.central.long_tasks == 0).all()
            assert (eagle_or_hawk.central.work == 0).all()
            assert (eagle_or_hawk.thieves.asks_left == 0).all()
    assert (own.free == own.capacity).all()


@settings(quick, max_examples=150)
@given(case=cases(), name=names, federation=federations, seed=st.integers(0, 2**63))
def test_every_task_ends_or_waits_for_a_reason(case, name, federation, seed):
    workload, fleet = case
    simulation, _, _ = run(name, workload, fleet, federation, seed)
    steady = simulation.changes.time.size == 0
    check_ends(simulation, steady)
    if not (simulation.claims.status == TASK_RUNNING).any():
        assert (simulation.fleet.used == 0).all()


@settings(quick, max_examples=60)
@given(case=st.tuples(workloads(TWO, endless=False), fleets(TWO, changes_most=0)), name=names, federation=federations)
def test_on_a_steady_fleet_every_task_runs_exactly_once(case, name, federation):
    workload, fleet = case
    if len(fleet.changes):
        return
    simulation, federated, _ = run(name, workload, fleet, federation)
    placeable = simulation.claims.status != TASK_UNPLACEABLE
    hopeless = [task for task in np.flatnonzero(placeable) if not able_now(simulation, task)]
    if not hopeless:
        assert np.isin(simulation.claims.status[placeable], (TASK_FINISHED, TASK_BLOCKED)).all()
        assert (simulation.progress.attempts[simulation.claims.status == TASK_FINISHED] == 1).all()
        check_rest(federated.roles)


@settings(quick, max_examples=60)
@given(case=cases(), name=names, federation=federations, seed=st.integers(0, 2**63))
def test_the_same_seed_gives_the_same_bytes(case, name, federation, seed):
    first, second = (run(name, *case, federation, seed) for _ in range(2))
    assert [array.tobytes() for array in first[0].progress] == [array.tobytes() for array in second[0].progress]
    assert first[2].timeline.tobytes() == second[2].timeline.tobytes()


@settings(quick, max_examples=40)
@given(name=names, federation=federations, jobs=st.integers(1, 6), tasks=st.integers(1, 12),
       machines=st.integers(1, 70))
def test_a_burst_of_jobs_at_one_instant(name, federation, jobs, tasks, machines):
    stages = [{"job": job, "request": (1,)} for job in range(jobs)]
    rows = [(row % jobs, 0, (row % 3) / 2) for row in range(jobs * tasks)]
    simulation, _, _ = run(name, staged(stages, rows), fleet_of(*[(2,)] * machines), federation)
    assert (simulation.claims.status == TASK_FINISHED).all()


@pytest.mark.parametrize("name", sorted(ALL))
def test_tasks_wait_for_a_worker_that_joins_later(name):
    workload = plain((0, 2, 1), (1, 2, 1))
    fleet = fleet_of((1,), present=[False], changes=[(10, 0, True, 1)])
    simulation, _, _ = run(name, workload, fleet)
    assert (simulation.claims.status == TASK_FINISHED).all()
    assert simulation.progress.start.min() >= 10


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_a_lost_worker_ran_and_kept_waiting_goes_elsewhere(name):
    workload = plain(*[(0, 5, 1)] * 6, *[(1, 200, 1)] * 3)
    fleet = fleet_of((2,), (2,), (2,), changes=[(3, 0, False, 0), (4, 1, True, 1)])
    federation = Federation(service_scale=0.0, cutoff=100, short_share=0.0)
    simulation, _, loop_result = run(name, workload, fleet, federation)
    assert (simulation.claims.status == TASK_FINISHED).all()
    assert sum(losses.shape[1] for losses in loop_result.losses) > 0


# -- without the compiler ----------------------------------------------------------------------------------------------


def results():
    """Per system and seed: start and machine of every task, exactly, on a fleet that changes."""
    stages = [{"job": job, "request": (1 + job % 2, job % 3), "depends_on": [job - 1] if job % 4 == 3 else []}
              for job in range(12)]
    for row, stage in enumerate(stages):
        stage["job"] = row - (row % 4 == 3)
    jobs = sorted({stage["job"] for stage in stages})
    for stage in stages:
        stage["job"] = jobs.index(stage["job"])
    tasks = sorted(((row % 12, row // 40, row % 7 / 2) for row in range(200)), key=lambda task: task[1])
    changes = [(2.0, 3, False, 0, 0), (3.0, 4, True, 1, 1), (5.0, 3, True, 4, 4)]
    workload, fleet = staged(stages, tasks, TWO), fleet_of(*[(2, 2)] * 70, resources=TWO, changes=changes)
    found = {}
    for name in sorted(ALL):
        simulation, _, loop_result = run(name, workload, fleet, Federation(cutoff=2.0, short_share=0.1))
        found[name] = [[float(start).hex() for start in simulation.progress.start],
                       simulation.progress.machine.tolist(), loop_result.events]
    return found


def test_the_results_are_the_same_with_and_without_the_compiler():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    plain_run = subprocess.run([sys.executable, "-W", "always", __file__], env=environment, capture_output=True,
                               text=True, timeout=600, check=False)
    assert plain_run.returncode == 0, plain_run.stderr
    assert plain_run.stderr == ""
    assert json.loads(plain_run.stdout) == results()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(results()))
