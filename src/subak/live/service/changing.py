"""Answers requests that change machines: done, or the reason why not."""
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from subak.federation.messages import LOCAL_MASTER
from subak.live.api.errors import RefusedError, UnavailableError
from subak.live.api.models import MachineView
from subak.live.config import FederationFile
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.removal import NOT_LOST


def late_of(role: GlobalRole, file: FederationFile, machine: int) -> str:
    """Return how a local master of a machine's cluster is called that cannot be reached now; empty where all can."""
    absent = [local for local in role.layout.masters_of(role.layout.cluster_of(machine))
              if (LOCAL_MASTER, local) not in role.links]
    return file.name_of_local(absent[0]) if absent else ""


@contextmanager
def heard_by_both(role: GlobalRole, file: FederationFile, machine: int, what: str) -> Iterator[None]:
    """Say afterwards of a change that is to hold beyond a failover where a local master did not hear of it."""
    late = late_of(role, file, machine)
    yield
    if late:
        raise UnavailableError(f"{what} holds only until a failover: {late} cannot be reached now; "
                               "ask again when it is back")


def removed_view(role: GlobalRole, file: FederationFile, machine: int, before: MachineView) -> MachineView:
    """Return what is said of a machine that was removed."""
    late = late_of(role, file, machine)
    words = f"removed; {late} cannot be reached now, and is told when it is back" if late else "removed"
    return structs.replace(before, state="absent", tasks=0, reason=words)


@contextmanager
def refusals() -> Iterator[None]:
    """Say of a machine that is not lost that its removal is refused, not that it cannot be done just now."""
    try:
        yield
    except UnavailableError as error:
        if NOT_LOST in str(error):
            raise RefusedError(str(error)) from None
        raise
