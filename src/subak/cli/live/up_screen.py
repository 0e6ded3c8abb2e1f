"""Draws the screen of `subak up`: a live view in a terminal, one line per event elsewhere."""
import shlex
import sys
import time
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.table import Table

from subak.cli.live.show import STYLES, used_text
from subak.live.client.settings import CLIENT, FEDERATION
from subak.live.up.folder import Home
from subak.live.up.run import Event, State, Up
from subak.report.console import Console, Text, echo
from subak.report.number_text import NOTHING, count_text, counted, share_text

EVENTS_SHOWN, REFRESHED = 8, 4  # lines; times a second
STATES = {**STYLES, "ready": "green", "lost": "red", "starting": "yellow", "joining": "yellow",
          "unknown": "yellow"}


def serve(home: Home) -> None:
    """Run the federation of a folder, and show it, until it has ended."""
    _greet(home)
    if not sys.stdout.isatty():
        Up(home, lambda event: echo(_line(event))).run()
        return
    console = Console()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        screen = Screen(home, live)
        up = Up(home, screen.tell, screen.show)
        up.run()
    for event in screen.events[-2:]:
        echo(_line(event))


def _greet(home: Home) -> None:
    names = ", ".join(queue.name for queue in home.file.queue)
    echo(f"{home.folder}: {'made' if home.is_new else 'taken up again'}; federation {home.file.name}, "
         f"{counted(len(home.members), 'process', 'processes')}, queues {names}")
    echo(how_to_ask(home.folder))


def how_to_ask(folder: Path) -> str:
    """Return a line that says how commands find the federation of a folder, from wherever they are typed."""
    if not (folder / CLIENT).exists():
        return "this host has a part of the federation; people ask it with the folder people, which subak init made"
    return (f"ask it with: subak submit, run, list, --help; from other folders after: export "
            f"{FEDERATION}={shlex.quote(str(folder.absolute()))}")


def _line(event: Event) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(event.at))} {event.words}"


class Screen:
    """All there is to be seen of a federation, in a terminal."""

    def __init__(self, home: Home, live: Live) -> None:
        self.home, self.live = home, live
        self.events: list[Event] = []
        self.shown_at = 0.0

    def tell(self, event: Event) -> None:
        """Note something that has happened."""
        self.events = [*self.events[1 - EVENTS_SHOWN:], event]

    def show(self, state: State) -> None:
        """Show how it stands."""
        if time.monotonic() - self.shown_at >= 1 / REFRESHED:
            self.shown_at = time.monotonic()
            self.live.update(self.rendered(state), refresh=True)

    def rendered(self, state: State) -> Group:
        """Return what is to be seen."""
        head = f"ending: waiting for {state.ending}" if state.ending else "ready" if state.is_ready else "starting"
        return Group(Text(f"federation {self.home.file.name}: {head}", "bold"), _processes(state), _machines(state),
                     _queues(state), *(Text(_line(event), "dim") for event in self.events))


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", header_style="bold", no_wrap=True)
    return table


def _processes(state: State) -> Table:
    """Return masters as they are known by each other, and by their processes here."""
    table = _table("master", "state", "process", "restarts", "note", right=("process", "restarts"))
    known = {master.name.replace(" ", "-"): master for master in state.picture.masters}
    for child in state.children:
        if child.member.role == "worker":
            continue
        master = known.get(child.member.name)
        word = "starting" if master is None else master.state
        note = "" if master is None or master.role == "global" else (
            "speaks for its cluster" if master.role == "local" else "standby")
        table.add_row(Text(child.member.name), Text(word, STATES.get(word, "")), str(child.pid or NOTHING),
                      str(child.starts - 1), Text(note))
    return table


def _machines(state: State) -> Table:
    table = _table("machine", "state", "process", "restarts", "tasks", "in use", right=("process", "restarts", "tasks"))
    known = {machine.name: machine for machine in state.picture.machines}
    for child in state.children:
        if child.member.role == "worker":
            machine = known.get(child.member.name)
            word = "starting" if machine is None else machine.state
            table.add_row(
                Text(child.member.name), Text(word, STATES.get(word, "")), str(child.pid or NOTHING),
                str(child.starts - 1), NOTHING if machine is None else count_text(machine.tasks),
                Text("" if machine is None else used_text(machine.used, machine.capacity)))
    return table


def _queues(state: State) -> Table:
    table = _table("queue", "weight", "guarantee", "share", "waiting", "running",
                   right=("weight", "guarantee", "share", "waiting", "running"))
    for queue in state.picture.queues:
        table.add_row(Text(queue.path or "all"), f"{queue.weight:g}", share_text(queue.guarantee),
                      share_text(queue.dominant_share), count_text(queue.waiting), count_text(queue.running))
    return table
