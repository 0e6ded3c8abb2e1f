"""Runs a federation on this machine from start to end, for `subak up`."""
import math
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from subak import exit_codes
from subak.errors import RunError
from subak.live.up.children import Child, Children
from subak.live.up.folder import READY, STARTING, WITHOUT_WORKER, WORKER, Home, lines_after
from subak.live.up.picture import NO_MACHINE, Picture, Watcher, look
from subak.live.up.signals import Signals

TICK_S = 0.1
EVENTS_KEPT = 200


class Event(NamedTuple):
    """Something that happened; *at* is Unix time."""

    at: float
    words: str


class State(NamedTuple):
    """What is to be shown."""

    picture: Picture
    children: list[Child]
    is_ready: bool
    ending: str  # what is being waited for at the end


class Up:
    """A federation that runs; *tell* is told what happens, *show* what there is to be seen, several times a second."""

    def __init__(self, home: Home, tell: Callable[[Event], None], show: Callable[[State], None] = lambda state: None
                 ) -> None:
        self.home, self.tell, self.show = home, tell, show
        logs = [home.log_of(member) for member in home.members]
        self.children = Children(home.members, logs)
        self.read = {child.member.name: _size(child) for child in self.children.all}
        settings = home.settings()
        self.watcher = Watcher(settings) if settings is not None else None
        self.serving: set[str] = set()  # members that have said that they are ready
        self.events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self.is_ready = False
        self.began = time.monotonic()

    def run(self) -> None:
        """Start all, and keep it running until it is told to end. Raises RunError where a process cannot be started."""
        with Signals() as signals:
            try:
                self.home.note(STARTING)
                self._say_all(self.home.broken)
                if self.watcher is not None:
                    self.watcher.start()
                self._serve(signals)
            finally:
                if self.watcher is not None:
                    self.watcher.stop()
                left = self.children.kill()
                self.home.close()
        if left:
            raise RunError(f"processes cannot be killed: {', '.join(map(str, left))}")

    def _serve(self, signals: Signals) -> None:
        """Keep all running until a signal comes, and then end them; at once with SIGQUIT, or with a second signal."""
        number = 0
        while number == 0:
            self._tick(time.monotonic())
            number = signals.wait(TICK_S)
        stopped = look(self.watcher.settings).stopped() if self.watcher is not None else []
        if number == signal.SIGQUIT:
            self._say_all(stopped)
            return
        self.say("ending; once more ends at once")
        waited = ""
        for words in self.children.end():
            self._read_logs()
            if words != waited:
                waited = words
                self.say(f"waiting for {words}")
            self.show(State(self.picture, self.children.all, self.is_ready, words))
            if signals.wait(TICK_S / 2):
                self._say_all([*stopped, "killing what still runs"])
                return
        self._say_all(stopped)
        self.say("all processes have ended")

    def _tick(self, now: float) -> None:
        for child, code in self.children.ended(now):
            self._read_logs()
            self._died(child, code)
        for child in self.children.start_due(now):
            if child.starts > 1:
                self.say(f"{child.member.name} is started again")
        self._read_logs()
        if not self.is_ready and self._is_all_ready():
            self.is_ready = True
            self.home.note(READY)
            self.say(self._ready(f"after {now - self.began:.1f} s"))
            self._say_all(self.picture.of_before())
        self.show(State(self.picture, self.children.all, self.is_ready, ""))

    @property
    def picture(self) -> Picture:
        """What is to be seen of the federation; nothing from a host that has a part of it."""
        return Picture() if self.watcher is None else self.watcher.picture

    def _is_all_ready(self) -> bool:
        awaited = [child for child in self.children.all if child.due < math.inf]
        if self.watcher is None:
            return self.serving.issuperset(child.member.file.stem for child in awaited)
        return self.watcher.picture.is_ready(sum(child.member.role == WORKER for child in awaited))

    def _ready(self, after: str) -> str:
        """Return a line that says what is ready."""
        if self.watcher is None:
            return f"ready {after}: {', '.join(sorted(self.serving))}"
        masters = f"{after}: {len(self.picture.masters)} masters"
        machines = sum(machine.state == "ready" for machine in self.picture.machines)
        return f"ready {masters}, {machines} machines" if machines else f"masters are ready {masters}; {NO_MACHINE}"

    def _died(self, child: Child, code: int) -> None:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if code == exit_codes.MISTAKE and child.starts == 1:  # its file is wrong: to start it again is no use
            if child.member.role != WORKER:
                raise RunError(f"{child.member.name} cannot be started: {_last(child)}")
            child.due = math.inf
            self.say(f"{child.member.file}: {_last(child)}; {WITHOUT_WORKER}")
            return
        self.say(f"{child.member.name} {how}; it is started again in {child.pause:.1f} s")

    def _read_logs(self) -> None:
        """Tell what processes have said since."""
        for child in self.children.all:
            name = child.member.name
            if _size(child) < self.read[name]:
                self.read[name] = 0
            for line, offset in lines_after(child.log, self.read[name]):
                self.read[name] = offset
                words = _words(line)
                if words.startswith("ready"):
                    self.serving.add(child.member.file.stem)
                self.say(f"{name}: {words}")

    def _say_all(self, lines: list[str]) -> None:
        for words in lines:
            self.say(words)

    def say(self, words: str) -> None:
        """Note that something has happened."""
        event = Event(time.time(), words)
        self.events.append(event)
        self.tell(event)


def _size(child: Child) -> int:
    return child.log.stat().st_size if child.log.exists() else 0


def _words(line: str) -> str:
    """Return what a process says, without when and who."""
    time_of_day, separator, words = line.partition(": ")
    return words if separator and time_of_day[:2].isdigit() else line


def _last(child: Child) -> str:
    """Return the last line of a log."""
    lines = [line for line, _ in lines_after(child.log, max(0, _size(child) - 4096))]
    return lines[-1] if lines else f"it said nothing in {child.log}"
