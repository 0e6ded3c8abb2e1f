"""Reads fault plans from TOML or draws them from a seed, and resolves names to roles.

```toml
seed = 7                    # of what befalls each message
loss = 0.02                 # probabilities: a message is lost,
heartbeat_loss = 0.3        # a periodic update is,
duplication = 0.05          # a message comes twice,
reordering = 0.1            # or up to late_max seconds late, so that others overtake it,
spike = 0.01                # or up to spike_max seconds late
replay = 0.001              # a message brings an old one with it: any that was sent so far
late_max = 0.2
spike_max = 3.0
timer_late = 0.05           # timers of roles go off up to so many seconds late; at most the setting timer_slack
faults_until = 60.0         # from then on nothing befalls messages any more; cuts and crashes have their own times

[[cut]]                     # nothing passes between the two
between = ["global master 0", "workers"]
from = 5.0
until = 12.0

[[crash]]
role = "local master 3"
at = 20.0
restart_after = 4.0         # left out: never
```

Roles are `global master N`, `local master N` (a cluster's), `standby N` (that cluster's), `worker N` (the machine's row
in the fleet), `submitter`, and in cuts also `global masters`, `local masters`, `standbys`, `workers` and `everybody`.
"""
import itertools
import math
import re
from pathlib import Path

import msgspec
import numpy as np

from subak.errors import InputError
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, MESSAGE, SUBMITTER, WORKER
from subak.federation.settings import Federation
from subak.placement.hold_back import TIMES_MAX
from subak.quantities import Seconds
from subak.simulator.failures.faults import (
    ACTION_CRASH,
    ACTION_RESTART,
    DUPLICATION,
    EVERYBODY,
    FAULTS_UNTIL,
    HEARTBEAT_LOSS,
    LATE_MAX,
    LOSS,
    PAST,
    REORDERING,
    REPLAY,
    SPIKE,
    SPIKE_MAX,
    TIMER_LATE,
    Faults,
)
from subak.simulator.federated.network import Network
from subak.toml_files import read_toml

FOREVER = math.inf
LATEST = 1_000_000_000  # seconds, of what happens at a time
RETRY_S = 1.0  # seconds until requests are repeated, where faults are planned and no other number is given
# Nothing that still comes takes longer than so many of each together.
QUIET_LEASES, QUIET_RETRIES, QUIET_HEARTBEATS, QUIET_DELAYS, QUIET_HOLDS = 12, 130, 4, 100, TIMES_MAX + 3
RATES = {"loss": LOSS, "heartbeat_loss": HEARTBEAT_LOSS, "duplication": DUPLICATION, "reordering": REORDERING,
         "spike": SPIKE, "replay": REPLAY}
TIMES = {"late_max": LATE_MAX, "spike_max": SPIKE_MAX, "faults_until": FAULTS_UNTIL, "timer_late": TIMER_LATE}
NUMBER = re.compile(r"\d{1,18}", re.ASCII)
ONE = ("global master", "local master", "standby", "worker")  # followed by a number


class RoleError(InputError):
    """A plan names a role that the federation does not have."""


class Cut(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"begin": "from"}):
    """Two sides that cannot reach each other for a while."""

    between: list[str]
    begin: Seconds = 0.0  # seconds; `from` in TOML
    until: Seconds = FOREVER

    def __post_init__(self) -> None:
        """Refuse what is not a cut."""
        if len(self.between) != 2:
            raise InputError(f"cut.between: must name two sides, not {len(self.between)}")
        _not_negative("cut.from", self.begin)
        if not self.until > self.begin:
            raise InputError(f"cut.until: must be after its beginning at {self.begin:g} s, not {self.until:g}")


class Crash(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A role that goes, with all that was in its memory or ran on it, and may come back."""

    role: str
    at: Seconds  # seconds
    restart_after: Seconds = FOREVER  # seconds

    def __post_init__(self) -> None:
        """Refuse times that are none."""
        _not_negative("crash.at", self.at)
        if self.at > LATEST:
            raise InputError(f"crash.at: must be at most {LATEST:,} seconds, not {self.at:g}")
        _not_negative("crash.restart_after", self.restart_after)


class FaultPlan(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong in a run; see the head of this file."""

    seed: int = 1
    loss: float = 0.0
    heartbeat_loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    spike: float = 0.0
    replay: float = 0.0
    late_max: Seconds = 1.0
    spike_max: Seconds = 10.0
    faults_until: Seconds = FOREVER
    timer_late: Seconds = 0.0
    cut: list[Cut] = []
    crash: list[Crash] = []

    def __post_init__(self) -> None:
        """Refuse what no plan could be."""
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed: must be from 0 to 2^63 - 1, not {self.seed}")
        for name in RATES:
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name}: must be a probability from 0 to 1, not {getattr(self, name):g}")
        if self.loss == 1 and self.faults_until == FOREVER:
            raise InputError("loss: must be less than 1 where it never ends; give faults_until")
        for name in TIMES:
            _not_negative(name, getattr(self, name))
            if getattr(self, name) > LATEST and not (name == "faults_until" and self.faults_until == FOREVER):
                raise InputError(f"{name}: must be at most {LATEST:,} seconds, not {getattr(self, name):g}")

    @property
    def over_at(self) -> float:
        """When the last fault is over, in seconds; what happens for ever counts when it begins."""
        ends = [crash.at + (crash.restart_after if crash.restart_after < FOREVER else 0.0) for crash in self.crash]
        ends += [cut.until if cut.until < FOREVER else cut.begin for cut in self.cut]
        return max([self.faults_until if self.faults_until < FOREVER else 0.0, *ends])


