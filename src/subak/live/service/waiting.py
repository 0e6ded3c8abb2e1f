"""Says in a few words why a job waits, or that no machine can run it."""
from collections.abc import Sequence

import numpy as np

from subak.fleet.shortage import shortage
from subak.live.api.models import NEVER_FITS, WAITS_FOR_MACHINES, QueueView
from subak.live.config import FederationFile
from subak.live.jobfile.quantities import print_amount
from subak.live.jobfile.spec import TASKS, JobSpec, Stage
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.service.resources import queue_views
from subak.live.service.views import Known

UNMET = "no machine meets its constraints"
NONE_THERE, GONE = "no machine takes tasks now", "the machines that are large enough take no tasks now"
FULL, HELD, GANG = WAITS_FOR_MACHINES, "machines are held back for others", "waits for room for its whole gang"
TURN, OVER, PAUSE = "waits for its turn", "its queue is over its share", "is tried again after a pause"


def never_fit(role: GlobalRole, spec: JobSpec) -> tuple[str, ...]:
    """Return a line for each stage that asks for more than any machine has: what it asks for, and the most there is."""
    large = [stage for stage in spec.stages if _no_room(role.master.fleet.capacity, _asked(role, stage))]
    capacity = _of_all_machines(role) if large else role.master.fleet.capacity
    if not capacity.any():  # no machine has been heard of yet
        return ()
    return tuple(f"{f'stage {stage.name}' if len(spec.stages) > 1 else 'it'} can never run: "
                 f"{_words(role.layout.resources, asked, capacity)}"
                 for stage in large if _no_room(capacity, asked := _asked(role, stage)))


def too_large(role: GlobalRole, stage: Stage) -> str:
    """Return that no machine is large enough for a stage, what it asks for and the most there is; empty if one is."""
    asked, capacity = _asked(role, stage), _of_all_machines(role)
    if not capacity.any() or not _no_room(capacity, asked):
        return ""
    return f"{NEVER_FITS}: {_words(role.layout.resources, asked, capacity)}"


def _asked(role: GlobalRole, stage: Stage) -> np.ndarray:
    """Return what a task of a stage asks for, int64[resource]."""
    return np.array([1 if name == TASKS else stage.resources.get(name, 0) for name in role.layout.resources])


def _no_room(capacity: np.ndarray, asked: np.ndarray) -> bool:
    """Whether no machine, of those with *capacity* (int[resource, machine]), has as much as is asked for."""
    return not (capacity >= asked[:, None]).all(axis=0).any()


def _of_all_machines(role: GlobalRole) -> np.ndarray:
    """Return what machines have, int64[resource, machine], whether tasks may start there now or not."""
    facts = [read_machine(fact.body) for (kind, _), fact in role.facts.known.items() if kind == MACHINE]
    rows = [list(machine.capacity) for machine in facts if machine.capacity and not machine.gone]
    return np.array(rows or [[0] * len(role.layout.resources)], np.int64).T


def _words(resources: Sequence[str], asked: np.ndarray, capacity: np.ndarray) -> str:
    """Return what is asked for, and what the largest machine has, of those resources of which it has too little."""
    most = capacity.max(axis=1)
    short = [number for number in range(len(resources)) if asked[number] > most[number]]
    shown = short or [number for number in np.flatnonzero(asked).tolist() if resources[number] != TASKS]
    wanted, there = (", ".join(f"{resources[number]} {print_amount(resources[number], int(amounts[number]))}"
                               for number in shown) for amounts in (asked, most))
    if short:
        return f"it asks for {wanted}, the largest machine has {there}"
    return f"it asks for {wanted}, and no machine has all of that together"


class Waiting:
    """Says why jobs wait; what it has found out of requests and queues holds for a page of jobs."""

    def __init__(self, role: GlobalRole, file: FederationFile) -> None:
        self.role, self.file = role, file
        self.of_shape: dict[tuple[int, bool], str] = {}
        self.queues: list[QueueView] = []  # once somebody asks
        self.over: set[str] | None = None  # paths of those that hold more than their part

    def reason(self, known: Known, waiting: Sequence[int], has_pauses: bool) -> str:
        """Return why a job waits; *waiting*: how many tasks of each stage do."""
        place = next((place for place, count in enumerate(waiting) if count), None)
        if place is None:
            return PAUSE if has_pauses else ""
        stage = known.spec.stages[place]
        key = known.stored.shapes[place], stage.gang
        if key not in self.of_shape:
            self.of_shape[key] = self._of(key[0], stage)
        words = self.of_shape[key]
        if words in (FULL, TURN) and self._is_over(known.spec.queue):
            if words == TURN:
                return OVER
            return f"{words}; {OVER}" if self._do_others_wait(known.spec.queue) else words
        return words

    def _of(self, shape: int, stage: Stage) -> str:
        fleet = self.role.master.fleet
        found = shortage(fleet, self.role.shapes, shape, 0, fleet.machines)
        if not found.empty:
            if found.machines == found.constraints:
                return UNMET if found.machines else NONE_THERE
            return too_large(self.role, stage) or GONE
        if found.fits:
            return GANG if stage.gang else TURN
        return HELD if found.held else FULL

    def _is_over(self, path: str) -> bool:
        """Whether a queue, or one above it, holds more than its guarantee."""
        if self.over is None:
            self.queues = [*queue_views(self.role, self.file)]
            self.over = {view.path for view in self.queues if view.dominant_share > view.guarantee}
        parts = path.split("/")
        return any("/".join(parts[:depth]) in self.over for depth in range(1, len(parts) + 1))

    def _do_others_wait(self, path: str) -> bool:
        """Whether tasks wait in a queue that is neither this one nor above or below it."""
        return any(view.waiting and not f"{path}/".startswith(f"{view.path}/")
                   and not f"{view.path}/".startswith(f"{path}/") for view in self.queues if view.path)
