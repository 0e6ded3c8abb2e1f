"""The schedulers by name: an order with a placement, a pair of hooks, or a federation.

A name may carry options behind plus signs, in any order: ``first-fit+backfill+shortest-first``, ``tetris+normalised``.
"""
from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from subak.errors import InputError
from subak.nearest import did_you_mean
from subak.placement.lotes.settings import LotesSettings
from subak.placement.mapreduce.recipes import RECIPES
from subak.placement.tunable import Parameter
from subak.queues.orders import FAIR_ORDERS

if TYPE_CHECKING:  # these take a while to load, and whoever only asks for names needs none of them
    from subak.placement.interface.hooks import Memory
    from subak.placement.interface.instance import Instance

AnyFunction = Callable[..., Any]
LOTES = "lotes"
HOLD_BACK_AFTER = 300.0  # seconds for which a task or gang may be passed over before machines are held back for it
ANSWER_TIMEOUT = 60.0  # seconds
LOCALITY_WAIT = 5.0  # seconds of delay scheduling: about 1.5 heartbeats of 3 s, what Hadoop's fair scheduler waits

# Where the functions are that decide, MODULE:NAME; each is loaded when it is called for (`loaded`).
FITS, PAIRS = "subak.placement.fits", "subak.placement"
FIRST_FIT_AT, RANDOM_FIT_AT = f"{FITS}.first_fit:first_fit", f"{FITS}.random_fit:random_fit"
BEST_FIT_AT, WORST_FIT_AT = f"{FITS}.best_fit:best_fit", f"{FITS}.best_fit:worst_fit"
ALIGNED_FIT_AT = f"{FITS}.best_fit:aligned_fit"
# what a scheduler knows of run times
UNKNOWN, NOTHING, LONG_JOBS, CLASS_MEANS, JOB_MEANS, RUN_TIMES = (
    "not recorded", "nothing", "long jobs", "class means", "job means", "run times")
KNOWLEDGE = {
    UNKNOWN: "what the scheduler knew that wrote the log",
    NOTHING: "the same of every task",
    LONG_JOBS: "whether the mean run time of a job is above the cutoff",
    CLASS_MEANS: "the mean run time of tasks that ask for about the same",
    JOB_MEANS: "the mean run time of a job's tasks, or of its maps and of its reduces",
    RUN_TIMES: "the run time of each task",
}

BY_USERS = ", as users estimate them"  # how well


def foreknown(knows: str) -> str:
    """Return what of *knows* no real scheduler is told: of users' estimates nothing, as they come with each job."""
    return NOTHING if not knows or knows.endswith(BY_USERS) else knows


ORDERS = {
    "fifo": "first in, first out",
    "shortest-first": "least estimated run time first",
    "priority": "highest priority first, then first in, first out",
    "johnson": "job by job in Johnson's order of the sums of their maps and of their reduces (Pri of HMHS)",
    "johnson-reversed": "the reverse of johnson: what the worst order costs",
}
ORDERS_KNOW = {"shortest-first": RUN_TIMES, "johnson": JOB_MEANS, "johnson-reversed": JOB_MEANS}  # others: nothing
BACKFILLS = {
    "backfill": "later tasks that fit may start before earlier ones that do not",
    "easy": "backfill that does not delay the first that does not fit: it has a reservation, by estimates (EASY)",
    "conservative": "backfill that delays nobody: everyone has a reservation, by estimates",
}
RESERVING = ("easy", "conservative")
OPTIONS = {
    **BACKFILLS,
    "normalised": "Tetris: both terms divided by their means over the workload, amounts by the largest machine's",
    "least-work": "LoTES: of what arrives at once or waits, the least mean run time of its class times request first",
    "deficit": "LoTES: the configuration that lacks a class most, instead of the roulette wheel",
    "sampled": "LoTES: look at 32 drawn machines of a configuration (or as many as its settings say), not at all",
    "predicted": "LoTES: no plan at first, then one every hour, for what has arrived, which counts half after 6 h",
    "replanned": "LoTES: a new plan every 6 h (or as its settings say), for what arrived in the 24 h before",
    "local": "LoTES: plans count with the fleet's speeds, as those of machines near a task's data",
    **{name: f"order: {text}" for name, text in ORDERS.items()},
    **{name: f"order: {fair.summary}" for name, fair in FAIR_ORDERS.items()},
}


