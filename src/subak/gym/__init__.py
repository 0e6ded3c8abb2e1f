"""Gymnasium environments over the simulator's own engine (docs/learning.md; needs the extra `gym`).

Importing this registers ``subak/Scheduling-v0`` for `gymnasium.make` and `gymnasium.make_vec`.
"""
import gymnasium

from subak.gym.environment import SchedulingEnv
from subak.gym.vector import SchedulingVectorEnv

__all__ = ["SchedulingEnv", "SchedulingVectorEnv"]

NAME = "subak/Scheduling-v0"

if NAME not in gymnasium.registry:
    gymnasium.register(NAME, entry_point=SchedulingEnv, vector_entry_point=SchedulingVectorEnv)
