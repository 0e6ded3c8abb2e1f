"""Turns the arrays of a finished run into tables of tasks, intervals and lost attempts."""
import numpy as np
import polars as pl

from subak.fleet.locality import LEVELS, NO_HOLDER, input_level
from subak.fleet.speeds import attempt_seconds, run_seconds
from subak.fleet.table import Fleet
from subak.placement.claims import (
    TASK_BLOCKED,
    TASK_FINISHED,
    TASK_GIVEN_UP,
    TASK_NOT_ARRIVED,
    TASK_RUNNING,
    TASK_UNPLACEABLE,
    TASK_WAITING,
)
from subak.resources import amount_number, amount_words
from subak.simulator.endings import TRIED_AGAIN, ending_columns, possible_statuses, why_given_up
from subak.simulator.engine.columns import coded, named, numbers, worded
from subak.simulator.engine.interference import interferes
from subak.simulator.engine.state import (
    FIRST_RESOURCE,
    PER_RESOURCE,
    TIMELINE_ARRIVALS,
    TIMELINE_ENDS,
    TIMELINE_LOST,
    TIMELINE_MESSAGES,
    TIMELINE_PREEMPTIONS,
    TIMELINE_REFUSALS,
    TIMELINE_REPARTITIONS,
    TIMELINE_RUNNING_MEAN,
    TIMELINE_STARTS,
    TIMELINE_WAITING_MAX,
    TIMELINE_WAITING_MEAN,
)
from subak.simulator.federated_results import (
    allowed_machines,
    master_columns,
    parts_of_allocation,
    waiting_reasons,
)
from subak.simulator.gang_reasons import add_gang_reasons
from subak.simulator.outcome import Outcome
from subak.workload.table import Workload

WHILE_BLOCKED, AFTER_THE_END = "its stage waits for others to end", "it arrives after the end of the run"
MESSAGE_COLUMNS = {"messages": TIMELINE_MESSAGES, "refusals": TIMELINE_REFUSALS, "repartitions": TIMELINE_REPARTITIONS,
                   "preemptions": TIMELINE_PREEMPTIONS}


def task_table(outcome: Outcome, workload: Workload, fleet: Fleet) -> pl.DataFrame:
    """Return one row a task: where and when it ran, how long it waited and for what, and how it stands at the end.

    `wait_time` is the first start minus `ready` (response time in LoTES, section 1); the four parts of the allocation
    time of the last start are Megha's (section II), and add up to that start minus `ready`. A run that sees everything
    at once has only queueing, counted where the scheduler lets tasks wait; a federated one has more columns, and so has
    one with a plan of failures, in which all attempts of tasks that were given up are in `attempt_table`; one in which
    tasks share CPU says how much longer each ran for that.
    """
    sim = outcome.simulation
    status = sim.claims.status
    started = np.isin(status, (TASK_RUNNING, TASK_FINISHED))
    table = workload.tasks
    job = workload.stages["job"].gather(table["stage"])
    waited = np.where(started, sim.progress.start - sim.progress.ready, np.nan)
    is_first = not any(part.size for part in outcome.loop_result.losses)
    first_waits = waited if is_first else first_start(outcome) - sim.progress.ready
    wait = numbers("wait_time", first_waits)
    parts = _parts_of_allocation(outcome, waited, started, {id(first_waits): wait})
    return pl.DataFrame([
        job.alias("job"),
        table["index"],
        named(workload.jobs["queue"], job.to_numpy(), "queue"),
        table["arrival"],
        table["run_time"],
        _ready(outcome, table["arrival"]),
        numbers("start", np.where(started, sim.progress.start, np.nan)),
        numbers("finish", np.where(status == TASK_FINISHED, finish_times(outcome), np.nan)),
        wait,
        named(fleet.machines["machine"], np.where(started, machine_rows(outcome), -1), "machine"),
        pl.Series("attempts", sim.progress.attempts),
        coded(status, possible_statuses(outcome), "status"),
        _reasons(outcome, workload),
        *parts,
        *_locality(outcome, started),
        *master_columns(outcome, fleet),
        *ending_columns(outcome),
        *_execution_delay(outcome),
    ])


def _locality(outcome: Outcome, started: np.ndarray) -> list[pl.Series]:
    """Return how near its input each task ran last, where any task is known to have some; null for the others."""
    sim = outcome.simulation
    inputs = sim.speeds.inputs
    if inputs.holder.shape[1] == 0:
        return []
    level = input_level(inputs, np.arange(started.size), sim.progress.machine)
    return [coded(np.where(started & (inputs.holder[0] != NO_HOLDER), level, -1), LEVELS, "locality")]


