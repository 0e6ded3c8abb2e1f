"""A scenario: the settings of one run, read from a file or the command line and checked once."""
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from subak.errors import InputError
from subak.experiment.fleet_words import MACHINES_MAX, read_added, read_removed, refuse_scale
from subak.experiment.moments import dated
from subak.federation.settings import Federation
from subak.measures.energy.settings import energy_names
from subak.measures.objective import OF_MACHINES, read_objective
from subak.output.plain import is_text
from subak.placement.mapreduce.recipes import RECIPES
from subak.placement.schedulers import ANSWER_TIMEOUT, DRAWN
from subak.policy_files import is_users, named_scheduler, policy_file
from subak.quantities import Amount, Seconds, duration_text
from subak.settings import (
    DURATION,
    EVERY,
    FAIR,
    FEDERATED,
    FILE,
    INPUT,
    TIME,
    WHEN,
    Rule,
    Setting,
    Users,
    declared,
    one_of,
    refuse_unused,
    used_by,
    where,
)
from subak.simulator.settings import FOREVER, RunSettings, refuse_run
from subak.toml_files import read_toml
from subak.workload.piped import PIPE
from subak.workload.redraws import AUTO, NONE, RESAMPLES
from subak.workload.samples import DEFAULT_SAMPLE, sample_names

GANGS = TOGETHER, APART = "together", "apart"
LOAD_MIN, LOAD_MAX = 0.01, 100.0  # times that of the workload
IN_MEMORY = ""  # the workload of a scenario that no file could hold
_RETRYING = Users(
    lambda scheduler: "" if scheduler.architecture in ("megha", "central") else (
        "does not support them; only megha and central do"), all=True)
_USERS = Users(lambda scheduler: "is built in" if scheduler.built_in else "",
               "is a policy of yours, such as FILE.py:NAME")
_PIPED = Users(lambda scheduler: "" if scheduler.command else "is no process",
               "is a process of its own, such as pipe:COMMAND")
_DECLARING = Users(lambda scheduler: "is built in" if scheduler.built_in else "",
                   "is a policy from a file, FILE.py:NAME, which declares some")
_TAKING_APART = Users(lambda scheduler: "keeps gangs together" if scheduler.keeps_gangs else "",
                      "takes gangs apart; they keep them together")
_ON_MACHINES = Users(
    lambda scheduler: "does not know on which machines tasks ran, so not what they drew" if scheduler.recorded else "",
    all=True)
_NOT_LOGGED = Users(lambda scheduler: "does what the log says" if scheduler.recorded else "", all=True)
_FLEET = partial(Setting, heading=INPUT, users=EVERY, keyword=False)
_MEASURE = partial(Setting, heading=TIME, users=EVERY)


def _readable(read: Callable[[str], object]) -> Rule:
    """Return the rule of a list of texts, each of which *read* reads, and words what it refuses."""
    def broken(texts: list[str]) -> str:
        for text in texts:
            read(text)
        return ""
    return broken


def _scale_rule(times: float) -> str:
    refuse_scale(times)
    return ""


