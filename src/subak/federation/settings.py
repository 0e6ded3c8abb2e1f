"""The settings of a federation: masters, network, costs, preemption, sampling; also as options and TOML."""
import math
from typing import NamedTuple

import msgspec

from subak.errors import InputError
from subak.federation.choices import FIFO, PLACEMENTS, ROUND_ROBIN, TASK_ORDERS
from subak.quantities import Seconds
from subak.queues.orders import FAIR_ORDERS

LAWS = ("constant", "uniform", "exponential")  # of the network's delay
MASTERS_MAX = 10_000
PROBES_MAX = 1_000_000
SECONDS_MIN, SECONDS_MAX = 1e-3, 1_000_000
UPDATES = ("changes", "full")  # what an update carries, and is charged for
PREEMPTION_RULES = ("off", "strict", "paper")
BOUNDS = {
    "global_masters": (1, MASTERS_MAX), "local_masters": (0, MASTERS_MAX), "preemptions_max": (0, 30_000),
    "probes_min": (1, PROBES_MAX), "probe_ratio": (0, PROBES_MAX), "steal_attempts": (0, PROBES_MAX),
    "starvation_limit": (0, PROBES_MAX), "fair_weight": (1, PROBES_MAX), "short_share": (0, 1),
    "push_ratio": (0, PROBES_MAX), "report_tasks": (1, PROBES_MAX), "duration_weight": (0, 1),
    "delay": (0, SECONDS_MAX), "delay_spread": (0, SECONDS_MAX), "service_scale": (0, SECONDS_MAX),
    "priority_seconds": (0, SECONDS_MAX), "timer_slack": (0, SECONDS_MAX), "cutoff": (0, math.inf),
    "heartbeat": (SECONDS_MIN, math.inf), "retry": (SECONDS_MIN, math.inf), "lease": (SECONDS_MIN, math.inf),
}


class Profile(NamedTuple):
    """How long each kind of message occupies its receiver, by what runs the handlers (bench/handlers.py)."""

    service: dict[str, float]  # seconds; kinds that are not listed cost nothing
    part: dict[str, float]  # further seconds for each entry or machine that an update carries


PYTHON = Profile(
    service={
        "SUBMIT": 20e-6, "PLACE": 130e-6, "LAUNCHED": 30e-6, "REFUSED": 30e-6, "ENDED": 30e-6, "UPDATE": 20e-6,
        "LAUNCH": 75e-6, "REPARTITION": 75e-6, "PREEMPT": 100e-6, "GO": 30e-6, "ABANDON": 40e-6, "OVER": 40e-6,
        "HOLD_BACK": 20e-6, "NOTED": 10e-6,
        "FETCH": 10e-6, "BOUNCED": 10e-6, "REJECTED": 10e-6, "LONG_BEGUN": 5e-6, "LONG_OVER": 5e-6, "DEAL": 20e-6,
        "ADD_LOAD": 25e-6, "SET_LOAD": 3e-6, "LOADS": 3e-6,
    },
    part={"LAUNCHED": 18e-6, "REFUSED": 18e-6, "ENDED": 18e-6, "UPDATE": 18e-6},
)
COMPILED = Profile(
    service={
        "SUBMIT": 1e-6, "PLACE": 1e-6, "LAUNCHED": 1e-6, "REFUSED": 1.2e-6, "ENDED": 1.3e-6, "UPDATE": 1e-6,
        "LAUNCH": 1.2e-6, "REPARTITION": 1.2e-6, "PREEMPT": 1.1e-6, "GO": 1e-6, "ABANDON": 1.2e-6, "OVER": 1.1e-6,
        "HOLD_BACK": 0.8e-6, "NOTED": 0.8e-6,
        "FETCH": 0.8e-6, "BOUNCED": 0.8e-6, "REJECTED": 0.9e-6, "LONG_BEGUN": 0.9e-6, "LONG_OVER": 0.9e-6,
        "DEAL": 0.8e-6, "ADD_LOAD": 0.6e-6, "SET_LOAD": 0.5e-6, "LOADS": 0.5e-6,
    },
    part={"LAUNCHED": 0.05e-6, "REFUSED": 0.05e-6, "ENDED": 0.05e-6, "UPDATE": 0.05e-6},
)
PROFILES = {"compiled": COMPILED, "python": PYTHON}


