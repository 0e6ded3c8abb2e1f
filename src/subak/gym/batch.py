"""Drives episodes for both environments: settings, spaces, rewards, one compiled call per step."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from gymnasium import spaces

from subak.errors import InputError
from subak.experiment.inputs import load_inputs
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures.window import window_of
from subak.simulator.episodes.build import Asked, World, build_world, outcome_of, window_workload
from subak.simulator.episodes.serve import service
from subak.simulator.episodes.state import (
    ANY_JOB,
    BEGIN_CHOSEN,
    FIRST_JOB,
    INVALID_ACTIONS,
    PARTS,
    STEP_ALL,
)
from subak.simulator.results import task_table
from subak.workload.table import Workload

Reward = str | Mapping[str, float]
REWARDS: dict[str, dict[str, float]] = {
    "slowdown": {"slowdown": 1.0},  # the return is minus the mean bounded slowdown of the tasks
    "wait": {"waiting": 1.0},  # minus their mean wait in seconds: what waits, integrated over time
    "turnaround": {"waiting": 1.0, "running": 1.0},  # minus their mean turnaround in seconds
    "makespan": {"seconds": 1.0},  # minus the makespan in seconds, over the tasks
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What episodes are like; the words of both environments.

    Raises InputError for what no episode could be.
    """

    workload: Workload | str | Path = "google2011-sampled"  # or a workload folder, or the name of a sample
    fleet: Fleet | str | Path | None = None  # or a fleet folder; None: the one inside the workload's
    machines: int = 0  # instead of a fleet: this many alike machines
    capacity: Mapping[str, float] | None = None  # of each of them, in natural amounts
    jobs: int = 128  # of an episode, neighbours in the order of arrival
    shown: int = 32  # tasks, or gangs, that an action may name: the first of those that wait
    placements: Sequence[str] = ("first-fit",)  # that an action may choose: also best-fit, worst-fit, aligned-fit
    order: str = "fifo"  # of those who wait: fifo, shortest-first or priority
    estimates: str = ""  # of run times, that are seen: as the option --estimates
    reward: Reward = "slowdown"  # one of REWARDS, or weights of the parts of a reward


class Batch:
    """Episodes side by side, and what is seen of them."""

    def __init__(self, settings: Settings, episodes: int) -> None:
        workload, fleet = _inputs(settings)
        window = window_of(workload)
        self.settings = settings
        self.world: World = build_world(workload, fleet, Asked(
            episodes, settings.jobs, settings.shown, tuple(settings.placements), settings.order, settings.estimates,
            window.begin, window.end, weights_of(settings.reward)))
        self.answers = self.world.state.answers
        self.run = service(self.world.state)
        self.is_seeded = False
        self.first_job = int(self.world.cut.window[0])  # of window 0

    @property
    def windows(self) -> int:
        """How many windows there are to draw from."""
        return int(self.world.cut.window[1])

    def observation_space(self) -> spaces.Dict:
        """Return the space of what is seen of one episode."""
        answers = self.answers
        return spaces.Dict({
            "waiting": spaces.Box(0.0, 1.0, answers.waiting.shape[1:], np.float32),
            "fleet": spaces.Box(0.0, 1.0, answers.fleet.shape[1:], np.float32),
            "action_mask": spaces.MultiBinary(answers.mask.shape[1]),
        })

    def action_space(self) -> spaces.Discrete:
        """Return the space of actions of one episode: a place and a placement, or, the last one, to wait."""
        return spaces.Discrete(self.answers.mask.shape[1])

    def begin(self, chosen: np.ndarray, seeds: Sequence[int | None], windows: np.ndarray | None) -> None:
        """Begin the *chosen* episodes (bool[episode]) anew, with new seeds where there are, or certain windows.

        Raises InputError for a window that is none.
        """
        count = self.windows
        for number, seed in enumerate(seeds):
            if seed is not None:
                self.world.state.episodes[number].random[0] = seed
        if windows is not None and not ((windows >= 0) & (windows < count)).all():
            raise InputError(f"window: must be from 0 to {count - 1}, not {windows.tolist()}")
        self.answers.chosen[:] = chosen
        self.answers.first_job[:] = ANY_JOB if windows is None else windows + self.first_job
        self.run(BEGIN_CHOSEN)

    def step(self, actions: int | np.ndarray) -> None:
        """Do an action in each episode."""
        self.answers.action[:] = actions
        self.run(STEP_ALL)

    def observation(self, which: int | slice) -> dict[str, np.ndarray]:
        """Return a copy of what is seen of *which*: the number of one, or a slice."""
        answers = self.answers
        return {"waiting": answers.waiting[which].copy(), "fleet": answers.fleet[which].copy(),
                "action_mask": answers.mask[which].copy()}

    def info(self, which: int | slice) -> dict[str, np.ndarray]:
        """Return the parts of this step's reward, the windows, and how many actions were invalid so far."""
        state = self.answers.state[which].T
        return {"parts": self.answers.parts[which].copy(), "window": state[FIRST_JOB] - self.first_job,
                "invalid_actions": state[INVALID_ACTIONS].copy()}

    def task_table(self, number: int) -> pl.DataFrame:
        """Return the task table of an episode as it stands, as `subak simulate` writes it."""
        first = int(self.answers.state[number, FIRST_JOB])
        workload = window_workload(self.world, first)
        return task_table(outcome_of(self.world, number, "agent"), workload, self.world.fleet)


def weights_of(reward: Reward) -> np.ndarray:
    """Return float64[part]. Raises InputError for an unknown word, or a part that is none."""
    if isinstance(reward, str):
        if reward not in REWARDS:
            raise InputError(f"reward: must be one of {', '.join(REWARDS)}, or weights of {', '.join(PARTS)}, "
                             f"not {reward!r}")
        reward = REWARDS[reward]
    unknown = next((name for name in reward if name not in PARTS), None)
    if unknown is not None or not reward:
        raise InputError(f"reward: weights must be of {', '.join(PARTS)}, not of {unknown!r}")
    weights = np.array([float(reward.get(name, 0.0)) for name in PARTS])
    if not np.isfinite(weights).all():
        raise InputError(f"reward: weights must be finite numbers, not {dict(reward)}")
    return weights


def _inputs(settings: Settings) -> tuple[Workload, Fleet]:
    """Return workload and fleet, read where they are named."""
    workload, fleet = settings.workload, settings.fleet
    if isinstance(workload, Workload) and isinstance(fleet, Fleet):
        return workload, fleet
    if isinstance(workload, Workload) or isinstance(fleet, Fleet):
        raise InputError("workload and fleet: give both as tables, or both by their names")
    return load_inputs(Scenario(workload=str(workload), fleet="" if fleet is None else str(fleet),
                                machines=settings.machines, capacity=dict(settings.capacity or {})))
