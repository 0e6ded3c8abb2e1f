"""`subak machines`, `cordon`, `uncordon`, `drain`: list machines and take them in and out of service."""
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from subak.cli.live.options import MACHINE, ClientOption, Output, OutputOption, checked, opened
from subak.cli.live.show import show, show_table, used_text
from subak.errors import InputError
from subak.live.api.models import MachineView
from subak.report.console import echo
from subak.report.number_text import count_text, counted

SHOWN = "subak machines shows what was done"  # after Ctrl-C

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

NamesArgument = Annotated[list[str], typer.Argument(metavar="MACHINE...", help="Names of machines.",
                                                    show_default=False)]


def machines(
    words: Annotated[list[str] | None, typer.Argument(
        metavar="[remove MACHINE...]", show_default=False,
        help="Remove lost machines for good: their names and numbers become free, and the former workers may not come "
             "back.")] = None,
    *,
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", show_default=False,
                                         help="Only machines of this cluster.")] = "",
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """List machines: ready, joining, unknown (yet to report), lost (silent for a lease) or absent, with their use.

    - `subak machines --cluster west` lists one cluster.
    - `subak machines remove node-3` removes a machine that has been silent for a lease.
    """
    if words:
        _remove(words, output, client)
        return
    with opened(client) as federation:
        found = federation.machines(cluster)
    if not show(found, output):
        show_table(("machine", "cluster", "state", "tasks", "in use", "note"), [
            (each.name, each.cluster, each.state, count_text(each.tasks), used_text(each.used, each.capacity),
             _note(each)) for each in found], right=("tasks",))


def _remove(words: list[str], output: Output, client: ClientOption) -> None:
    """Take machines out, and say so of each."""
    if words[0] != "remove" or not words[1:]:
        raise InputError(f"machines: {words[0]!r} must be remove, and names of machines behind it")
    for name in words[1:]:
        checked(name, MACHINE, "MACHINE")
    with opened(client, SHOWN) as federation:
        for name in words[1:]:
            machine = federation.remove(name)
            if not show(machine, output):
                echo(f"{machine.name} {machine.reason}")


def _note(machine: MachineView) -> str:
    mark = "draining" if machine.draining else "cordoned" if machine.cordoned else ""
    return "; ".join(part for part in (mark, machine.reason) if part)


def cordon(names: NamesArgument, output: OutputOption = Output.TABLE, client: ClientOption = None) -> None:
    """Start nothing new on machines; running tasks go on.

    - `subak cordon node-3`, and `subak uncordon node-3` when it may be used again.
    """
    _change(names, output, client_file=client, word="cordoned", change=lambda client, name: client.cordon(name))


def uncordon(names: NamesArgument, output: OutputOption = Output.TABLE, client: ClientOption = None) -> None:
    """Let tasks start again on cordoned or drained machines.

    - `subak uncordon node-3`
    """
    _change(names, output, client_file=client, word="may be used again",
            change=lambda client, name: client.cordon(name, False))


def drain(names: NamesArgument, output: OutputOption = Output.TABLE, client: ClientOption = None) -> None:
    """Cordon machines and move their running tasks elsewhere, for example before maintenance.

    - `subak drain node-3`; `subak describe node-3` says what still runs there.
    """
    _change(names, output, client_file=client, word="is drained", change=lambda client, name: client.drain(name))


def _change(names: list[str], output: Output, *, client_file: ClientOption, word: str,
            change: Callable[["Client", str], MachineView]) -> None:
    """Change machines one after the other, and say so of each."""
    for name in names:
        checked(name, MACHINE, "MACHINE")
    with opened(client_file, SHOWN) as federation:
        for name in names:
            machine = change(federation, name)
            if not show(machine, output):
                runs = f"{counted(machine.tasks, 'task')} {'runs' if machine.tasks == 1 else 'run'}"
                echo(f"{machine.name} {word}; {runs} there")
