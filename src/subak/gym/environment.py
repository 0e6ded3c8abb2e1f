"""An environment of one episode at a time."""
from typing import Any

import gymnasium
import numpy as np
import polars as pl
from gymnasium.error import ResetNeeded

from subak.gym.batch import Batch, Settings

EPISODE_SEED_END = 2**63


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """A cluster on which the jobs of a window of a workload arrive, and in which each step starts a task, or waits.

    Keywords are the fields of `Settings`. An action names the place of a task, or gang, among those shown, and a
    placement: ``place * len(placements) + placement``; the last action waits for the next event. `action_mask` says
    which are possible. The episode ends when nothing will ever happen any more; it is never truncated.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's)

    def __init__(self, render_mode: None = None, **settings: Any) -> None:
        self.render_mode = render_mode
        self.batch = Batch(Settings(**settings), 1)
        self.observation_space = self.batch.observation_space()
        self.action_space = self.batch.action_space()
        self.is_running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Begin an episode: in a window drawn by the seed, or, with ``options={"window": 7}``, in a certain one."""
        super().reset(seed=seed)
        if seed is None and not self.batch.is_seeded:
            seed = int(self.np_random.integers(EPISODE_SEED_END))
        self.batch.is_seeded = True
        window = (options or {}).get("window")
        self.batch.begin(np.ones(1, bool), [seed], None if window is None else np.array([window]))
        self.is_running = True
        return self.batch.observation(0), self.batch.info(0)

    def step(self, action: int) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, np.ndarray]]:
        """Do an action; return what is seen, the reward, whether the episode has ended, False, and more."""
        if not self.is_running:
            raise ResetNeeded("the episode has ended, or not begun; call reset()")
        batch = self.batch
        batch.step(action)
        ended = bool(batch.answers.ended[0])
        self.is_running = not ended
        return batch.observation(0), float(batch.answers.reward[0]), ended, False, batch.info(0)

    def action_masks(self) -> np.ndarray:
        """Return bool[action]: which are possible (the name that sb3-contrib's MaskablePPO asks for)."""
        return self.batch.answers.mask[0].astype(bool)

    @property
    def windows(self) -> int:
        """How many windows there are to draw from."""
        return self.batch.windows

    def task_table(self) -> pl.DataFrame:
        """Return the task table of the episode as it stands: the columns of a run folder's tasks.parquet."""
        return self.batch.task_table(0)