class Scenario(RunSettings, kw_only=True):
    """What to simulate; the same words as the options of `subak simulate` and `subak compare`."""

    workload: Annotated[str, Setting(
        "A workload folder made by `subak convert`, or the name of a shipped sample: "
        f"{' or '.join(sample_names())}; `subak simulate -` reads one through a pipe.", "WORKLOAD", users=EVERY,
        keyword=False)] = DEFAULT_SAMPLE
    workload_digest: Annotated[str, Setting(
        "Of the workload's tables; a run is only repeated on the same.", users=EVERY, keyword=False)] = ""
    fleet: Annotated[str, _FLEET(
        "The fleet folder [default: the folder `fleet` in the workload's].", "FOLDER", is_path=True)] = ""
    fleet_digest: Annotated[str, Setting(
        "Of the fleet's tables, likewise.", users=EVERY, keyword=False)] = ""
    machines: Annotated[int, _FLEET(
        "Instead of a fleet: N identical machines of the size given by --capacity.", "N",
        rule=where(lambda count: 0 <= count <= MACHINES_MAX, f"from 1 to {MACHINES_MAX:,}"))] = 0
    capacity: Annotated[dict[str, Amount], _FLEET(
        "With --machines: the capacity of each machine, such as cpu=64,memory=256Gi or cpu=50%; or once for each "
        "resource. 256G is 7 % less than 256Gi, 256 alone often MiB.",
        "RESOURCE=AMOUNT,...")] = msgspec.field(default_factory=dict)
    scale: Annotated[float, _FLEET(
        "Multiply the number of machines, keeping the mix: 1.5 adds copies, 0.9 removes evenly. Applies before "
        "--remove and --add-machines.",
        "TIMES", rule=_scale_rule, show_default=True)] = 1.0
    remove: Annotated[list[str], _FLEET(
        "Then remove N machines, or P per cent, evenly over the kinds; or only machines with exactly this capacity, "
        "such as 100:cpu=0.5.", "N|P%[:RESOURCE=AMOUNT,...]",
        rule=_readable(read_removed))] = msgspec.field(default_factory=list)
    add_machines: Annotated[list[str], _FLEET(
        "Then add N identical machines, such as 200:cpu=0.5,memory=0.5, without attributes; once for each kind.",
        "N:RESOURCE=AMOUNT,...", rule=_readable(read_added))] = msgspec.field(default_factory=list)
    schedulers: Annotated[list[str], Setting(
        "Names that `subak schedulers` lists, FILE.py:NAME or pipe:COMMAND; each runs.", users=EVERY,
        keyword=False)] = msgspec.field(default_factory=lambda: ["first-fit"])
    seeds: Annotated[list[int], Setting(
        "Each scheduler runs once with each.", users=EVERY,
        keyword=False)] = msgspec.field(default_factory=lambda: [1])
    only_queues: Annotated[list[str], Setting(
        "Only the jobs of this queue and of those below it, such as a partition; once for each [default: all jobs].",
        "QUEUE", INPUT, EVERY, where(all, "names of queues"), option="--only-queue",
        keyword=False)] = msgspec.field(default_factory=list)
    load: Annotated[float, Setting(
        "Multiply the load, such as 1.3: jobs arrive that much more densely, with the same run times.", "TIMES", INPUT,
        _NOT_LOGGED, where(lambda times: LOAD_MIN <= times <= LOAD_MAX,
                           f"a number from {LOAD_MIN:g} to {LOAD_MAX:g}, such as 1.3"), show_default=True)] = 1.0
    resample: Annotated[str, Setting(
        "How a seed changes the workload. days: seed 1 is the trace; others redraw its days, whole or user by user "
        "(eighths of a trace shorter than 5 days). model: another workload from the model that generated it. none: "
        "not at all [default: auto: redraw if there are several seeds, and warn if the trace has too few days].",
        "|".join(RESAMPLES), INPUT, EVERY, one_of(RESAMPLES))] = AUTO
    measure_from: Annotated[Seconds | None, _MEASURE(
        "Start of the measured window: tasks that arrive from then on or still wait then, and averages over "
        "time from then on, such as 2d, or 2024-03-01 if the workload knows its dates, cut to them [default: the first "
        "arrival whose true time it shows].", WHEN,
        rule=where(lambda begin: 0 <= begin < FOREVER, "0 s or later"))] = None
    measure_until: Annotated[Seconds | None, _MEASURE(
        "End of the measured window, likewise; inf: the end of the run [default: the last arrival, which leaves out "
        "the drain].", WHEN)] = None
    objectives: Annotated[list[str], _MEASURE(
        "An objective, such as 'wait.p95 < 60s for queue=prod'; once for each. Measures: wait, turnaround, slowdown "
        "(of tasks), slurm_wait (of what Slurm calls a job), job_wait, completion and job_slowdown (of jobs), each as "
        "mean, median, max or a percentile. "
        "Groups: queue, user, priority, length (short, long) or class.", "TEXT", option="--objective",
        rule=_readable(read_objective))] = msgspec.field(default_factory=list)
    energy: Annotated[str, Setting(
        "Power of machines, prices of a kWh and a machine-hour, and emissions of a kWh: a file, or the name of a "
        f"shipped one ({', '.join(energy_names())}); it is copied into the run folder. Objectives may then be of "
        "energy, cost and carbon, such as 'energy.total < 500kWh'.", FILE, TIME, _ON_MACHINES, is_path=True)] = ""
    gangs: Annotated[str, Setting(
        "Workloads with gangs (tasks that start together) under schedulers that start tasks one by one: together "
        "refuses them; apart splits the gangs, and every table says so.",
        "|".join(GANGS), TIME, _TAKING_APART, one_of(GANGS),
        show_default=True)] = TOGETHER
    federation: Annotated[Federation, Setting(
        "Settings of federations, one key each, such as probe_ratio = 3; the options below override it.",
        FILE, FEDERATED, EVERY)] = msgspec.field(default_factory=Federation)
    faults: Annotated[str, Setting(
        "A fault plan, for megha and central: messages lost, doubled or late, roles cut off, crashed, restarted; it "
        "is copied into the run folder.", FILE, FEDERATED, _RETRYING, draws=bool, is_path=True)] = ""
    failures: Annotated[str, Setting(
        "A plan of task failures, for megha and central: attempts fail or time out, users cancel, with retries and "
        "deadlines; it is copied into the run folder.", FILE, FEDERATED, _RETRYING,
        draws=bool, is_path=True)] = ""
    queues: Annotated[str, Setting(
        "Weights and limits of queues (see `subak queues`), for the fair orders and for the shares reported by any "
        "run [default: weight 1 for each]; it is copied into the run folder.", "TREE.toml", FAIR, EVERY,
        is_path=True)] = ""
    check_policy: Annotated[bool, Setting(
        "Compile policies from files with bounds checks: slower, but a policy that indexes outside its arrays is "
        "stopped with a message.",
        "FLAG", users=_USERS)] = False
    answer_timeout: Annotated[Seconds, Setting(
        "How long a scheduler in a process of its own, pipe:COMMAND, may take for an answer.", DURATION, users=_PIPED,
        rule=where(lambda seconds: 0 < seconds < math.inf, "a positive number of seconds"), show_default=True,
    )] = ANSWER_TIMEOUT
    parameters: Annotated[dict[str, float], Setting(
        "The value of a number that a policy file declares with parameter(); once for each [default: the file's "
        "value].", "NAME=VALUE", users=_DECLARING, option="--parameter")] = msgspec.field(default_factory=dict)

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
        self._refuse_fleet()
        refuse_run(self)
        self._refuse_measures()
        self._refuse_energy()
        if self.federation.shares and self.federation.preemption == "off":
            raise InputError("federation.shares (--share): go with preemption (--preemption) strict or paper, not off")
        refuse_unused(self.federation, map(named_scheduler, self.schedulers), "federation.")
        refuse_unused(self, map(named_scheduler, self.schedulers))

    def _refuse_fleet(self) -> None:
        """Refuse machines that nobody could mean, and edits of them."""
        if self.fleet and self.machines:
            raise InputError(f"fleet and machines: give one of them, not both ({self.fleet} and {self.machines})")
        if self.capacity and not self.machines:
            raise InputError("capacity: is that of alike machines; give machines, how many there are")

    def _refuse_measures(self) -> None:
        """Refuse objectives that nothing could judge, and a window in which nothing could be measured."""
        for text in self.objectives:
            if read_objective(text).measure in OF_MACHINES and not self.energy:
                raise InputError(f"objective {text!r}: needs an energy file, which says what machines draw and cost "
                                 "(--energy)")
        begin = 0.0 if self.measure_from is None else self.measure_from
        end = FOREVER if self.measure_until is None else self.measure_until
        if not begin < end:
            raise InputError(f"measure_until: must be later than measure_from ({duration_text(begin)}), not "
                             f"{duration_text(end)}")
        if begin >= self.until:
            raise InputError(f"measure_from: must be before the run is stopped ({duration_text(self.until)}), not "
                             f"{duration_text(begin)}")

    def _refuse_bytes(self) -> None:
        """Refuse names of files that no scenario file can hold, before the run and not when it is written."""
        for name in (self.workload, *(getattr(self, path) for path in PATHS), *self.schedulers):
            if not is_text(name):
                raise InputError(f"scenario: names must be text in UTF-8, not {name!r}")

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


