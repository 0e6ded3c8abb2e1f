"""Says why gangs wait or can never start, under a central scheduler."""
import numpy as np

from subak.placement.claims import TASK_FINISHED, TASK_UNPLACEABLE, TASK_WAITING
from subak.simulator.federated_results import GANG_INCOMPLETE, GANG_TOO_LARGE, could_take
from subak.simulator.outcome import Outcome
from subak.workload.table import Workload


def add_gang_reasons(outcome: Outcome, workload: Workload, code: np.ndarray, words: list[str]) -> None:
    """Put better words where *code* (int64[task], places in *words*) says what a task alone would lack."""
    sizes = workload.gang_sizes()
    if outcome.federated is not None or not outcome.scheduler.starts_gangs or not sizes.any():
        return
    stage, status = workload.tasks["stage"].to_numpy(), outcome.simulation.claims.status
    size = sizes[stage]
    hopeless = (status == TASK_UNPLACEABLE) & (size > 0)
    for number in np.unique(size[hopeless]):
        alone = np.array([not word for word in words])[code] & hopeless & (size == number)
        code[alone] = len(words)
        words.append(f"its gang of {number} is larger than all machines together ever hold")
    at_rest = np.bincount(stage, np.isin(status, (TASK_WAITING, TASK_FINISHED)), sizes.size)
    waiting = (status == TASK_WAITING) & (size > 0)
    code[waiting & (at_rest < sizes)[stage]] = len(words)
    shapes = outcome.simulation.tasks.shape
    for shape in np.unique(shapes[waiting]):
        if could_take(outcome.simulation.fleet.free, outcome.simulation, int(shape)).any():
            code[waiting & (at_rest == sizes)[stage] & (shapes == shape)] = len(words) + 1
    words += [GANG_INCOMPLETE, GANG_TOO_LARGE]
