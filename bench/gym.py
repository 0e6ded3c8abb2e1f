"""Steps a second of the environments for learning, against a peer's: the same 400 jobs on the same 10 machines.

Required: at least 20 times the peer's steps a second. Only calls of step() are timed; the agent is the same, the first
job shown that fits. The peer is gpu-choochoo 0.1.0 (PyPI; `pip install gpu-choochoo`), a Gymnasium environment of a
cluster in Python, event by event, whose action is a place among the first that wait, as here; it is not installed with
Subak. Of those one would think of first, schedgym is not on PyPI, and batsim-py drives the program batsim, which
neither PyPI nor Debian has, over a socket: a message each way for every event. schedgym (renatolfc/sched-rl-gym) steps
as DeepRM does: an action starts a job, else time goes on by one second, or event based, second by second until some
job fits, in Python objects.
"""
import importlib.util
import statistics
import time

import numpy as np
import polars as pl

from subak.fleet.table import uniform_fleet
from subak.gym import SchedulingEnv, SchedulingVectorEnv
from subak.resources import Resource
from subak.workload.table import Workload, make_workload

JOBS, MACHINES, SHOWN, ROUNDS = 400, 10, 10, 3
AT_ONCE, STEPS_EACH = 64, 4_000
GPUS, MEMORY_GB = 8, 320
RESOURCES = (Resource("gpu", 1, "cards"), Resource("memory", 0.001, "GB"))
PEER = "gpu_choochoo"


def drawn_jobs() -> dict[str, np.ndarray]:
    """Return what the jobs ask for, when they arrive and how long they run: about all that the machines have."""
    random = np.random.default_rng(1)
    gpu = random.choice([1, 2, 4, 8], JOBS, p=[0.5, 0.25, 0.15, 0.1])
    return {"gpu": gpu, "memory": np.round(gpu * random.uniform(4, 38, JOBS), 3),
            "arrival": np.cumsum(random.exponential(15.0, JOBS)).round(3),
            "run_time": random.exponential(600.0, JOBS).round(3)}


def as_workload(jobs: dict[str, np.ndarray]) -> Workload:
    """Return the jobs, a task each."""
    names = [str(number) for number in range(JOBS)]
    stages = pl.DataFrame({
        "job": range(JOBS), "name": names, "depends_on": [[]] * JOBS, "kind": ["TASK"] * JOBS, "priority": [0] * JOBS,
        "constraints": [[]] * JOBS, "gpu": jobs["gpu"].astype(float), "memory": jobs["memory"]}, strict=False)
    tasks = pl.DataFrame({"stage": np.arange(JOBS, dtype=np.uint32), "index": np.zeros(JOBS, np.uint32),
                          "arrival": jobs["arrival"], "run_time": jobs["run_time"]})
    return make_workload(pl.DataFrame({"job": names, "queue": ["all"] * JOBS, "user": ["all"] * JOBS}), stages, tasks,
                         RESOURCES)


def peer_rate(jobs: dict[str, np.ndarray]) -> tuple[float, int, float]:
    """Return the peer's steps a second, steps of the episode, and mean wait (s)."""
    from gpu_choochoo.core.node import Node  # noqa: PLC0415  (it may not be there)
    from gpu_choochoo.envs.scheduler_env import GPUSchedulerEnv  # noqa: PLC0415

    trace = [{"job_id": number, "arrival_time": float(jobs["arrival"][number]), "duration_sec": float(seconds),
              "gpus_required": int(jobs["gpu"][number]), "vram_required_gb": float(jobs["memory"][number])}
             for number, seconds in enumerate(jobs["run_time"])]
    env = GPUSchedulerEnv([Node(str(number), "ANY", GPUS, MEMORY_GB) for number in range(MACHINES)], trace,
                          max_queue_obs=SHOWN, max_nodes=MACHINES, reward_type="wait_time", max_steps=10**9)
    env.reset(seed=1)
    seconds, steps, ended = 0.0, 0, False
    while not ended:
        nodes, queue = env.cluster.nodes.values(), env.cluster.pending_queue[:SHOWN]
        fits = (place + 1 for place, job in enumerate(queue) if any(node.check_feasibility(job) for node in nodes))
        action = next(fits, 0)
        began = time.perf_counter()
        _, _, ended, _, _ = env.step(action)
        seconds += time.perf_counter() - began
        steps += 1
    waits = [job.start_time - job.arrival_time for job in env.cluster.completed_jobs]
    return steps / seconds, steps, statistics.fmean(waits)


def own_rate(env: SchedulingEnv) -> tuple[float, int, float]:
    """Return the steps a second of one episode at a time, steps of an episode, and mean wait (s)."""
    seconds, steps, episodes = 0.0, 0, 20
    for _ in range(episodes):
        seen, _ = env.reset(seed=1)
        ended = False
        while not ended:
            action = int(seen["action_mask"].argmax())
            began = time.perf_counter()
            seen, _, ended, _, _ = env.step(action)
            seconds += time.perf_counter() - began
            steps += 1
    return steps / seconds, steps // episodes, env.task_table()["wait_time"].mean()


def own_rate_at_once(env: SchedulingVectorEnv) -> float:
    """Return the steps a second of many episodes at once; those in which one begins anew are none."""
    seen, _ = env.reset(seed=1)
    seconds, steps, ended = 0.0, 0, np.zeros(AT_ONCE, bool)
    for _ in range(STEPS_EACH):
        actions = seen["action_mask"].argmax(axis=1)
        steps += AT_ONCE - int(ended.sum())
        began = time.perf_counter()
        seen, _, ended, _, _ = env.step(actions)
        seconds += time.perf_counter() - began
    return steps / seconds


def main() -> None:
    jobs = drawn_jobs()
    settings = {"workload": as_workload(jobs), "jobs": JOBS, "shown": SHOWN, "placements": ["best-fit"],
                "reward": "wait",
                "fleet": uniform_fleet(MACHINES, {"gpu": GPUS, "memory": MEMORY_GB}, RESOURCES)}
    one, many = SchedulingEnv(**settings), SchedulingVectorEnv(AT_ONCE, **settings)
    one.reset(seed=1)  # compile, or load, the engine
    is_there = importlib.util.find_spec(PEER) is not None
    if not is_there:
        print("gpu-choochoo is not installed; without it there is nothing to compare with")
    ratios: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        alone, steps, wait = own_rate(one)
        at_once = own_rate_at_once(many)
        print(f"subak alone {alone:>9,.0f} steps/s   {AT_ONCE} at once {at_once:>9,.0f} steps/s   {steps} steps, "
              f"mean wait {wait:.0f} s")
        if is_there:
            theirs, their_steps, their_wait = peer_rate(jobs)
            ratios.append((alone / theirs, at_once / theirs))
            print(f"gpu-choochoo {theirs:>8,.0f} steps/s   {their_steps} steps, mean wait {their_wait:.0f} s   ratio "
                  f"{ratios[-1][0]:.1f} alone, {ratios[-1][1]:.0f} at once")
    if ratios:
        print(f"median ratio {statistics.median(each[0] for each in ratios):.1f} alone, "
              f"{statistics.median(each[1] for each in ratios):.0f} at once (required: 20, many at once)")


if __name__ == "__main__":
    main()
