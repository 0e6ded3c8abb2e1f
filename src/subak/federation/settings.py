"""The settings of a federation: masters, network, costs, preemption, sampling; also as options and TOML."""
import math
from types import ModuleType
from typing import Annotated

import msgspec

from subak.errors import InputError
from subak.federation.choices import FIFO, PLACEMENTS, ROUND_ROBIN, TASK_ORDERS
from subak.placement.schedulers import Scheduler
from subak.quantities import Seconds
from subak.queues.orders import FAIR_ORDERS
from subak.settings import DURATION, FEDERATED, Between, Rule, Setting, Users, declared, one_of, refuse_values

LAWS = ("constant", "uniform", "exponential")  # of the network's delay
MASTERS_MAX = 10_000
PROBES_MAX = 1_000_000
PREEMPTIONS_MAX = 30_000
SECONDS_MIN, SECONDS_MAX = 1e-3, 1_000_000
UPDATES = ("changes", "full")  # what an update carries, and is charged for
PREEMPTION_RULES = ("off", "strict", "paper")
PROFILE_NAMES = ("compiled", "python")  # whose service times: of masters whose handlers are compiled, or plain Python


def _used_by(*architectures: str) -> Users:
    """Return the federations that use a setting; each is a scheduler of the same name."""
    return Users(lambda scheduler: "" if scheduler.architecture in architectures else "does not support it",
                 f"supports it; {', '.join(architectures)} do")


_PROBES = ("sparrow", "hawk", "eagle")
_SAMPLES = (*_PROBES, "dodoor", "pigeon")
ALL, MASTERS, PROBING, SAMPLING = (
    _used_by("megha", "central", *_SAMPLES), _used_by("megha", "central"), _used_by(*_PROBES), _used_by(*_SAMPLES))
LONG, DODOOR = _used_by("hawk", "eagle", "pigeon"), _used_by("dodoor")
_TIME, _TASKS = Between(0, SECONDS_MAX), Between(0, PROBES_MAX)
_POSITIVE = Between(SECONDS_MIN)


