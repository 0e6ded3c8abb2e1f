"""Walks all states of a configuration breadth first, each once."""
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from subak.errors import RunError
from subak.kernels.kernel import by_address
from subak.simulator.exhaustive.graph import (
    BAD,
    BAD_STATE,
    BROKEN,
    COMPLETE,
    CUTS,
    FULL,
    GRAPH_MISSING,
    HEAD,
    MOVES,
    NONE_THERE,
    PAUSED,
    STATES,
    TOO_WIDE,
    WRONGS,
)
from subak.simulator.exhaustive.inert import Results
from subak.simulator.exhaustive.live import stuck
from subak.simulator.exhaustive.moves import Moves
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.exhaustive.roles.opening import open_configuration
from subak.simulator.exhaustive.tables import WIDTH, Tables

PAUSE = 1 << 16  # states between two reports of progress
STUCK = "the work cannot be done any more"


@dataclass
class Report:
    """What a walk found."""

    configuration: Configuration
    states: int = 0
    moves: int = 0
    calls: int = 0  # of handlers
    rounds: int = 0  # walks, until none dropped what mattered
    cuts: int = 0  # moves that were not followed, since a number would have gone beyond its bound
    seconds: float = 0.0
    complete: bool = False
    why: str = ""  # why it is not complete
    wrong: str = ""
    bad_state: int = NONE_THERE
    script: list[str] = field(default_factory=list)


class Walk:
    """The walk of a configuration, and its graph."""

    def __init__(self, configuration: Configuration, states_max: int, compiled: bool = True, handlers: bool = True,
                 drops: bool = True) -> None:
        """Begin. *compiled*: the walk, *handlers*: what it calls; a replay *drops* nothing, and no timer waits."""
        self.configuration, self.states_max = configuration, states_max
        jit = by_address()
        self.moves = Moves(open_configuration(configuration), configuration, compiled and handlers and jit, drops)
        self.tables = Tables(configuration, self.moves, compiled and jit, drops)

    def run(self, on_progress: Callable[[int, int], None] | None = None) -> Report:
        """Walk until all states are seen, something is wrong, or there are too many.

        A walk that dropped messages which may matter later, as it finds out, is walked again with them.
        """
        began, report = time.monotonic(), Report(self.configuration)
        while True:
            why = self.once(on_progress)
            report.rounds += 1
            if why == BROKEN or not self.revive():
                break
            self.tables.begin_again()
        count = self.tables.count
        if why == TOO_WIDE:
            raise RunError(f"more than {WIDTH} messages are under way at once in {self.configuration.name}")
        report.states, report.moves, report.cuts = int(count[STATES]), int(count[MOVES]), int(count[CUTS])
        report.calls, report.complete = self.moves.calls, why == COMPLETE
        report.why = f"more than {self.states_max:,} states" if why == FULL else ""
        report.seconds = time.monotonic() - began
        if why == BROKEN:
            report.wrong, report.bad_state = WRONGS[int(count[BAD])], int(count[BAD_STATE])
        elif why == COMPLETE:
            report.bad_state = stuck(self.tables.tables, self.is_done())
            report.wrong = STUCK if report.bad_state != NONE_THERE else ""
        return report

    def is_done(self) -> np.ndarray:
        """Return bool[state], whether all tasks have ended, their submitters know it, and their rows are free."""
        everything = (1 << self.configuration.tasks) - 1
        rows = self.tables.tables["row"][: int(self.tables.count[STATES]), : self.configuration.global_masters]
        return np.bitwise_or.reduce(np.array(self.moves.over)[rows], axis=1) == everything

    def once(self, on_progress: Callable[[int, int], None] | None) -> int:
        """Walk once; return why the walk ended."""
        count = self.tables.count
        why, until = GRAPH_MISSING, PAUSE
        while why not in (COMPLETE, BROKEN, TOO_WIDE):
            why = self.tables.call["walk"](0.0, until)
            if why == GRAPH_MISSING:
                self.tables.make_good()
            elif why == FULL and not self.tables.make_room(self.states_max):
                break
            elif why == PAUSED:
                until = int(count[HEAD]) + PAUSE
                if on_progress:
                    on_progress(int(count[HEAD]), int(count[STATES]))
        return why

    def revive(self) -> bool:
        """Keep from now on what was dropped and may matter later; return whether there is such."""
        table = Results(self.moves, self.tables.results, self.tables.tables)
        alive = table.matters()
        self.tables.tables["is_void"][alive] = 0
        self.tables.sync()
        return bool(alive)
