"""An environment of many episodes at once, stepped by one compiled call."""
from typing import Any

import numpy as np
import polars as pl
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from subak.errors import InputError
from subak.gym.batch import Batch, Settings
from subak.gym.environment import EPISODE_SEED_END

EVERY = slice(None)


class SchedulingVectorEnv(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """As many `SchedulingEnv` as *num_envs*; keywords are the fields of `Settings`.

    An episode that has ended begins anew with the next step, whose action for it is ignored and whose reward is 0.
    Seeded with a number, episode k goes as a `SchedulingEnv` seeded with that number plus k.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int = 16, render_mode: None = None, **settings: Any) -> None:
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.batch = Batch(Settings(**settings), num_envs)
        self.single_observation_space = self.batch.observation_space()
        self.single_action_space = self.batch.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.everybody = np.ones(num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, object] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Begin all episodes, or those of ``options={"reset_mask": ...}``; with ``"window"``, in certain windows."""
        asked = options or {}
        chosen = np.asarray(asked.get("reset_mask", self.everybody), bool)
        if chosen.shape != (self.num_envs,):
            raise InputError(f"reset_mask: must be one for each of {self.num_envs} episodes, not {chosen.shape}")
        window = asked.get("window")
        windows = None if window is None else np.broadcast_to(np.asarray(window), (self.num_envs,))
        self.batch.begin(chosen, self._seeds(seed), windows)
        return self.batch.observation(EVERY), self._info()

    def _seeds(self, seed: int | list[int | None] | None) -> list[int | None]:
        """Return the seed of each episode, None where its numbers go on."""
        if isinstance(seed, list):
            if len(seed) != self.num_envs:
                raise InputError(f"seed: must be one, or one for each of {self.num_envs} episodes, not {len(seed)}")
            self.batch.is_seeded = True
            return seed
        if seed is None and self.batch.is_seeded:
            return [None] * self.num_envs
        super().reset(seed=seed)
        begin = int(self.np_random.integers(EPISODE_SEED_END)) if seed is None else seed
        self.batch.is_seeded = True
        return [begin + number for number in range(self.num_envs)]

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Do an action in each episode."""
        self.batch.step(actions)
        answers = self.batch.answers
        return (self.batch.observation(EVERY), answers.reward.copy(), answers.ended.copy(),
                np.zeros(self.num_envs, bool), self._info())

    def action_masks(self) -> np.ndarray:
        """Return bool[episode, action]: which are possible."""
        return self.batch.answers.mask.astype(bool)

    @property
    def windows(self) -> int:
        """How many windows there are to draw from."""
        return self.batch.windows

    def task_table(self, number: int) -> pl.DataFrame:
        """Return the task table of an episode as it stands."""
        return self.batch.task_table(number)

    def _info(self) -> dict[str, np.ndarray]:
        info: dict[str, Any] = self.batch.info(EVERY)
        return {**info, **{f"_{name}": self.everybody for name in info}}