def _ready(outcome: Outcome, arrival: pl.Series) -> pl.Series:
    """Return when each task could begin, null where that is not known; the column of arrivals if all could then."""
    ready, status = outcome.simulation.progress.ready, outcome.simulation.claims.status
    unknown = np.isin(status, (TASK_NOT_ARRIVED, TASK_BLOCKED))
    if not unknown.any() and np.array_equal(ready, arrival.to_numpy()):
        return arrival.alias("ready")
    return numbers("ready", np.where(unknown, np.nan, ready))


def _parts_of_allocation(
    outcome: Outcome, waited: np.ndarray, started: np.ndarray, made: dict[int, pl.Series]
) -> list[pl.Series]:
    """Return a column for each part, null where *started* is not; parts that are one array are one column's.

    *made* are columns that there are, by the array (`id`) that they were made of; more are added.
    """
    parts = parts_of_allocation(outcome, waited)
    for values in parts.values():
        if id(values) not in made:
            made[id(values)] = numbers("", values, started)
    return [made[id(values)].alias(name) for name, values in parts.items()]


def finish_times(outcome: Outcome) -> np.ndarray:
    """Return float64[task]: when the last attempt of each task ended or is to end, nan where there was none.

    Where CPU is shared it is not known beforehand, and nan for what has not finished.
    """
    sim = outcome.simulation
    if interferes(sim.interference):
        return sim.interference.end
    return full_pace_finish(outcome)


def full_pace_finish(outcome: Outcome) -> np.ndarray:
    """Return float64[task]: when the last attempt of each task ends that gets all the CPU it wants, nan for none."""
    sim = outcome.simulation
    every, machine = np.arange(sim.tasks.arrival.size), sim.progress.machine
    end = sim.progress.start + attempt_seconds(sim.speeds, sim.tasks, every, machine)
    if sim.slow.opened.size > 0:
        end = np.maximum(end, sim.slow.opened[sim.stages.of_task] + run_seconds(sim.speeds, sim.tasks, every, machine))
    return end


def _execution_delay(outcome: Outcome) -> list[pl.Series]:
    """Return how much longer the last attempt of a finished task ran for sharing CPU (Megha VI-F), where any does."""
    sim = outcome.simulation
    if not interferes(sim.interference):
        return []
    delay = sim.interference.end - full_pace_finish(outcome)
    return [numbers("execution_delay", np.maximum(delay, 0.0))]  # its CPU-seconds are added up in another order


def timeline_table(outcome: Outcome, workload: Workload) -> pl.DataFrame:
    """Return one row an interval: counts within it, means over it, amounts in natural units.

    What is stranded is null where it is not known on which machines tasks run. A federated run has more columns: the
    messages handled in the interval, and what some of them said.
    """
    rows = outcome.loop_result.timeline
    time = np.arange(len(rows)) * outcome.loop_result.interval
    span = np.minimum(outcome.loop_result.interval, np.maximum(outcome.loop_result.end - time, 0.0))
    over = 1.0 / np.where(span > 0, span, 1.0)
    columns: dict[str, np.ndarray] = {
        "time": time, "span": span,
        "arrivals": rows[:, TIMELINE_ARRIVALS].astype(np.int64), "starts": rows[:, TIMELINE_STARTS].astype(np.int64),
        "ends": rows[:, TIMELINE_ENDS].astype(np.int64), "lost": rows[:, TIMELINE_LOST].astype(np.int64),
        "waiting": rows[:, TIMELINE_WAITING_MEAN] * over, "waiting_max": rows[:, TIMELINE_WAITING_MAX].astype(np.int64),
        "running": rows[:, TIMELINE_RUNNING_MEAN] * over,
    }
    for number, resource in enumerate(workload.resources):
        first = FIRST_RESOURCE + PER_RESOURCE * number
        columns[f"used_{resource.name}"] = rows[:, first] * over * resource.unit
        columns[f"capacity_{resource.name}"] = rows[:, first + 1] * over * resource.unit
        columns[f"stranded_{resource.name}"] = rows[:, first + 2] * resource.unit
    if outcome.federated is not None:
        columns |= {name: rows[:, column].astype(np.int64) for name, column in MESSAGE_COLUMNS.items()}
    return pl.DataFrame(columns).with_columns(pl.col(r"^stranded_.*$").fill_nan(None))


def attempt_table(outcome: Outcome, workload: Workload, fleet: Fleet) -> pl.DataFrame:
    """Return one row an attempt that did not finish: its machine left or shrank, it was preempted, something failed.

    Its task waited again, unless it was given up.
    """
    task, machine, start, end = np.hstack(outcome.loop_result.losses)
    rows = task.astype(np.int64)
    job = workload.stages["job"].gather(workload.tasks["stage"].gather(rows))
    return pl.DataFrame([
        job.alias("job"), workload.tasks["index"].gather(rows),
        named(fleet.machines["machine"], outcome.prepared.machine_order[machine.astype(np.int64)], "machine"),
        pl.Series("start", start), pl.Series("end", end),
    ])