class Federation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of a federated run; times are in seconds."""

    global_masters: Annotated[int, Setting(
        "Number of global masters; for other federations, of sampling schedulers or distributors [default: 10].",
        "N", FEDERATED,
        _used_by("megha", *_SAMPLES), Between(1, MASTERS_MAX))] = 10
    local_masters: Annotated[int, Setting(
        "Number of local masters, one for each cluster [default: the clusters that the fleet names, or 10].", "N",
        FEDERATED, _used_by("megha", "pigeon"), Between(0, MASTERS_MAX))] = 0
    heartbeat: Annotated[Seconds, Setting(
        "Time between a local master's periodic updates [default: 10].", DURATION, FEDERATED, MASTERS,
        _POSITIVE)] = 10.0
    delay: Annotated[Seconds, Setting(
        "One-way message latency [default: 0.0005].", DURATION, FEDERATED, ALL,
        _TIME)] = 0.0005
    delay_law: Annotated[str, Setting(
        f"Of the delay: {', '.join(LAWS)}.", users=ALL, rule=one_of(LAWS),
        draws=lambda law: law != "constant")] = "constant"
    delay_spread: Annotated[Seconds, Setting(
        "Of a uniform delay: from delay - spread to delay + spread.", users=ALL, rule=_TIME)] = 0.0
    service_profile: Annotated[str, Setting(
        "Service times of masters: those of compiled handlers, or of plain Python [default: compiled].",
        "|".join(PROFILE_NAMES), FEDERATED, ALL, one_of(PROFILE_NAMES))] = "compiled"
    service: Annotated[dict[str, Seconds], Setting(
        "Seconds of service by kind of message, over the profile's.", users=ALL)] = {}
    part: Annotated[dict[str, Seconds], Setting(
        "Seconds by kind of message for each entry it carries, over the profile's.", users=ALL)] = {}
    service_scale: Annotated[float, Setting(
        "Factor for all service times; 0: masters take no time [default: 1].", "TIMES", FEDERATED, ALL, _TIME)] = 1.0
    updates: Annotated[str, Setting(
        "Content of updates: only the changes, or the whole cluster [default: changes].", "|".join(UPDATES), FEDERATED,
        MASTERS, one_of(UPDATES))] = "changes"
    preemption: Annotated[str, Setting(
        "Preemption for queues below their share [default: off].",
        "|".join(PREEMPTION_RULES), FEDERATED, MASTERS, one_of(PREEMPTION_RULES))] = "off"
    shares: Annotated[dict[str, float], Setting(
        "With --preemption: the share of a queue, such as research=0.25 or 25%; once for each queue [default: equal "
        "shares].",
        "QUEUE=SHARE", FEDERATED, MASTERS, option="--share")] = {}
    masters_of: Annotated[dict[str, int], Setting(
        "By queue, the number of its global master; the others go round.", users=_used_by("megha"))] = {}
    preemptions_max: Annotated[int, Setting(
        "How often a task may be preempted.", users=MASTERS, rule=Between(0, PREEMPTIONS_MAX))] = 3
    placement: Annotated[str, Setting(
        "How a global master chooses a machine within a partition: the first that fits, the best aligned (Tetris's "
        "score), or the one whose bin lacks the task's class most (LoTES) [default: first-fit].", "|".join(PLACEMENTS),
        FEDERATED, MASTERS, one_of(PLACEMENTS))] = "first-fit"
    queue_order: Annotated[str, Setting(
        "Whom a global master serves next: round-robin, or a fair order such as mch.", users=MASTERS,
        rule=one_of((ROUND_ROBIN, *FAIR_ORDERS)))] = "round-robin"
    order: Annotated[str, Setting(
        "Within a queue: fifo, priority, or fewest-tasks (tasks of the job with the fewest first).", users=MASTERS,
        rule=one_of(TASK_ORDERS))] = FIFO
    priority_seconds: Annotated[Seconds, Setting(
        "With order priority: how much longer a task of one priority less must wait.", users=MASTERS,
        rule=_TIME)] = 3600.0
    retry: Annotated[Seconds, Setting(
        "Until an unanswered request is repeated; inf: the network loses nothing.", users=MASTERS,
        rule=_POSITIVE)] = math.inf
    lease: Annotated[Seconds, Setting(
        "For which a silent worker, or master, is taken to live.", users=MASTERS, rule=_POSITIVE)] = 30.0
    timer_slack: Annotated[Seconds, Setting(
        "By which a timer may be late; a lease ends so much sooner for who holds it.", users=MASTERS,
        rule=_TIME)] = 0.1
    standby: Annotated[bool, Setting("Whether every local master has a standby.", users=MASTERS)] = False
    probe_ratio: Annotated[float, Setting(
        "Probes for each task.", users=PROBING,
        rule=Between(0, PROBES_MAX, above=True))] = 2.0
    probes_min: Annotated[int, Setting(
        "Probes for a batch at least, as far as there are workers (Eagle's authors: 20).", users=PROBING,
        rule=Between(1, PROBES_MAX))] = 1
    sampling: Annotated[str, Setting(
        "What is probed for together: a batch, or each task by itself.", users=SAMPLING,
        rule=one_of(("batch", "task")))] = "batch"
    cutoff: Annotated[Seconds, Setting(
        "Jobs whose mean run time is estimated at least this are long.", users=LONG, rule=Between(0))] = math.inf
    short_share: Annotated[float, Setting(
        "Share of the workers kept for short jobs.", users=LONG, rule=Between(0, 1))] = 0.02
    steal_attempts: Annotated[int, Setting(
        "Workers that an idle one asks.", users=_used_by("hawk"), rule=_TASKS)] = 10
    starvation_limit: Annotated[int, Setting(
        "How many times its own run time a waiting probe may be held up by others.", users=_used_by("eagle"),
        rule=_TASKS)] = 5
    push_ratio: Annotated[float, Setting(
        "Decisions, for each worker, until all schedulers are told the loads of all.", users=DODOOR,
        rule=_TASKS)] = 1.0
    report_tasks: Annotated[int, Setting(
        "Decisions of a scheduler that it tells the data store together.", users=DODOOR,
        rule=Between(1, PROBES_MAX))] = 8
    duration_weight: Annotated[float, Setting(
        "What the seconds of a worker's tasks count, beside their amounts.", users=DODOOR, rule=Between(0, 1))] = 0.5
    fair_weight: Annotated[int, Setting(
        "Short tasks served for each long one.", users=_used_by("pigeon"), rule=Between(1, PROBES_MAX))] = 10

    def __post_init__(self) -> None:
        """Refuse what no federation could be."""
        refuse_values(self)
        if self.timer_slack > self.lease / 6:
            raise InputError(f"timer_slack: must be at most a sixth of the lease of {self.lease:g} s, "
                             f"not {self.timer_slack:g}")
        if self.delay_spread > self.delay:
            raise InputError(f"delay_spread: must be at most the delay of {self.delay:g} s, not {self.delay_spread:g}")
        self._check_tables()

    def _check_tables(self) -> None:
        for table in ("service", "part"):
            for kind, seconds in getattr(self, table).items():
                if kind not in _messages().KINDS:
                    raise InputError(f"{table}: must be of kinds of messages such as "
                                     f"{', '.join(_messages().CARRIES)}; there is no kind {kind!r}")
                _refuse(f"{table}.{kind}", seconds, _TIME)
        for queue, share in self.shares.items():
            _refuse(f"shares.{queue}", share, Between(0, 1))
        if sum(self.shares.values()) > 1 + 1e-9:
            raise InputError(f"shares: must add up to at most 1, not {sum(self.shares.values()):g}")
        for queue, master in self.masters_of.items():
            if not 0 <= master < self.global_masters:
                raise InputError(f"masters_of.{queue}: must be from 0 to {self.global_masters - 1}, not {master}")

    def service_seconds(self) -> list[float]:
        """Return the seconds of service of each kind, in the order of KINDS."""
        table = {**_messages().PROFILES[self.service_profile].service, **self.service}
        return [table.get(kind, 0.0) * self.service_scale for kind in _messages().KINDS]

    def part_seconds(self) -> list[float]:
        """Return the seconds for each entry that a message carries, in the order of KINDS."""
        table = {**_messages().PROFILES[self.service_profile].part, **self.part}
        return [table.get(kind, 0.0) * self.service_scale for kind in _messages().KINDS]


def _messages() -> ModuleType:
    from subak.federation import messages  # noqa: PLC0415  (loads NumPy, which the names of settings need not)

    return messages


def _refuse(name: str, value: float, rule: Rule) -> None:
    if rule(value):
        raise InputError(f"{name}: must be {rule(value)}, not {value:g}")


NETWORK_SETTINGS = tuple(name for name, setting in declared(Federation).items() if setting.users is ALL)


def supported_by(scheduler: Scheduler) -> tuple[str, ...]:
    """Return the settings of a federation that a scheduler uses."""
    return tuple(name for name, setting in declared(Federation).items() if not setting.users.why_not(scheduler))
