"""The state of episodes: one central run each, which stops at every decision.

Who waits is known by its head, a task: the first of a gang, whose tasks start together, or a task that starts alone.
So a task alone is a gang of one, and nothing asks which it is.

Rules: `next` and `previous` hold exactly the heads all of whose tasks wait or have ended, and that have one that waits,
in the order of (rank, task); an episode whose `state[ASKS]` is set has a head among those shown that can start now.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.state import FleetState
from subak.simulator.engine.state import Simulation
from subak.workload.tasks import Stages, Tasks

NOBODY_FOLLOWS = -1  # of the last task of a gang
NO_HEAD = -1  # nobody is shown at this place
NEVER_S = 1e300  # seconds, when the first interval of an episode's timeline ends: it has one
# what is done with episodes in one call
STEP_ALL, BEGIN_CHOSEN = 0, 1
# of `Episode.state`
TASKS_HERE, STAGES_HERE, FIRST_JOB, ASKS, HAS_ENDED, UNSEEN_ARRIVALS, INVALID_ACTIONS = range(7)
STATE_SIZE = 7
# parts of a reward, of a step: integrals over the time that it let pass, what it started, that time
WAITING_SECONDS, RUNNING_SECONDS, SLOWDOWNS, SECONDS = range(4)
PARTS = ("waiting", "running", "slowdown", "seconds")
ANY_JOB = -1  # of `Answers.first_job`: one that is drawn


class Source(NamedTuple):
    """The whole workload, and the fleet before anything happened: what windows are cut from. Never changed."""

    tasks: Tasks
    status: np.ndarray  # int8[task]: NOT_ARRIVED or UNPLACEABLE
    head: np.ndarray  # int32[task], the first task of its gang
    follows: np.ndarray  # int32[task], the next task of its gang, or NOBODY_FOLLOWS
    group: np.ndarray  # int32[task], of the machines' speeds; empty where all are alike
    shuffle: np.ndarray  # float64[task], seconds; empty where nothing is copied
    stages: Stages  # empty where nothing waits for anything
    fleet: FleetState
    task_first: np.ndarray  # int64[job + 1], where each job's tasks begin in job_task; jobs in the order of arrival
    job_task: np.ndarray  # int32[task], job by job, those of each in their order
    stage_first: np.ndarray  # int64[job + 1], likewise
    job_stage: np.ndarray  # int32[stage]
    window: np.ndarray  # int64[3]: the first job that a window may begin with, how many may, and how many jobs it has


class Waiting(NamedTuple):
    """The heads that wait, a circle of links in their order; the last place of both arrays is before the first."""

    next: np.ndarray  # int32[task + 1]
    previous: np.ndarray  # int32[task + 1]


class Gangs(NamedTuple):
    """How the gangs stand, by head."""

    head: np.ndarray  # int32[task], the head of each task
    follows: np.ndarray  # int32[task]
    left: np.ndarray  # int32[task], tasks of the head's gang that have not ended
    missing: np.ndarray  # int32[task], those that neither wait nor have ended


class Episode(NamedTuple):
    """One run over one window; its tasks are numbered from 0 on, in the workload's order."""

    sim: Simulation
    waiting: Waiting
    gangs: Gangs
    task: np.ndarray  # int32[task], the workload's row of each
    stage: np.ndarray  # int32[stage], likewise
    shown: np.ndarray  # int32[place], the heads that an action may name, NO_HEAD behind the last
    random: np.ndarray  # uint64[1], state of the numbers that windows are drawn with
    state: np.ndarray  # int64[STATE_SIZE]: TASKS_HERE ... INVALID_ACTIONS


class Answers(NamedTuple):
    """What comes in and goes out, a row an episode."""

    action: np.ndarray  # int64[episode]
    chosen: np.ndarray  # bool[episode], which ones begin anew
    first_job: np.ndarray  # int64[episode], with which job, or ANY_JOB
    waiting: np.ndarray  # float32[episode, place, feature]
    fleet: np.ndarray  # float32[episode, feature]
    mask: np.ndarray  # int8[episode, action], 1 for those that are possible
    parts: np.ndarray  # float64[episode, part] of the reward of this step
    reward: np.ndarray  # float64[episode], minus the weighted parts, over the tasks of the window
    ended: np.ndarray  # bool[episode], whether this step was the last one
    state: np.ndarray  # int64[episode, STATE_SIZE], a copy of each one's


class Episodes(NamedTuple):
    """All that one call works on."""

    source: Source
    rules: np.ndarray  # int64[placement]: FIRST_FITTING, or a rule of extreme_fit
    weights: np.ndarray  # float64[part], of a reward
    answers: Answers
    episodes: list[Episode]