def read_fault_plan(path: Path) -> FaultPlan:
    """Read a plan. Raises InputError with the file and the mistake."""
    return read_toml(path, FaultPlan)


def under_faults(settings: Federation) -> Federation:
    """Return settings under which requests are repeated: as given, else after RETRY_S."""
    if settings.retry < FOREVER:
        return settings
    return msgspec.structs.replace(settings, retry=min(RETRY_S, settings.lease))


def refuse_late_timers(plan: FaultPlan, settings: Federation) -> None:
    """Raise InputError where timers may be later than the roles reckon with."""
    if plan.timer_late > settings.timer_slack:
        raise InputError(f"timer_late: must be at most the setting timer_slack, {settings.timer_slack:g} s, "
                         f"not {plan.timer_late:g}")


def arm_faults(
    plan: FaultPlan, settings: Federation, net: Network, machine_order: np.ndarray, hold_back_after: float
) -> Network:
    """Return the network on which a plan's faults happen; *machine_order* as of the run, int32[machine].

    Raises RoleError for a role that is not there.
    """
    net.idle.timeout = plan.over_at + quiet_seconds(settings, hold_back_after)
    return net._replace(faults=faults_of(plan, settings, net.first, machine_order))


def quiet_seconds(settings: Federation, hold_back_after: float) -> float:
    """Return for how long nothing need happen to a task before nothing ever will: all timers have run by then."""
    heartbeats = QUIET_HEARTBEATS * settings.heartbeat if settings.heartbeat < FOREVER else 0.0
    retries = QUIET_LEASES * settings.lease + QUIET_RETRIES * settings.retry if settings.retry < FOREVER else 0.0
    holds = QUIET_HOLDS * hold_back_after if hold_back_after < FOREVER else 0.0
    return heartbeats + retries + holds + QUIET_DELAYS * settings.delay


def faults_of(plan: FaultPlan, settings: Federation, first: np.ndarray, machine_order: np.ndarray) -> Faults:
    """Return a plan's arrays; *first* holds the first address of each role."""
    rate = np.zeros(len(RATES) + len(TIMES))
    for name, place in {**RATES, **TIMES}.items():
        rate[place] = getattr(plan, name)
    cuts = [(cut.begin, cut.until, one, other) for cut in plan.cut
            for one, other in itertools.product(*(_side(name, settings, first, machine_order) for name in cut.between))]
    actions: list[tuple[float, int, int]] = []
    for crash in plan.crash:
        address = _address(crash.role, settings, first, machine_order)
        if address < first[GLOBAL_MASTER]:
            raise RoleError("crash.role: the submitter stands for those who submit, and never crashes")
        actions.append((crash.at, ACTION_CRASH, address))
        if crash.restart_after < FOREVER:
            actions.append((crash.at + crash.restart_after, ACTION_RESTART, address))
    actions.sort(key=lambda action: action[0])
    return Faults(
        on=np.ones(1, np.int64), rate=rate, random=np.array([plan.seed], np.uint64),
        past=np.zeros(PAST if plan.replay else 0, MESSAGE), past_count=np.zeros(1, np.int64),
        cut_from=np.array([cut[0] for cut in cuts], np.float64),
        cut_until=np.array([cut[1] for cut in cuts], np.float64),
        cut_side=np.array([cut[2:] for cut in cuts], np.int64).reshape(-1, 2),
        time=np.array([action[0] for action in actions], np.float64),
        action=np.array([action[1] for action in actions], np.int8),
        address=np.array([action[2] for action in actions], np.int64), next=np.zeros(1, np.int64),
    )


