"""What a federation is set to: masters, network, costs, fairness, sampling; the words of options and of TOML."""
import math

import msgspec

from subak.errors import InputError
from subak.federation.messages import KINDS

LAWS = ("constant", "uniform", "exponential")  # of the network's delay
UPDATES = ("changes", "full")  # what an update carries, and is charged for
FAIRNESS = ("off", "strict", "paper")
# Seconds of service of each kind of message at its receiver, as the handlers take in plain Python (bench/handlers.py);
# kinds that are not listed cost nothing.
SERVICE_S: dict[str, float] = {
    "SUBMIT": 20e-6, "PLACE": 130e-6, "LAUNCHED": 30e-6, "REFUSED": 30e-6, "ENDED": 30e-6, "UPDATE": 20e-6,
    "LAUNCH": 75e-6, "REPARTITION": 75e-6, "PREEMPT": 100e-6, "GO": 30e-6, "ABANDON": 40e-6, "OVER": 40e-6,
    "NOTED": 10e-6,
    "FETCH": 10e-6, "BOUNCED": 10e-6, "REJECTED": 10e-6, "LONG_BEGUN": 5e-6, "LONG_OVER": 5e-6, "DEAL": 20e-6,
}
# Further seconds for each entry or machine that an update carries.
PART_S: dict[str, float] = {"LAUNCHED": 18e-6, "REFUSED": 18e-6, "ENDED": 18e-6, "UPDATE": 18e-6}


class Federation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of a federated run; times are in seconds."""

    global_masters: int = 10  # also: schedulers that sample, distributors
    local_masters: int = 0  # clusters the machines are dealt to; 0: those the fleet names, else 10
    heartbeat: float = 10.0  # between a local master's periodic updates (Megha section V)
    delay: float = 0.0005  # mean of the network's (Megha section V-B)
    delay_law: str = "constant"
    delay_spread: float = 0.0  # uniform: delay - spread .. delay + spread
    service: dict[str, float] = {}  # seconds of service by kind of message, over the defaults
    part: dict[str, float] = {}  # seconds by kind of message for each entry it carries, over the defaults
    service_scale: float = 1.0  # all service times times this; 0: masters cost nothing
    updates: str = "changes"  # what updates carry: only what changed, or the whole cluster
    fairness: str = "off"  # preemption for queues below their share: off, strict, or the paper's Algorithm 2
    shares: dict[str, float] = {}  # queue: share of the federation; the others divide the rest evenly
    masters_of: dict[str, int] = {}  # queue: its global master; the others go round
    preemptions_max: int = 3  # how often a task may be preempted
    order: str = "fifo"  # within a queue: fifo, or priority
    priority_seconds: float = 3600.0  # with order priority: how long a task of one priority less must have waited more
    retry: float = math.inf  # seconds until an unanswered request is repeated; inf: the network loses nothing
    lease: float = 30.0  # seconds a silent worker, or master, is taken to live
    standby: bool = False  # whether every local master has a standby
    probe_ratio: float = 2.0  # sampled: probes for each task
    probes_min: int = 1  # sampled: probes for a batch at least, as far as there are workers (Eagle's authors: 20)
    sampling: str = "batch"  # sampled: batch, or task (each task probes for itself)
    cutoff: float = math.inf  # hawk, eagle, pigeon: jobs whose mean run time is estimated at least this are long
    short_share: float = 0.02  # hawk, eagle, pigeon: share of the workers kept for short jobs
    steal_attempts: int = 10  # hawk, eagle: workers an idle one asks
    starvation_limit: int = 5  # eagle: how many times its own run time a waiting probe may be held up by others
    fair_weight: int = 10  # pigeon: short tasks served for each long one

    def __post_init__(self) -> None:
        """Refuse what no federation could be."""
        for name, least in (("global_masters", 1), ("local_masters", 0), ("probes_min", 1), ("preemptions_max", 0),
                            ("steal_attempts", 0), ("starvation_limit", 0), ("fair_weight", 1)):
            _at_least(name, getattr(self, name), least)
        for name in ("delay", "delay_spread", "service_scale", "cutoff", "priority_seconds"):
            _at_least(name, getattr(self, name), 0)
        for name in ("heartbeat", "retry", "lease", "probe_ratio"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}: must be more than 0, not {getattr(self, name):g}")
        for name, words in (("delay_law", LAWS), ("updates", UPDATES), ("fairness", FAIRNESS),
                            ("order", ("fifo", "priority")), ("sampling", ("batch", "task"))):
            if getattr(self, name) not in words:
                raise InputError(f"{name}: must be one of {', '.join(words)}, not {getattr(self, name)!r}")
        if self.delay_spread > self.delay:
            raise InputError(f"delay_spread: must be at most the delay of {self.delay:g} s, not {self.delay_spread:g}")
        if not 0 <= self.short_share <= 1:
            raise InputError(f"short_share: must be from 0 to 1, not {self.short_share:g}")
        if math.isfinite(self.heartbeat) and self.heartbeat < 1e-3:
            raise InputError(f"heartbeat: must be at least 0.001 s, not {self.heartbeat:g}")
        self._check_tables()

    def _check_tables(self) -> None:
        for table in ("service", "part"):
            for kind, seconds in getattr(self, table).items():
                if kind not in KINDS:
                    raise InputError(f"{table}: there is no message {kind!r}; kinds are {', '.join(KINDS)}")
                _at_least(f"{table}.{kind}", seconds, 0)
        for queue, share in self.shares.items():
            _at_least(f"shares.{queue}", share, 0)
        if sum(self.shares.values()) > 1 + 1e-9:
            raise InputError(f"shares: must add up to at most 1, not {sum(self.shares.values()):g}")
        for queue, master in self.masters_of.items():
            if not 0 <= master < self.global_masters:
                raise InputError(f"masters_of.{queue}: must be from 0 to {self.global_masters - 1}, not {master}")

    def service_seconds(self) -> list[float]:
        """Return the seconds of service of each kind, in the order of KINDS."""
        table = {**SERVICE_S, **self.service}
        return [table.get(kind, 0.0) * self.service_scale for kind in KINDS]

    def part_seconds(self) -> list[float]:
        """Return the seconds for each entry that a message carries, in the order of KINDS."""
        table = {**PART_S, **self.part}
        return [table.get(kind, 0.0) * self.service_scale for kind in KINDS]


def _at_least(name: str, value: float, least: float) -> None:
    if math.isnan(value) or value < least:
        raise InputError(f"{name}: must be {least:g} or more, not {value:g}")