@dataclass(frozen=True)
class Scheduler:
    """One way to decide. Either `select_machine` is given, or both hooks are."""

    name: str
    summary: str
    select_machine: AnyFunction | str | None = None  # this and the next three: a function, or where it is
    on_arrival: AnyFunction | str | None = None
    on_departure: AnyFunction | str | None = None
    gang_machine: AnyFunction | str | None = None  # where a task of a gang goes under it; None: it has no gangs
    order: str = "fifo"
    lanes: str = "one"  # where tasks wait: "one" lane, a lane per "shape" or per "machine"
    reserves: str = ""  # who has a reservation: nobody, or as in the option "easy" or "conservative"
    memory: Callable[[Instance], Memory] | str = "subak.placement.interface.hooks:no_memory"  # what the hooks keep
    weights: Callable[[Instance], Any] | str = ""  # what a machine costs a shape: of those that keep short lists
    machines: str = "given"  # the order machines are tried in: as "given", or largest "configuration" first
    waits_at: str = "framework"  # where the wait is counted: the "framework" queue or a "worker" queue
    accepts: frozenset[str] = frozenset()  # options it understands
    built_in: bool = True
    checked: bool = False  # of a user's policy: compiled with bounds checks
    compiled: bool = True  # else a user's policy is called as plain Python
    command: tuple[str, ...] = ()  # of a scheduler that is a process of its own
    answer_timeout: float = ANSWER_TIMEOUT  # seconds that this process may take for an answer
    planned: str = ""  # the plan that it goes by, made before the run: "lotes", or a recipe for maps and reduces
    tuned: frozenset[str] = frozenset()  # those of LOTES_OPTIONS it was given
    architecture: str = ""  # of a federation: which one; it then has neither of the functions
    delays: bool = False  # a task waits a while for a machine that holds its input
    recorded: bool = False  # it decides nothing: tasks start when the log says that they did
    knows: str = NOTHING  # of run times, at most: a word of KNOWLEDGE; how well, --estimates says
    parameters: tuple[Parameter, ...] = ()  # that the file of a user's policy declares

    def settled(self, settings: LotesSettings) -> LotesSettings:
        """Return LoTES's settings with this scheduler's options, where the settings do not say more already."""
        usual: LotesSettings = LotesSettings()
        changes = {name: value for option, given in LOTES_OPTIONS.items() if option in self.tuned
                   for name, value in given.items()}
        unsaid = {name: value for name, value in changes.items() if getattr(settings, name) == getattr(usual, name)}
        return msgspec.structs.replace(settings, **unsaid)

    @property
    def starts_gangs(self) -> bool:
        """Whether the tasks of a gang start together under it; else each starts by itself."""
        if self.planned or self.architecture:
            return self.planned == LOTES or self.architecture in ("megha", "central")
        return self.select_machine is not None or self.gang_machine is not None

    @property
    def keeps_gangs(self) -> bool:
        """Whether gangs start together in a run of it; what only replays a log starts them as the log says."""
        return self.starts_gangs or self.recorded

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of what is compiled for a run: its loop, and of a federation what serves the roles."""
        if self.planned:
            fair = "run_lotes_fair" if self.order in FAIR_ORDERS else "run_lotes"
            return (fair,) if self.planned == LOTES else ("run_planned",)
        if self.recorded or self.order in FAIR_ORDERS:
            return () if self.recorded else ("run_fair",)
        if self.architecture in ("megha", "central"):
            return ("run_federated", *(f"serve_{role}" for role in _SERVED))
        if self.architecture:
            return ("run_federated", f"serve_{self.architecture}")
        if self.reserves or self.delays:
            return ("run_rigid" if self.reserves else "run_delay",)
        return ("run_hooks",) if self.select_machine is None else ("run_ordered",)


LOTES_OPTIONS: dict[str, dict[str, Any]] = {  # the settings each changes, and their values unless settings say more
    "least-work": {"order": "least-work"}, "deficit": {"choice": "deficit"}, "sampled": {"sampled": 32},
    "predicted": {"mix": "average", "replan_seconds": 3600.0, "replan_window": 21_600.0},
    "replanned": {"replan_seconds": 21_600.0},
    "local": {"local": True},
}
PLACEMENT_OPTIONS = frozenset({*BACKFILLS, *ORDERS, *FAIR_ORDERS})
_SERVED = ("submitter", "global_master", "local_master", "worker", "idle")

SCHEDULERS = {
    scheduler.name: scheduler
    for scheduler in (
        Scheduler("first-fit", "The first machine that fits.", FIRST_FIT_AT, accepts=PLACEMENT_OPTIONS),
        Scheduler("best-fit", "The machine with the least left free.", BEST_FIT_AT,
                  weights=f"{FITS}.best_fit:best_weights", accepts=PLACEMENT_OPTIONS),
        Scheduler("worst-fit", "The machine with the most left free.", WORST_FIT_AT,
                  weights=f"{FITS}.best_fit:worst_weights", accepts=PLACEMENT_OPTIONS),
        Scheduler("aligned-fit", "The machine whose free amounts are best aligned with the request (Tetris's choice).",
                  ALIGNED_FIT_AT, weights=f"{FITS}.best_fit:aligned_weights", accepts=PLACEMENT_OPTIONS),
        Scheduler("random-fit", "Any machine that fits, all equally likely.", RANDOM_FIT_AT, accepts=PLACEMENT_OPTIONS),
        Scheduler("fifo", "First fit, first in first out: another name for first-fit.", FIRST_FIT_AT,
                  accepts=PLACEMENT_OPTIONS),
        *(Scheduler(name, f"First fit; {BACKFILLS[name]}.", FIRST_FIT_AT, reserves=name, accepts=frozenset(ORDERS),
                    knows=RUN_TIMES) for name in RESERVING),
        *(Scheduler(name, f"First fit; {fair.summary}.", FIRST_FIT_AT, order=name)
          for name, fair in FAIR_ORDERS.items()),
        Scheduler(
            "greedy", "First fit over the configurations, largest first, else the shortest machine queue (LoTES 5.2).",
            on_arrival=f"{PAIRS}.greedy:greedy_arrival", on_departure=f"{PAIRS}.greedy:greedy_departure",
            gang_machine=FIRST_FIT_AT,
            lanes="machine", machines="configuration", waits_at="worker",
        ),
        Scheduler(
            "tetris",
            "The highest request . free - run time * request over all waiting tasks and machines (LoTES 5.2).",
            on_arrival=f"{PAIRS}.tetris:tetris_arrival", on_departure=f"{PAIRS}.tetris:tetris_departure",
            gang_machine=f"{PAIRS}.tetris:tetris_machine",
            order="shortest-first", lanes="shape", memory=f"{PAIRS}.tetris:plain_memory",
            weights=f"{PAIRS}.tetris:plain_weights",
            accepts=frozenset({"normalised"}), knows=RUN_TIMES,
        ),
        Scheduler(
            "lotes", "Machines emulate bins of two linear programs; a task goes where its class is lacking (LoTES).",
            planned=LOTES, accepts=frozenset({*LOTES_OPTIONS, *FAIR_ORDERS}), knows=CLASS_MEANS,
        ),
        Scheduler(
            "fifo-pri", "First fit, jobs in Johnson's order, later ones go ahead (HMHS; its FIFO is fifo+backfill).",
            FIRST_FIT_AT, order="johnson", lanes="shape", knows=JOB_MEANS,
        ),
        *(Scheduler(name, recipe.summary, waits_at="worker", planned=name, knows=JOB_MEANS)
          for name, recipe in RECIPES.items()),
        Scheduler(
            "delay-scheduling",
            "The stage with the fewest running tasks, which waits a while for a machine with its input (EuroSys 2010).",
            delays=True,
        ),
        Scheduler(
            "recorded", "What the log says: tasks start when they did, on machines that are not known.",
            recorded=True, knows=UNKNOWN,
        ),
        Scheduler(
            "megha",
            "Global masters place on views that may be stale, local masters check (Thiyyakat and others: Megha).",
            architecture="megha",
        ),
        Scheduler(
            "central", "Megha with one global and one local master: one master takes every decision.",
            architecture="central",
        ),
        Scheduler(
            "sparrow", "Schedulers probe a few random workers for each batch and bind late (Sparrow, SOSP 2013).",
            architecture="sparrow",
        ),
        Scheduler(
            "hawk", "Long jobs at a central scheduler, short ones probed for; idle workers steal (Hawk, ATC 2015).",
            architecture="hawk", knows=JOB_MEANS,
        ),
        Scheduler(
            "eagle", "Hawk, but short tasks keep clear of long ones, and the shortest goes first (Eagle, SoCC 2016).",
            architecture="eagle", knows=JOB_MEANS,
        ),
        Scheduler(
            "dodoor", "Each task goes to the better of two random workers, by loads told at times (arXiv 2510.12889).",
            architecture="dodoor", knows=JOB_MEANS,
        ),
        Scheduler(
            "pigeon", "Tasks are dealt evenly to masters of groups, which keep two queues each (Pigeon, SoCC 2019).",
            architecture="pigeon",
            knows=LONG_JOBS,
        ),
    )
}

# Those whose decisions depend on the seed.
DRAWN = frozenset({"random-fit", "greedy", "lotes", "hmhs-search", "sparrow", "hawk", "eagle", "dodoor", "pigeon"})


def loaded(function: AnyFunction | str) -> AnyFunction:
    """Return a function of a scheduler, which is loaded where only its place is known."""
    found: AnyFunction = pkgutil.resolve_name(function) if isinstance(function, str) else function
    return found


def with_options(scheduler: Scheduler, options: list[str]) -> Scheduler:
    """Return the scheduler with options applied. Raises InputError for one it does not understand."""
    if sum(option in ORDERS or option in FAIR_ORDERS for option in options) > 1:
        raise InputError(f"scheduler {scheduler.name}: at most one order may be given, not {' and '.join(options)}")
    backfills = [option for option in options if option in BACKFILLS]
    if len(backfills) > 1:
        raise InputError(f"scheduler {scheduler.name}: at most one way to backfill may be given, not "
                         f"{' and '.join(backfills)}")
    if backfills and any(option in FAIR_ORDERS for option in options):
        raise InputError(f"scheduler {scheduler.name}: {backfills[0]} says nothing with a fair order, which never "
                         "waits for a task that does not fit")
    for option in options:
        if option not in scheduler.accepts:
            known = f"option must be one of {', '.join(sorted(scheduler.accepts))}" if scheduler.accepts else (
                "takes no options")
            raise InputError(f"scheduler {scheduler.name}: {known}, not {option!r}"
                             + did_you_mean(option, scheduler.accepts))
        scheduler = _with_option(scheduler, option)
    return replace(scheduler, name="+".join([scheduler.name, *options]))


def _with_option(scheduler: Scheduler, option: str) -> Scheduler:
    if option == "backfill":
        return replace(scheduler, lanes="shape")
    if option in RESERVING:
        return replace(scheduler, reserves=option, knows=RUN_TIMES)
    if option in LOTES_OPTIONS:
        return replace(scheduler, tuned=scheduler.tuned | {option})
    if option == "normalised":
        return replace(scheduler, memory=f"{PAIRS}.tetris:normalised_memory",
                       weights=f"{PAIRS}.tetris:normalised_weights")
    return replace(scheduler, order=option, knows=max(scheduler.knows, ORDERS_KNOW.get(option, NOTHING), key=_rank))


def _rank(knows: str) -> int:
    return list(KNOWLEDGE).index(knows)