WHENS = {name: name for name, setting in declared(Scenario).items() if setting.form == WHEN}  # and their words
PATHS = tuple(name for name, setting in declared(Scenario).items() if setting.is_path)


def seeds_of(scenario: Scenario, scheduler: str) -> list[int]:
    """Return the seeds that a scheduler runs with: the first alone where none of them would change anything."""
    return scenario.seeds if scenario.resample != NONE or draws(scenario, scheduler) else scenario.seeds[:1]


def draws(scenario: Scenario, scheduler: str) -> bool:
    """Whether a run of a scheduler, by its name, depends on the seed on one workload; a user's policy may."""
    told = [(scenario, declared(Scenario)), (settings_of(scenario, scheduler), declared(Federation))]
    return is_users(scheduler) or scheduler.partition("+")[0] in DRAWN or any(
        setting.draws(getattr(settings, name)) for settings, known in told for name, setting in known.items()
        if setting.draws is not None)


def refuse_unknown(schedulers: list[str]) -> None:
    """Raise InputError for a name that is no scheduler's; files with policies are looked at when they are imported."""
    for name in schedulers:
        if policy_file(name) is None:
            named_scheduler(name)


def searches(scheduler: str) -> bool:
    """Whether a scheduler, by its name, searches for a better plan."""
    return scheduler in RECIPES and RECIPES[scheduler].searches


def settings_of(scenario: Scenario, scheduler: str) -> Federation:
    """Return the scenario's settings as far as a scheduler supports them."""
    if scenario.federation == Federation():  # nobody need look at a policy's file
        return Federation()
    return msgspec.structs.replace(Federation(), **used_by(scenario.federation, named_scheduler(scheduler)))


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file; the paths in it are relative to its folder. Raises InputError with the mistake's place."""
    return located_in(path.parent, read_toml(path, Scenario, partial(dated, names=WHENS, here=path.parent)))


def located_in(here: Path, scenario: Scenario) -> Scenario:
    """Let the paths in a scenario, which are relative to the folder *here*, be so to the working directory."""
    if scenario.workload not in {*sample_names(), PIPE}:
        scenario.workload = str(here / scenario.workload)
    for name in PATHS:
        value = getattr(scenario, name)
        if value and not (name == "energy" and value in energy_names()):
            setattr(scenario, name, str(here / value))
    scenario.schedulers = [str(here / name) if policy_file(name) else name for name in scenario.schedulers]
    return scenario