class Federation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of a federated run; times are in seconds."""

    global_masters: int = 10  # also: schedulers that sample, distributors
    local_masters: int = 0  # clusters the machines are dealt to; 0: those the fleet names, else 10
    heartbeat: Seconds = 10.0  # between a local master's periodic updates (Megha section V)
    delay: Seconds = 0.0005  # mean of the network's (Megha section V-B)
    delay_law: str = "constant"
    delay_spread: Seconds = 0.0  # uniform: delay - spread .. delay + spread
    service_profile: str = "compiled"  # whose service times these are: of compiled masters, or of plain python's
    service: dict[str, Seconds] = {}  # seconds of service by kind of message, over the profile's
    part: dict[str, Seconds] = {}  # seconds by kind of message for each entry it carries, over the profile's
    service_scale: float = 1.0  # all service times times this; 0: masters cost nothing
    updates: str = "changes"  # what updates carry: only what changed, or the whole cluster
    preemption: str = "off"  # preemption for queues below their share: off, strict, or the paper's Algorithm 2
    shares: dict[str, float] = {}  # queue: share of the federation; the others divide the rest evenly
    masters_of: dict[str, int] = {}  # queue: its global master; the others go round
    preemptions_max: int = 3  # how often a task may be preempted
    placement: str = "first-fit"  # megha, central: first-fit (the paper), aligned-fit (Tetris's score), bins (LoTES)
    queue_order: str = "round-robin"  # whom a global master serves next: round-robin, or a fair order such as mch
    order: str = FIFO  # within a queue: fifo, priority, or fewest-tasks (tasks of the job with the fewest first)
    priority_seconds: Seconds = 3600.0  # with order priority: how much longer a task of one priority less must wait
    retry: Seconds = math.inf  # seconds until an unanswered request is repeated; inf: the network loses nothing
    lease: Seconds = 30.0  # seconds a silent worker, or master, is taken to live
    timer_slack: Seconds = 0.1  # seconds by which a timer may be late; a lease ends so much sooner for who holds it
    standby: bool = False  # whether every local master has a standby
    probe_ratio: float = 2.0  # sampled: probes for each task
    probes_min: int = 1  # sampled: probes for a batch at least, as far as there are workers (Eagle's authors: 20)
    sampling: str = "batch"  # sampled: batch, or task (each task probes for itself)
    cutoff: Seconds = math.inf  # hawk, eagle, pigeon: jobs whose mean run time is estimated at least this are long
    short_share: float = 0.02  # hawk, eagle, pigeon: share of the workers kept for short jobs
    steal_attempts: int = 10  # hawk, eagle: workers an idle one asks
    starvation_limit: int = 5  # eagle: how many times its own run time a waiting probe may be held up by others
    push_ratio: float = 1.0  # dodoor: decisions, for each worker, until all schedulers are told the loads of all
    report_tasks: int = 8  # dodoor: decisions of a scheduler that it tells the data store together
    duration_weight: float = 0.5  # dodoor: what the seconds of a worker's tasks count, beside their amounts
    fair_weight: int = 10  # pigeon: short tasks served for each long one

    def __post_init__(self) -> None:
        """Refuse what no federation could be."""
        for name, (least, most) in BOUNDS.items():
            _between(name, getattr(self, name), least, most)
        if not self.probe_ratio > 0:
            raise InputError(f"probe_ratio: must be more than 0, not {self.probe_ratio:g}")
        for name, words in (("delay_law", LAWS), ("updates", UPDATES), ("preemption", PREEMPTION_RULES),
                            ("service_profile", tuple(PROFILES)), ("placement", PLACEMENTS),
                            ("order", TASK_ORDERS),
                            ("queue_order", (ROUND_ROBIN, *FAIR_ORDERS)), ("sampling", ("batch", "task"))):
            if getattr(self, name) not in words:
                raise InputError(f"{name}: must be one of {', '.join(words)}, not {getattr(self, name)!r}")
        if self.timer_slack > self.lease / 6:
            raise InputError(f"timer_slack: must be at most a sixth of the lease of {self.lease:g} s, "
                             f"not {self.timer_slack:g}")
        if self.delay_spread > self.delay:
            raise InputError(f"delay_spread: must be at most the delay of {self.delay:g} s, not {self.delay_spread:g}")
        self._check_tables()

    def _check_tables(self) -> None:
        for table in ("service", "part"):
            for kind, seconds in getattr(self, table).items():
                if kind not in _kinds():
                    raise InputError(f"{table}: must be of kinds of messages such as {', '.join(COMPILED.part)}; "
                                     f"there is no kind {kind!r}")
                _between(f"{table}.{kind}", seconds, 0, SECONDS_MAX)
        for queue, share in self.shares.items():
            _between(f"shares.{queue}", share, 0, 1)
        if sum(self.shares.values()) > 1 + 1e-9:
            raise InputError(f"shares: must add up to at most 1, not {sum(self.shares.values()):g}")
        for queue, master in self.masters_of.items():
            if not 0 <= master < self.global_masters:
                raise InputError(f"masters_of.{queue}: must be from 0 to {self.global_masters - 1}, not {master}")

    def service_seconds(self) -> list[float]:
        """Return the seconds of service of each kind, in the order of KINDS."""
        table = {**PROFILES[self.service_profile].service, **self.service}
        return [table.get(kind, 0.0) * self.service_scale for kind in _kinds()]

    def part_seconds(self) -> list[float]:
        """Return the seconds for each entry that a message carries, in the order of KINDS."""
        table = {**PROFILES[self.service_profile].part, **self.part}
        return [table.get(kind, 0.0) * self.service_scale for kind in _kinds()]


def _kinds() -> tuple[str, ...]:
    from subak.federation.messages import KINDS  # noqa: PLC0415  (loads NumPy, which the names of settings need not)

    return KINDS


def _between(name: str, value: float, least: float, most: float) -> None:
    if math.isnan(value) or value < least:
        raise InputError(f"{name}: must be {least:g} or more, not {value:g}")
    if value > most:
        raise InputError(f"{name}: must be at most {most:,}, not {value:g}")
