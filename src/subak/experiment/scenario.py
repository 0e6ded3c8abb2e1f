"""A scenario: the settings of one run, read from a file or the command line and checked once."""
from pathlib import Path
from typing import Any

import msgspec

from subak.errors import InputError
from subak.experiment.fleet_words import MACHINES_MAX, read_added, read_removed, refuse_scale
from subak.federation.settings import Federation
from subak.measures.energy.settings import energy_names
from subak.measures.objective import OF_MACHINES, read_objective
from subak.output.plain import is_text
from subak.placement.lotes.settings import LotesSettings
from subak.placement.mapreduce.recipes import RECIPES, SearchSettings
from subak.placement.schedulers import DRAWN, HOLD_BACK_AFTER, LOCALITY_WAIT, LOTES, SCHEDULERS
from subak.policy_files import is_users, named_scheduler, policy_file
from subak.quantities import Amount, Seconds
from subak.queues.orders import FAIR_ORDERS
from subak.simulator.estimate_words import FACTOR, parse_estimates
from subak.simulator.refusals import (
    refuse_error,
    refuse_interference,
    refuse_slow_start,
    refuse_swing,
    refuse_times,
    refuse_wait,
)
from subak.toml_files import read_toml
from subak.workload.piped import PIPE
from subak.workload.redraws import AUTO, NONE, RESAMPLES
from subak.workload.samples import DEFAULT_SAMPLE, sample_names

FOREVER = float("inf")
GANGS = TOGETHER, APART = "together", "apart"
LOAD_MIN, LOAD_MAX = 0.01, 100.0  # times that of the workload
IN_MEMORY = ""  # the workload of a scenario that no file could hold


