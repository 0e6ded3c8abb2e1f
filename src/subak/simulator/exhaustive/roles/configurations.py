"""The tiny federations, and what may go wrong in each."""
import msgspec

from subak.errors import InputError


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A tiny federation of one cluster, and how often what may go wrong in a walk."""

    name: str
    tasks: int = 1  # each takes a machine
    global_masters: int = 1
    workers: int = 1
    standby: bool = False
    beats: bool = True  # whether the local master sends periodic updates
    holds: bool = False  # whether machines are held back for who is passed over
    lost: int = 0  # messages
    doubled: int = 0
    leases: int = 0  # that run out at a worker that lives
    takeovers: int = 0  # of a standby while the other one lives
    crashes: int = 0  # of the roles in `crashing`
    crashing: tuple[str, ...] = ()  # names of roles, as "worker 0"
    failures: int = 0  # of attempts that come to their end
    retries: int = 0  # how often a task is tried again after such
    cancelled: int = 0  # tasks that their users cancel at some time, the first ones
    early: int | None = None  # timers that ring while something is under way; None: any number
    returns: bool = True  # whether who has crashed may come back
    numbers: int = 3  # starts and reports that a local master may number, of a machine; moves beyond are not followed

    @property
    def budgets(self) -> tuple[int, ...]:
        """How often each of BUDGETS may happen."""
        return tuple(getattr(self, name) or 0 for name in BUDGETS)


BUDGETS = ("lost", "doubled", "leases", "takeovers", "crashes", "early", "failures")  # in the order of graph.py


CONFIGURATIONS = (
    Configuration(name="one-task", lost=2, doubled=2),
    Configuration(name="two-tasks", tasks=2, lost=1, doubled=1, early=1),
    Configuration(name="two-masters", tasks=2, global_masters=2, workers=2, doubled=1, beats=False),
    Configuration(name="lease", leases=1, lost=1, early=1, numbers=3),
    Configuration(name="two-workers", workers=2, leases=1, lost=1, early=0),
    Configuration(name="worker-crash", crashes=1, crashing=("worker 0",), lost=1, early=1),
    Configuration(name="global-master-crash", crashes=1, crashing=("global master 0",), lost=1, doubled=1, early=1),
    Configuration(name="global-master-tasks", tasks=2, crashes=1, crashing=("global master 0",), early=0),
    Configuration(name="local-master-crash", crashes=2, crashing=("local master 0",), early=1),
    Configuration(name="standby", standby=True, takeovers=1, lost=1, early=1),
    Configuration(name="pair-crash", standby=True, crashes=2, crashing=("local master 0", "standby 0"), early=0),
    Configuration(name="held-back", tasks=2, global_masters=2, holds=True, early=0),
    Configuration(name="failure", failures=2, retries=1, doubled=1, early=1),
    Configuration(name="cancel", cancelled=1, lost=1, doubled=1, early=1),
)


def named(name: str) -> Configuration:
    """Return a configuration by its name. Raises InputError where there is none."""
    found = next((each for each in CONFIGURATIONS if each.name == name), None)
    if found is None:
        raise InputError(f"--config: there is no configuration {name!r}; there are "
                         f"{', '.join(each.name for each in CONFIGURATIONS)}")
    return found