def _side(name: str, settings: Federation, first: np.ndarray, machine_order: np.ndarray) -> list[int]:
    """Return the addresses of one side of a cut."""
    clusters = _clusters(settings, first)
    groups = {
        "everybody": [EVERYBODY],
        "submitter": range(first[SUBMITTER], first[GLOBAL_MASTER]),
        "global masters": range(first[GLOBAL_MASTER], first[LOCAL_MASTER]),
        "local masters": range(first[LOCAL_MASTER], first[LOCAL_MASTER] + clusters),
        "standbys": range(first[LOCAL_MASTER] + clusters, first[WORKER]),
        "workers": first[WORKER] + np.flatnonzero(machine_order >= 0),
    }
    if name in groups:
        return [int(address) for address in groups[name]]
    return [_address(name, settings, first, machine_order)]


def _address(name: str, settings: Federation, first: np.ndarray, machine_order: np.ndarray) -> int:
    """Return the address of one role."""
    if name == "submitter":
        return int(first[SUBMITTER])
    role, _, digits = name.rpartition(" ")
    if role not in ONE or not NUMBER.fullmatch(digits):
        raise RoleError(f"role: must be submitter, or one of {', '.join(ONE)} with its number (in a cut also global "
                        f"masters, local masters, standbys, workers or everybody), not {name!r}")
    number, clusters = int(digits), _clusters(settings, first)
    counts = {"global master": int(first[LOCAL_MASTER] - first[GLOBAL_MASTER]), "local master": clusters,
              "standby": int(first[WORKER] - first[LOCAL_MASTER]) - clusters,
              "worker": int((machine_order >= 0).sum())}
    if number >= counts[role]:
        has = f"numbers are 0 to {counts[role] - 1}" if counts[role] else f"this federation has no {role}"
        raise RoleError(f"role: there is no {name}; {has}")
    if role == "worker":
        return int(first[WORKER] + np.flatnonzero(machine_order == number)[0])
    begin = first[GLOBAL_MASTER] if role == "global master" else first[LOCAL_MASTER]
    return int(begin + number + (clusters if role == "standby" else 0))


def _clusters(settings: Federation, first: np.ndarray) -> int:
    return int(first[WORKER] - first[LOCAL_MASTER]) // (2 if settings.standby else 1)


def random_plan(
    seed: int, *, global_masters: int, clusters: int, machines: int, standby: bool, over_at: float
) -> FaultPlan:
    """Draw a plan of every kind of fault, over at a time (seconds) but for crashes that some recovery outlasts."""
    random = np.random.default_rng(seed)

    def rate(most: float) -> float:
        return float(round(random.uniform(0, most), 4)) if random.random() < 0.6 else 0.0

    def moment() -> float:
        return float(round(random.uniform(0, 0.9 * over_at), 3))

    roles = [*(f"global master {number}" for number in range(global_masters)),
             *(f"local master {number}" for number in range(clusters)),
             *(f"standby {number}" for number in range(clusters if standby else 0)),
             *(f"worker {number}" for number in range(machines))]
    groups = ["global masters", "local masters", "workers", "submitter", *roles]
    cuts = []
    for _ in range(random.integers(0, 4)):
        begin = moment()
        one, other = random.choice(len(groups), 2, replace=False)
        cuts.append(Cut(between=[groups[one], groups[other]], begin=begin,
                        until=float(round(random.uniform(begin, over_at), 3)) + 0.001))
    crashes = []
    for _ in range(random.integers(0, 5)):
        begin = moment()
        role = roles[random.integers(len(roles))]
        for_ever = role.startswith("worker") and random.random() < 0.3
        crashes.append(Crash(role=role, at=begin, restart_after=FOREVER if for_ever else float(
            round(random.uniform(0, over_at - begin), 3))))
    apart = np.random.default_rng([seed, 33])
    if standby and apart.random() < 0.5:  # a deposed master speaks on: only its standby cannot hear it
        pair, begin = int(apart.integers(clusters)), float(round(apart.uniform(0, 0.6 * over_at), 3))
        cuts.append(Cut(between=[f"local master {pair}", f"standby {pair}"], begin=begin, until=over_at))
    never_back = np.random.default_rng([seed, 31])
    crashes = [msgspec.structs.replace(crash, restart_after=FOREVER)
               if "master" in crash.role and never_back.random() < 0.2 else crash for crash in crashes]
    return FaultPlan(
        seed=int(random.integers(2**31)), loss=rate(0.2), heartbeat_loss=rate(0.8), duplication=rate(0.3),
        reordering=rate(0.4), spike=rate(0.05), late_max=float(round(random.uniform(0.01, 1.0), 3)),
        spike_max=float(round(random.uniform(0.5, 5.0), 3)), faults_until=over_at, cut=cuts, crash=crashes,
    )


def _not_negative(name: str, value: float) -> None:
    if math.isnan(value) or value < 0:
        raise InputError(f"{name}: must be 0 seconds or more, not {value:g}")
