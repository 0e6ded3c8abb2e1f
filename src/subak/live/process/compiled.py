"""Gives a role its compiled handlers, and compiles them in a process beside."""
import argparse
from collections.abc import Callable

from subak.federation.megha.roles import serve_global_master, serve_local_master, serve_submitter
from subak.federation.serving import compiled_service
from subak.kernels.kernel import is_compiled
from subak.live.process import lifeline
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.global_master.queues import QueueSetup, QueuesFact
from subak.live.role.layout import Layout, Rooms, Timing
from subak.live.role.local_role import LocalRole

KERNELS = {"global-master": ("serve_submitter", "serve_global_master"), "local-master": ("serve_local_master",)}
SMALL = Layout(1, 1, ("cpu", "memory"), False, Rooms(tasks=64, machines=64, shapes=8, queues=8))


def are_kept(role: str) -> bool:
    """Whether what a role needs was compiled before."""
    return all(is_compiled(name) for name in KERNELS[role])


def services_of(role: GlobalRole | LocalRole) -> list[Callable[[float, int], int]]:
    """Return compiled functions for the tables of a role, in the order that `use` takes them."""
    if isinstance(role, GlobalRole):
        submitters, masters = role.tables()
        return [compiled_service(serve_submitter, submitters), compiled_service(serve_global_master, masters)]
    return [compiled_service(serve_local_master, role.tables())]


def main() -> None:
    """Compile what a role needs, for tables of any size."""
    parser = argparse.ArgumentParser(prog="python -m subak.live.process.compiled")
    parser.add_argument("role", choices=tuple(KERNELS))
    parser.add_argument("--lifeline", type=int, default=lifeline.NO_FILE)
    given = parser.parse_args()
    if given.lifeline != lifeline.NO_FILE:
        lifeline.end_with(lifeline.take(given.lifeline))
    if given.role == "global-master":
        services_of(GlobalRole(0, SMALL, Timing(), QueuesFact(1, (QueueSetup("all", 0),)), {}, "g0", "compiled"))
    else:
        services_of(LocalRole(0, SMALL, Timing(), {}))


if __name__ == "__main__":
    main()
