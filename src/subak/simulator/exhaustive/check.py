"""Checks a configuration: walks all its states, and reports faults with the shortest way to them."""
from collections.abc import Callable

from subak.simulator.exhaustive.explore import Report, Walk
from subak.simulator.exhaustive.graph import NONE_THERE
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.exhaustive.script import ANSWER, path_to


def check(
    configuration: Configuration, states_max: int, on_progress: Callable[[int, int], None] | None = None,
    compiled: bool = True,
) -> Report:
    """Return what a walk of a configuration finds; not *compiled*, handlers are called as plain Python."""
    walk = Walk(configuration, states_max, handlers=compiled)
    report = walk.run(on_progress)
    if report.bad_state != NONE_THERE:
        report.script = path_to(walk, report.bad_state)
    return report


def length(script: list[str]) -> int:
    """Return how many moves a script has."""
    return sum(not line.startswith(ANSWER) for line in script)