def attempts_lost(outcome: Outcome) -> tuple[int, float]:
    """Return how many attempts were lost, and the seconds that they had run; those that failed were not lost."""
    each = np.concatenate([end - start for _, _, start, end in outcome.loop_result.losses])  # for one sum of all
    count, seconds = each.size, float(each.sum())
    if outcome.federated is None:
        return count, seconds
    network = outcome.federated.network
    return count - int(network.failed.sum()), seconds - float(network.failed_seconds.sum())


def machine_rows(outcome: Outcome) -> np.ndarray:
    """Return int32[task]: the fleet's row of the last machine of each task, -1 where it never started."""
    machine = outcome.simulation.progress.machine
    return np.where(machine >= 0, outcome.prepared.machine_order[machine], -1)


def first_start(outcome: Outcome) -> np.ndarray:
    """Return float64[task]: the start of the first attempt, lost or not; nan where there was none."""
    task, _, start, _ = np.hstack(outcome.loop_result.losses)
    first = outcome.simulation.progress.start.copy()
    waiting = ~np.isin(outcome.simulation.claims.status, (TASK_RUNNING, TASK_FINISHED))
    first[waiting] = np.nan
    np.fmin.at(first, task.astype(np.int64), start)
    return first


def _reasons(outcome: Outcome, workload: Workload) -> pl.Series:
    """Return why each task is not where it wants to be, null for one that runs or is done."""
    sim = outcome.simulation
    status, shape = sim.claims.status, sim.tasks.shape
    words: list[str] = [WHILE_BLOCKED, AFTER_THE_END]
    code = np.full(status.size, -1, np.int64)
    code[status == TASK_BLOCKED] = 0
    code[status == TASK_NOT_ARRIVED] = 1
    for number in np.unique(shape[status == TASK_UNPLACEABLE]):
        code[(status == TASK_UNPLACEABLE) & (shape == number)] = len(words)
        words.append(outcome.prepared.reason_of_shape[int(number)])
    waiting = np.flatnonzero(status == TASK_WAITING)
    found, why = waiting_reasons(outcome, waiting, lambda number: waiting_reason(outcome, workload, number))
    code[waiting] = found + len(words)
    words += why
    add_gang_reasons(outcome, workload, code, words)
    between = np.flatnonzero((status == TASK_BLOCKED) & (sim.progress.attempts > 0))
    if between.size:
        code[between] = len(words)
        words.append(TRIED_AGAIN)
    given_up = np.flatnonzero(status == TASK_GIVEN_UP)
    if given_up.size:
        found, why = why_given_up(outcome, given_up)
        code[given_up] = found + len(words)
        words += why
    return worded(code, words, "reason")


def possible_reasons(outcome: Outcome, workload: Workload, tasks_of_stage: np.ndarray) -> list[str]:
    """Return the reasons that the tasks of a central scheduler may have, each once, as they come in its task table.

    *outcome* may be of those alone that were open last; *tasks_of_stage* is int[stage], of the whole run.
    """
    asked, sim = np.unique(outcome.prepared.shapes.of_stage[tasks_of_stage > 0]), outcome.simulation
    hopeless = [outcome.prepared.reason_of_shape[shape] for shape in asked.tolist()]
    waiting = np.flatnonzero(sim.claims.status == TASK_WAITING)
    _, lacking = waiting_reasons(outcome, waiting, lambda shape: waiting_reason(outcome, workload, shape))
    return list(dict.fromkeys([WHILE_BLOCKED, AFTER_THE_END, *filter(None, hopeless), *lacking]))


def waiting_reason(outcome: Outcome, workload: Workload, shape: int) -> str:
    """Say why a waiting task of *shape* could not start in the final state."""
    sim = outcome.simulation
    fleet = sim.fleet
    allowed = allowed_machines(sim, shape)
    if not allowed.any():
        return "no machine that meets its constraints is present"
    free = fleet.free[:, : fleet.machines][:, allowed]
    request = sim.tasks.request[:, shape]
    if (free >= request[:, None]).all(axis=0).any():
        return "its turn had not come: a machine could take it, but the scheduler did not start it"
    lacking = [
        f"{resource.name} {amount_words(resource, asked)} "
        f"(at most {amount_number(resource, most)} is free on one machine)"
        for resource, asked, most in zip(workload.resources, request, free.max(axis=1), strict=True) if asked > most
    ]
    return "no machine has free " + " or ".join(lacking) if lacking else "no machine has all it asks free together"
