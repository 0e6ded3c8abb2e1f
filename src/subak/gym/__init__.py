"""Environments for learning to schedule, over the simulator's own engine: docs/learning.md. Needs the extra `gym`.

    import gymnasium
    import subak.gym

    env = gymnasium.make("subak/Scheduling-v0", workload="google2011-sampled", machines=100, capacity={...})
"""
import gymnasium

from subak.gym.environment import SchedulingEnv
from subak.gym.vector import SchedulingVectorEnv

__all__ = ["SchedulingEnv", "SchedulingVectorEnv"]

gymnasium.register("subak/Scheduling-v0", entry_point=SchedulingEnv, vector_entry_point=SchedulingVectorEnv)
