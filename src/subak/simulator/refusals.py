"""Refuses runs whose settings contradict each other (beforehand.py checks the inputs)."""
import math

from subak.errors import InputError
from subak.placement.schedulers import Scheduler
from subak.queues.orders import FAIR_ORDERS

PROMISED_MAX = 100  # times the CPU that a machine has


def refuse_slow_start(share: float, scheduler: Scheduler) -> None:
    """Raise InputError for what is no share, and for federations, in which nothing starts before its inputs."""
    if not 0 <= share <= 1:
        raise InputError(f"slow_start: must be a share from 0 to 1, not {share:g}")
    if scheduler.architecture and share != 1.0:
        raise InputError(f"slow_start: {scheduler.name} is a federation, in which tasks start when all that they wait "
                         f"for has ended; the share must be 1, not {share:g}")


def refuse_wait(seconds: float) -> None:
    """Raise InputError for a time that no stage could wait for a machine with its input."""
    if not 0 <= seconds < math.inf:
        raise InputError(f"locality_wait: must be a finite number of seconds, 0 or more, not {seconds:g}")


def refuse_error(error: float, scheduler: Scheduler) -> None:
    """Raise InputError for an error that no request could have, or that this scheduler does not know of."""
    _refuse_share("request_error", error)
    _refuse_fixed("request_error", scheduler, "requests may be wrong under the others")


def refuse_swing(swing: float, error: float, interference: float, scheduler: Scheduler) -> None:
    """Raise InputError for a swing of what tasks use that could not be, or that this scheduler does not know of."""
    _refuse_share("usage_swing", swing)
    if error:
        raise InputError(f"usage_swing: goes with right requests, so that request_error must be 0, not {error:g}")
    if interference:
        raise InputError("usage_swing: is of machines that promise just what they have, so that interference must be "
                         f"0, not {interference:g}")
    _refuse_fixed("usage_swing", scheduler, "usage may vary under the others")


def _refuse_share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise InputError(f"{name}: must be a share from 0 to below 1, not {value:g}")


def _refuse_fixed(name: str, scheduler: Scheduler, others: str) -> None:
    """Refuse schedulers for which what a task asks for may not change."""
    kinds = {"a federation": bool(scheduler.architecture), "what a log says": scheduler.recorded,
             "a fair order, for which a task asks for the same always": scheduler.order in FAIR_ORDERS,
             "delay scheduling, for which the tasks of a stage ask for the same": scheduler.delays}
    kind = next((words for words, holds in kinds.items() if holds), None)
    if kind is not None:
        raise InputError(f"{name}: {scheduler.name} is {kind}; {others}")
    if scheduler.reserves:
        raise InputError(f"{name}: {scheduler.name} makes reservations, for which a task asks for the same always; "
                         f"{others}")


def refuse_interference(times: float, request_error: float, slow_start: float, scheduler: Scheduler) -> None:
    """Raise InputError for a promise that no machine could make, and where nothing would come of it."""
    if not (times == 0 or 1 <= times <= PROMISED_MAX):
        raise InputError(f"interference: must be from 1 to {PROMISED_MAX} times the CPU that machines have, or 0 for "
                         f"none, not {times:g}")
    if not times:
        return
    kinds = {"a federation, whose workers give what they promise": bool(scheduler.architecture),
             "what a log says": scheduler.recorded}
    kind = next((words for words, holds in kinds.items() if holds), None)
    if kind is not None:
        raise InputError(f"interference: {scheduler.name} is {kind}; tasks may share CPU under the others")
    if slow_start != 1.0:
        raise InputError("interference: goes with slow_start 1, since what waits for its inputs wants no CPU, not "
                         f"{slow_start:g}")
    if times == 1 and not request_error:
        raise InputError("interference: of machines that promise just what they have (1) tasks get what they asked "
                         "for; give more than 1, or request_error, with which they want more than they asked for")


def refuse_times(interval: float, until: float) -> None:
    """Raise InputError for an interval that no timeline could have, or an instant before the first."""
    if not (math.isfinite(interval) and interval > 0):
        raise InputError(f"interval: must be a positive number of seconds, not {interval:g}")
    if until < 0 or math.isnan(until):
        raise InputError(f"until: must be 0 seconds or more, not {until:g}")
