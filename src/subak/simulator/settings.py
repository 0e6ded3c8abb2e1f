"""The settings of a run: what a run is told beside its workload, fleet and scheduler.

What is refused here follows from settings alone; beforehand.py looks at the workload and the fleet too.
"""
import math
from typing import Annotated

import msgspec

from subak.errors import InputError
from subak.placement.lotes.settings import LotesSettings
from subak.placement.mapreduce.recipes import RECIPES, SearchSettings
from subak.placement.schedulers import HOLD_BACK_AFTER, LOCALITY_WAIT, LOTES, Scheduler
from subak.quantities import Seconds
from subak.queues.orders import FAIR_ORDERS
from subak.settings import DURATION, EVERY, FAIR, FILE, TIME, WHEN, Setting, Users, refuse_unused, refuse_values, where
from subak.simulator.estimate_words import FACTOR, parse_estimates

FOREVER = math.inf
PROMISED_MAX = 100  # times the CPU that a machine has


def _is_fair(scheduler: Scheduler) -> bool:
    return scheduler.order in FAIR_ORDERS and scheduler.planned != LOTES


def _holds_back(scheduler: Scheduler) -> bool:
    return _is_fair(scheduler) or scheduler.architecture in ("megha", "central")


def _not_federated(scheduler: Scheduler) -> str:
    return ("is a federation, in which tasks start when all that they wait for has ended"
            if scheduler.architecture else "")


def _shares_cpu(scheduler: Scheduler) -> str:
    kinds = {"is a federation, whose workers give what they promise": bool(scheduler.architecture),
             "is what a log says": scheduler.recorded}
    return next((f"{words}; tasks may share CPU under the others" for words, holds in kinds.items() if holds), "")


def _may_change(others: str) -> Users:
    """Return the schedulers under which what a task asks for may change; *others* says so of them."""
    def why_not(scheduler: Scheduler) -> str:
        kinds = {
            "is a federation": bool(scheduler.architecture), "is what a log says": scheduler.recorded,
            "is a fair order, for which a task asks for the same always": scheduler.order in FAIR_ORDERS,
            "is delay scheduling, for which the tasks of a stage ask for the same": scheduler.delays,
            "makes reservations, for which a task asks for the same always": bool(scheduler.reserves)}
        return next((f"{words}; {others}" for words, holds in kinds.items() if holds), "")
    return Users(why_not, all=True)


_FAIR_WORDS = f"has a fair order; these are {', '.join(FAIR_ORDERS)}, alone or as in best-fit+mch"
_SEARCHING = Users(
    lambda scheduler: "" if scheduler.planned in RECIPES and RECIPES[scheduler.planned].searches else "searches not",
    f"searches; {', '.join(name for name, recipe in RECIPES.items() if recipe.searches)} would")
_SHARE = where(lambda share: 0 <= share < 1, "a share from 0 to below 1")


def _estimates_rule(text: str) -> str:
    parse_estimates(text)  # which words what it refuses
    return ""


class RunSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a run is told beside its workload, fleet and scheduler; a scenario has it, and the engine is given it."""

    interval: Annotated[Seconds | None, Setting(
        "Length of the timeline's intervals [default: about 400 over the arrivals].", DURATION, TIME, EVERY,
        where(lambda seconds: math.isfinite(seconds) and seconds > 0, "a positive number of seconds"))] = None
    until: Annotated[Seconds, Setting(
        "Stop at this instant, such as 5400, 1h30m, 2d, 1-02:30:00 or a date [default: when everything has ended].",
        WHEN, TIME, EVERY, where(lambda seconds: seconds >= 0, "0 seconds or more"))] = FOREVER
    slow_start: Annotated[float, Setting(
        "Tasks may start when this share of the tasks of their predecessor stage has ended. They hold their machine "
        "until all have ended, and copy available output meanwhile.", "SHARE", TIME, Users(_not_federated, all=True),
        where(lambda share: 0 <= share <= 1, "a share from 0 to 1"), show_default=True)] = 1.0
    locality_wait: Annotated[Seconds, Setting(
        "For delay-scheduling: how long a stage waits for a machine that holds its input, and then equally long for "
        "one in the same rack; 0: fair sharing without delay.", DURATION, TIME,
        Users(lambda scheduler: "" if scheduler.delays else "does not wait",
              "waits for machines with inputs; delay-scheduling does"),
        where(lambda seconds: 0 <= seconds < math.inf, "a finite number of seconds, 0 or more"),
        show_default=True)] = LOCALITY_WAIT
    search_seconds: Annotated[Seconds, Setting(
        "For hmhs-search: how long to improve the plan. The kept scenario records the number of moves, so it can be "
        "repeated.", DURATION, TIME, _SEARCHING, show_default=True)] = 1.0
    search_moves: Annotated[int | None, Setting(
        "For hmhs-search: try exactly this many moves instead.", "N", TIME, _SEARCHING)] = None
    reclaims_per_hour: Annotated[float, Setting(
        "Under a fair order: queues below their guarantees may preempt N tasks an hour from the queue furthest "
        "above its own; at most a minute's worth at once.", "N", FAIR,
        Users(lambda scheduler: "" if _is_fair(scheduler) else "is not fair", _FAIR_WORDS),
        where(lambda times: 0 <= times < math.inf, "0 or more an hour"), show_default=True)] = 0.0
    hold_back_after: Annotated[Seconds, Setting(
        "Under a fair order, and in megha and central: how long smaller tasks may pass a waiting task or gang "
        "before machines are held back for it; inf: for ever.", DURATION, FAIR,
        Users(lambda scheduler: "" if _holds_back(scheduler) else "holds nothing back",
              f"{_FAIR_WORDS}; nor is any megha or central"),
        where(lambda seconds: seconds >= 0, "0 seconds or more, or inf"), show_default=True)] = HOLD_BACK_AFTER
    lotes: Annotated[LotesSettings, Setting(
        "Settings of lotes: its classes, bins, choice of machines and replanning; see `subak explain lotes`.", FILE,
        users=Users(lambda scheduler: "" if scheduler.planned == LOTES else "has no such plan",
                    "goes by these settings; lotes does"))] = msgspec.field(default_factory=LotesSettings)
    request_error: Annotated[float, Setting(
        "Requests differ from use by up to this share, either way. A task that uses more than it asked for is "
        "killed, waits again, and then asks for its true use.", "SHARE",
        users=_may_change("requests may be wrong under the others"), rule=_SHARE, show_default=True, draws=bool)] = 0.0
    usage_swing: Annotated[float, Setting(
        "Usage varies: during the first or the last part of its life a task uses, and holds, this share of its "
        "request less. If its use rises while its machine is full, it is killed, waits again, and then holds its "
        "whole request.", "SHARE", users=_may_change("usage may vary under the others"), rule=_SHARE,
        show_default=True, draws=bool)] = 0.0
    interference: Annotated[float, Setting(
        "Overcommit CPU by this factor, such as 1.5 (1: none, for use with --request-error). Tasks that together "
        "want more CPU than their machine has share it and run longer. Memory is never overcommitted. Not under "
        "federations.", "TIMES", users=Users(_shares_cpu, all=True),
        rule=where(lambda times: times == 0 or 1 <= times <= PROMISED_MAX,
                   f"from 1 to {PROMISED_MAX} times the CPU that machines have, or 0 for none"),
        show_default=True)] = 0.0
    estimates: Annotated[str, Setting(
        "What schedulers know of run times. exact: the run times; user: the users' own estimates; factor=F: the run "
        "time times a factor from 1 to F; class: the mean of tasks with the same request; none: the mean of all "
        "tasks [default: user if the workload has estimates, else exact].",
        "exact|user|factor=F|class|none", users=EVERY, rule=_estimates_rule,
        draws=lambda text: parse_estimates(text)[0] == FACTOR)] = ""

    @property
    def search(self) -> SearchSettings:
        """How long a scheduler that searches improves its plan. Raises InputError for what no search could mean."""
        return SearchSettings(self.search_seconds, self.search_moves)


def refuse_run(settings: RunSettings) -> None:
    """Raise InputError for a value that breaks its rule, and for settings that do not go together."""
    refuse_values(settings)
    settings.search  # noqa: B018  (it refuses)
    if settings.usage_swing and settings.request_error:
        raise InputError("usage_swing: goes with right requests, so that request_error must be 0, not "
                         f"{settings.request_error:g}")
    if settings.usage_swing and settings.interference:
        raise InputError("usage_swing: is of machines that promise just what they have, so that interference must be "
                         f"0, not {settings.interference:g}")
    if settings.interference and settings.slow_start != 1.0:
        raise InputError("interference: goes with slow_start 1, since what waits for its inputs wants no CPU, not "
                         f"{settings.slow_start:g}")
    if settings.interference == 1 and not settings.request_error:
        raise InputError("interference: of machines that promise just what they have (1) tasks get what they asked "
                         "for; give more than 1, or request_error, with which they want more than they asked for")


def refuse_told(settings: RunSettings, scheduler: Scheduler) -> None:
    """Raise InputError for what a run of this scheduler could not mean."""
    refuse_run(settings)
    refuse_unused(settings, [scheduler])
