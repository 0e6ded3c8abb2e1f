"""How long a study takes, before any of it has run: about, from how fast engines are on two cores of 2023."""
import math
from collections.abc import Iterable

from subak.experiment.study.plan import Work
from subak.federation.settings import Federation
from subak.policy_files import named_scheduler

START_S = 4.0  # until the first run begins
RUN_S = 0.03  # of a run whatever its size
TASK_S = {"": 4e-6}  # of a task, simulated and measured, by engine
FEDERATED_TASK_S = 12e-6
UPDATE_S = 1e-6  # of an update of a local master to a global one


def seconds_of(work: Iterable[Work], processes: int) -> float:
    """Return about how many seconds the runs take on so many processes."""
    return START_S + sum(map(_seconds, work)) / processes


def _seconds(work: Work) -> float:
    scheduler = named_scheduler(work.scenario.schedulers[0])
    if not scheduler.architecture:
        return RUN_S + work.tasks * TASK_S[""]
    settings: Federation = work.scenario.federation
    beats = work.seconds / settings.heartbeat * settings.global_masters * (settings.local_masters or 10)
    updates = beats if "heartbeat" in scheduler.settings and math.isfinite(beats) else 0.0
    return RUN_S + work.tasks * FEDERATED_TASK_S + updates * UPDATE_S