class Scenario(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to simulate; the same words as the options of `subak simulate` and `subak compare`."""

    workload: str = DEFAULT_SAMPLE  # a workload folder, or the name of a sample
    workload_digest: str = ""  # of its tables; a run is only repeated on the same
    only_queues: list[str] = []  # the jobs of these and of those below, such as a partition; none named: all jobs
    load: float = 1.0  # times the workload's: instants of submission are divided by it, run times are as they were
    fleet: str = ""  # a fleet folder; empty: the one inside the workload's
    fleet_digest: str = ""  # likewise
    machines: int = 0  # instead of a fleet: this many alike machines
    capacity: dict[str, Amount] = {}  # of each of them: in what the resource is counted in, or as 256Gi
    scale: float = 1.0  # times as many machines, of the same mix; before the next two
    remove: list[str] = []  # machines that are taken out: 30%, 100, or 100:cpu=0.5
    add_machines: list[str] = []  # machines more: 200:cpu=0.5,memory=0.5
    schedulers: list[str] = msgspec.field(default_factory=lambda: ["first-fit"])  # or FILE.py:NAME
    seeds: list[int] = msgspec.field(default_factory=lambda: [1])  # each scheduler runs once with each
    resample: str = AUTO  # how a seed changes the workload: one of RESAMPLES
    interval: Seconds | None = None  # seconds of the timeline's intervals
    until: Seconds = FOREVER  # seconds: the last instant to simulate
    measure_from: Seconds | None = None  # seconds: tasks count that arrive then or later
    measure_until: Seconds | None = None  # seconds: and then or earlier; inf: to the end of the run
    objectives: list[str] = []  # such as wait.p95 < 60s for queue=prod: said to be met or not
    energy: str = ""  # a file with what machines draw and cost, or the name of a shipped one
    federation: Federation = msgspec.field(default_factory=Federation)  # settings of schedulers that are federations
    faults: str = ""  # a plan of what goes wrong, for megha and central
    failures: str = ""  # a plan of how tasks end that do not finish, for megha and central
    queues: str = ""  # a file with weights and limits of queues, for the fair orders
    reclaims_per_hour: float = 0.0  # an hour at most, for queues below their guarantees, under the fair orders
    hold_back_after: Seconds = HOLD_BACK_AFTER  # s, fair orders, megha, central: for who was passed over so long
    lotes: LotesSettings = msgspec.field(default_factory=LotesSettings)  # of the scheduler that goes by plans
    request_error: float = 0.0  # by which share requests are wrong; who uses more than it asked for is ended
    usage_swing: float = 0.0  # share of its request that a task does not use, or hold, during a part of its life
    interference: float = 0.0  # times the CPU they have that machines promise; tasks share it then; 0: they do not
    gangs: str = TOGETHER  # of schedulers that cannot keep gangs together: apart, started task by task all the same
    estimates: str = ""  # of run times, told to schedulers: exact, user, factor=F, class, none; empty: user, if any
    slow_start: float = 1.0  # share of a stage's tasks that have ended when those that wait for it may start
    locality_wait: Seconds = LOCALITY_WAIT  # seconds for a machine with the input, then for its rack: delay scheduling
    check_policy: bool = False  # policies from files are compiled with bounds checks
    parameters: dict[str, float] = {}  # of policies from files: values of what they declare
    search_seconds: Seconds = 1.0  # to search for a better plan, for schedulers that do
    search_moves: int | None = None  # instead: this many moves, which makes a run repeatable

    def __post_init__(self) -> None:
        """Refuse what no run could mean."""
        if not self.schedulers:
            raise InputError("schedulers: must name at least one")
        if not self.seeds or any(not 0 <= seed < 2**63 for seed in self.seeds):
            raise InputError(f"seeds: must be whole numbers from 0 to 2^63 - 1, at least one, not {self.seeds}")
        self._refuse_bytes()
        for name in ("schedulers", "seeds"):
            values = getattr(self, name)
            twice = next((value for value in values if values.count(value) > 1), None)
            if twice is not None:
                raise InputError(f"{name}: each must be named once, {twice!r} occurs {values.count(twice)} times")
        refuse_unknown(self.schedulers)
        self._refuse_extent()
        self._refuse_fleet()
        refuse_times(1.0 if self.interval is None else self.interval, self.until)
        self._refuse_measures()
        parse_estimates(self.estimates)
        refuse_wait(self.locality_wait)
        self._refuse_unbearable()
        self._refuse_energy()
        self._refuse_search()
        for setting in changed_settings(self.federation):
            if not any(setting in supported_settings(name) for name in self.schedulers):
                supporters = ", ".join(each.name for each in SCHEDULERS.values() if setting in each.settings)
                raise InputError(f"federation.{setting}: none of the schedulers {', '.join(self.schedulers)} "
                                 f"supports it; {supporters} do")
        self._refuse_unused()

    @property
    def search(self) -> SearchSettings:
        """How long a scheduler that searches improves its plan. Raises InputError for what no search could mean."""
        return SearchSettings(self.search_seconds, self.search_moves)

    def _refuse_extent(self) -> None:
        """Refuse a load that nothing could be of, and one beside a scheduler that does as the log says."""
        if not LOAD_MIN <= self.load <= LOAD_MAX:
            raise InputError(f"load: must be a number from {LOAD_MIN:g} to {LOAD_MAX:g}, such as 1.3, not "
                             f"{self.load:g}")
        if not all(self.only_queues):
            raise InputError(f"only_queues: must be names of queues, not {self.only_queues}")
        logged = next((name for name in self.schedulers if is_recorded(name)), None)
        if self.load != 1.0 and logged is not None:
            raise InputError(f"load: must be 1 for {logged}, which does what the log says, not {self.load:g}")

    def _refuse_fleet(self) -> None:
        """Refuse machines that nobody could mean, and edits of them."""
        if self.fleet and self.machines:
            raise InputError(f"fleet and machines: give one of them, not both ({self.fleet} and {self.machines})")
        if self.capacity and not self.machines:
            raise InputError("capacity: is that of alike machines; give machines, how many there are")
        if not 0 <= self.machines <= MACHINES_MAX:
            raise InputError(f"machines: must be from 1 to {MACHINES_MAX:,}, not {self.machines:,}")
        refuse_scale(self.scale)
        for text in self.remove:
            read_removed(text)
        for text in self.add_machines:
            read_added(text)

    def _refuse_measures(self) -> None:
        """Refuse a window in which nothing could be measured, and an unknown way to redraw."""
        if self.resample not in RESAMPLES:
            raise InputError(f"resample: must be one of {', '.join(RESAMPLES)}, not {self.resample!r}")
        for text in self.objectives:
            if read_objective(text).measure in OF_MACHINES and not self.energy:
                raise InputError(f"objective {text!r}: needs an energy file, which says what machines draw and cost "
                                 "(--energy)")
        begin = 0.0 if self.measure_from is None else self.measure_from
        end = FOREVER if self.measure_until is None else self.measure_until
        if not 0 <= begin < FOREVER:
            raise InputError(f"measure_from: must be 0 s or later, not {begin:g}")
        if not begin < end:
            raise InputError(f"measure_until: must be later than measure_from ({begin:g} s), not {end:g}")
        if begin >= self.until:
            raise InputError(f"measure_from: must be before the run is stopped ({self.until:g} s), not {begin:g}")

    def _refuse_bytes(self) -> None:
        """Refuse names of files that no scenario file can hold, before the run and not when it is written."""
        for name in (self.workload, self.fleet, self.faults, self.failures, self.queues, self.energy,
                     *self.schedulers):
            if not is_text(name):
                raise InputError(f"scenario: names must be text in UTF-8, not {name!r}")

    def _refuse_unbearable(self) -> None:
        """Refuse what one of the schedulers does not support."""
        for name in self.schedulers:
            for what in ("faults", "failures"):
                if getattr(self, what) and "retry" not in supported_settings(name):
                    raise InputError(f"{what}: {name} does not support them; only megha and central do")
            if self.slow_start != 1.0:
                refuse_slow_start(self.slow_start, named_scheduler(name))
            if self.request_error:
                refuse_error(self.request_error, named_scheduler(name))
            if self.usage_swing:
                refuse_swing(self.usage_swing, self.request_error, self.interference, named_scheduler(name))
            if self.interference:
                refuse_interference(self.interference, self.request_error, self.slow_start, named_scheduler(name))

    def _refuse_energy(self) -> None:
        """Refuse to count energy where what tasks ask for does not say what their machines draw."""
        if not self.energy:
            return
        if self.usage_swing:
            raise InputError("usage_swing: energy is counted from what tasks ask for, so that usage may not vary; "
                             "leave one of them out")
        if self.interference:
            raise InputError("energy: of machines that promise more CPU than they have it is not known what they draw; "
                             "leave out one of energy and interference")
        for name in self.schedulers:
            if is_recorded(name):
                raise InputError(f"energy: {name} does not know on which machines tasks ran, so not what they drew")

    def _refuse_search(self) -> None:
        """Refuse what no search could mean, and one that none of the schedulers makes."""
        if self.search == SearchSettings():
            return
        if not any(searches(name) for name in self.schedulers):
            known = ", ".join(name for name, recipe in RECIPES.items() if recipe.searches)
            raise InputError(f"search_seconds, search_moves: none of the schedulers {', '.join(self.schedulers)} "
                             f"searches; {known} would")

    def _refuse_unused(self) -> None:
        """Refuse settings that no scheduler uses; but queues' weights are what any run's shares are measured by."""
        if self.check_policy and not any(map(is_users, self.schedulers)):
            raise InputError(f"check_policy: none of the schedulers {', '.join(self.schedulers)} is a policy of "
                             "yours, such as FILE.py:NAME")
        if self.parameters and not any(map(policy_file, self.schedulers)):
            raise InputError(f"parameters: none of the schedulers {', '.join(self.schedulers)} is a policy from a "
                             "file, FILE.py:NAME, which declares some")
        if self.federation.shares and self.federation.preemption == "off":
            raise InputError("federation.shares (--share): go with preemption (--preemption) strict or paper, not off")
        self._refuse_unfair()
        if self.gangs not in GANGS:
            raise InputError(f"gangs: must be one of {', '.join(GANGS)}, not {self.gangs!r}")
        if self.gangs == APART and all(map(keeps_gangs, self.schedulers)):
            raise InputError(f"gangs: {', '.join(self.schedulers)} keep gangs together; apart is for those that cannot")
        if self.locality_wait != LOCALITY_WAIT and not any(delays(scheduler) for scheduler in self.schedulers):
            raise InputError(f"locality_wait: none of the schedulers {', '.join(self.schedulers)} waits for machines "
                             "with inputs; delay-scheduling does")
        if self.lotes != LotesSettings() and not any(is_planned(scheduler) for scheduler in self.schedulers):
            raise InputError(f"lotes: none of the schedulers {', '.join(self.schedulers)} goes by these settings; "
                             "lotes does")

    def _refuse_unfair(self) -> None:
        """Refuse settings of fair orders that no scheduler has, or that are out of their range."""
        if not 0 <= self.reclaims_per_hour < FOREVER:
            raise InputError(f"reclaims_per_hour: must be 0 or more an hour, not {self.reclaims_per_hour:g}")
        if not self.hold_back_after >= 0:
            raise InputError(f"hold_back_after: must be 0 seconds or more, or inf, not {self.hold_back_after:g}")
        words = f"has a fair order; these are {', '.join(FAIR_ORDERS)}, alone or as in best-fit+mch"
        given = {
            "reclaims_per_hour": (self.reclaims_per_hour > 0, is_fair, words),
            "hold_back_after": (self.hold_back_after != HOLD_BACK_AFTER, holds_back, f"{words}; nor is any megha or "
                                                                                     "central")}
        for name, (is_given, goes_by_it, what) in given.items():
            if is_given and not any(map(goes_by_it, self.schedulers)):
                raise InputError(f"{name}: none of the schedulers {', '.join(self.schedulers)} {what}")


def keeps_gangs(scheduler: str) -> bool:
    """Whether a scheduler, by its name, starts the tasks of a gang together."""
    return named_scheduler(scheduler).keeps_gangs


def seeds_of(scenario: Scenario, scheduler: str) -> list[int]:
    """Return the seeds that a scheduler runs with: the first alone where none of them would change anything."""
    return scenario.seeds if scenario.resample != NONE or draws(scenario, scheduler) else scenario.seeds[:1]


def draws(scenario: Scenario, scheduler: str) -> bool:
    """Whether a run of a scheduler, by its name, depends on the seed on one workload; a user's policy may."""
    own, factor = scheduler.partition("+")[0], parse_estimates(scenario.estimates)[0] == FACTOR
    return (is_users(scheduler) or own in DRAWN or factor or scenario.request_error > 0 or scenario.usage_swing > 0
            or bool(scenario.failures or scenario.faults)
            or settings_of(scenario, scheduler).delay_law != Federation().delay_law)


def refuse_unknown(schedulers: list[str]) -> None:
    """Raise InputError for a name that is no scheduler's; files with policies are looked at when they are imported."""
    for name in schedulers:
        if policy_file(name) is None:
            named_scheduler(name)


def searches(scheduler: str) -> bool:
    """Whether a scheduler, by its name, searches for a better plan."""
    return scheduler in RECIPES and RECIPES[scheduler].searches


def is_fair(scheduler: str) -> bool:
    """Whether a scheduler's name, or one of its options, is a fair order that may take places back."""
    return any(part in FAIR_ORDERS for part in scheduler.split("+")) and not is_planned(scheduler)


def holds_back(scheduler: str) -> bool:
    """Whether a scheduler, by its name, holds machines back for who was passed over."""
    return is_fair(scheduler) or "retry" in supported_settings(scheduler)


def is_planned(scheduler: str) -> bool:
    """Whether a scheduler, by its name, goes by a plan of LoTES."""
    known = SCHEDULERS.get(scheduler.partition("+")[0])
    return known is not None and known.planned == LOTES


def is_recorded(scheduler: str) -> bool:
    """Whether a scheduler, by its name, does what the log says."""
    known = SCHEDULERS.get(scheduler.partition("+")[0])
    return known is not None and known.recorded


def delays(scheduler: str) -> bool:
    """Whether under a scheduler, by its name, tasks wait for machines that hold their inputs."""
    known = SCHEDULERS.get(scheduler)
    return known is not None and known.delays


def changed_settings(settings: Federation | LotesSettings) -> dict[str, Any]:
    """Return the settings that differ from their defaults, in their order."""
    usual = msgspec.structs.asdict(type(settings)())
    return {name: value for name, value in msgspec.structs.asdict(settings).items() if value != usual[name]}


def supported_settings(scheduler: str) -> tuple[str, ...]:
    """Return the settings of a federation that a scheduler supports, by its name; none for a policy in a file."""
    known = SCHEDULERS.get(scheduler.partition("+")[0])
    return known.settings if known else ()


def settings_of(scenario: Scenario, scheduler: str) -> Federation:
    """Return the scenario's settings as far as a scheduler supports them."""
    changed = changed_settings(scenario.federation)
    return Federation(**{name: value for name, value in changed.items() if name in supported_settings(scheduler)})


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file; the paths in it are relative to its folder. Raises InputError with the mistake's place."""
    return located_in(path.parent, read_toml(path, Scenario))


def located_in(here: Path, scenario: Scenario) -> Scenario:
    """Let the paths in a scenario, which are relative to the folder *here*, be so to the working directory."""
    if scenario.workload not in {*sample_names(), PIPE}:
        scenario.workload = str(here / scenario.workload)
    for name in ("fleet", "faults", "failures", "queues"):
        if getattr(scenario, name):
            setattr(scenario, name, str(here / getattr(scenario, name)))
    if scenario.energy and scenario.energy not in energy_names():
        scenario.energy = str(here / scenario.energy)
    scenario.schedulers = [str(here / name) if policy_file(name) else name for name in scenario.schedulers]
    return scenario
