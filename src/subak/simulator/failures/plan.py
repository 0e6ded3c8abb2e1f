"""Reads failure plans from TOML: how attempts fail, and how often users retry.

```toml
seed = 7                    # what is drawn depends on it and on the run's seed, and on no scheduler
recorded = true             # tasks that the trace recorded as FAIL fail when they have run so long, in every attempt;
                            # those recorded as KILL are cancelled when they have; all others run as they would

[[task]]                    # a rule for the tasks that fit all it names; of several that fit a task the last one holds
queue = "research"          # this queue, and those below it; names may have * and ? in them
user = "*"
job = "17*"                 # the job's id
stage = "map"
gang = false                # tasks that start together; left out: they and others
fail = 0.05                 # probability that an attempt fails,
fail_after = 0.5            # when it has run this share of the run time; left out: anywhere in it, evenly
exit_code = 1
overrun = 0.01              # probability that an attempt does not end by itself: run_max ends it
cancel = 0.02               # probability that its user cancels a task,
cancel_after = 600.0        # on average so many seconds after its arrival (exponential), whether it waits or runs
retries = 3                 # how often a task is tried again after an attempt that failed or ran too long,
backoff = 10.0              # seconds later, and twice as long each time
wait_max = 86400.0          # seconds: a task that still waits when so many have passed is given up
run_max = 3600.0            # seconds that an attempt may run
losses_max = 5              # attempts that may be lost with their machines before the task is
```

Tasks that no rule fits finish, and wait and run as long as it takes. An attempt that is lost with its machine, or
preempted, begins again at once, and is none of the retries. Gangs start and fail as a whole, and have no retries. Where
a stage does not finish, the stages that wait for it are cancelled.
"""
from pathlib import Path
from typing import Literal

import msgspec

from subak.errors import InputError
from subak.quantities import Seconds
from subak.simulator.failures.planned import ALWAYS, NEVER
from subak.toml_files import read_toml

RETRIES_MAX = 1000
SECONDS_MAX = 1e9  # of a deadline or a mean time; inf: none
EXIT_CODE_MAX = 255
ANY = "*"
EVENLY: Literal["evenly"] = "evenly"
PROBABILITIES = ("fail", "overrun", "cancel")
NAMES = ("queue", "user", "job", "stage")  # of what a rule is for
COUNTS = {"retries": (0, RETRIES_MAX), "losses_max": (0, ALWAYS), "exit_code": (1, EXIT_CODE_MAX)}
DEADLINES = ("wait_max", "run_max")


class PlanError(InputError):
    """A plan does not go with the workload."""


class Rule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What befalls some tasks, and on which terms they run; see the head of this file."""

    queue: str = ANY
    user: str = ANY
    job: str = ANY
    stage: str = ANY
    gang: bool | None = None
    fail: float = 0.0
    fail_after: float | Literal["evenly"] = EVENLY
    exit_code: int = 1
    overrun: float = 0.0
    cancel: float = 0.0
    cancel_after: Seconds | None = None
    retries: int = 0
    backoff: Seconds = 0.0
    wait_max: Seconds = NEVER
    run_max: Seconds = NEVER
    losses_max: int = ALWAYS

    def __post_init__(self) -> None:
        """Refuse what no rule could be."""
        for name in PROBABILITIES:
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"task.{name}: must be a probability from 0 to 1, not {getattr(self, name):g}")
        for name, (least, most) in COUNTS.items():
            if not least <= getattr(self, name) <= most:
                raise InputError(f"task.{name}: must be from {least} to {most:,}, not {getattr(self, name)}")
        self._refuse_times()
        if self.fail + self.overrun > 1:
            raise InputError("task.fail, task.overrun: an attempt does one of them, so their sum must be at most 1, "
                             f"not {self.fail + self.overrun:g}")
        if self.overrun and self.run_max == NEVER:
            raise InputError("task.overrun: needs run_max, the seconds after which such an attempt is ended")
        if (self.cancel > 0) != (self.cancel_after is not None):
            raise InputError("task.cancel, task.cancel_after: go together, a probability above 0 and the mean seconds "
                             "after a task's arrival")

    def _refuse_times(self) -> None:
        if self.fail_after != EVENLY and not 0 < self.fail_after <= 1:
            raise InputError("task.fail_after: must be a share of the run time, above 0 and at most 1, not "
                             f"{self.fail_after:g}")
        for name in DEADLINES:
            seconds = getattr(self, name)
            if not (0 < seconds <= SECONDS_MAX or seconds == NEVER):
                raise InputError(f"task.{name}: must be above 0 and at most {SECONDS_MAX:g} seconds, or inf, not "
                                 f"{seconds:g}")
        for name, seconds in (("backoff", self.backoff), ("cancel_after", self.cancel_after or 0.0)):
            if not 0 <= seconds <= SECONDS_MAX:
                raise InputError(f"task.{name}: must be from 0 to {SECONDS_MAX:g} seconds, not {seconds:g}")


class FailurePlan(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What befalls the tasks of a run; see the head of this file."""

    seed: int = 1
    recorded: bool = False
    task: list[Rule] = []

    def __post_init__(self) -> None:
        """Refuse what no plan could be."""
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed: must be from 0 to 2^63 - 1, not {self.seed}")


def read_failure_plan(path: Path) -> FailurePlan:
    """Read a plan. Raises InputError with the file and the mistake."""
    return read_toml(path, FailurePlan)
