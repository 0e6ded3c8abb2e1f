"""The options of a conversion."""
import logging
from typing import Literal

import msgspec

from subak.dates import Calendar, Days, clipped_seconds
from subak.errors import InputError
from subak.resources import AMOUNT_MAX

Resubmissions = Literal["new-task", "attempt"]
Censored = Literal["keep", "drop", "forever"]
FleetChoice = Literal["at-start", "last", "changing"]
Shuffle = Literal["ignored", "stage", "task"]
Unfinished = Literal["keep", "drop"]
Slots = Literal["common", "separate"]
Computer = Literal["nodes", "one-machine"]
Amounts = Literal["allocated", "requested"]
Blanks = Literal["zero", "unknown"]

SLICE = frozenset({"arrival_min", "arrival_end"})  # options of readers that cut a slice
DATED = SLICE | {"from_date", "until_date"}  # and know which day their time 0 is


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may choose about a conversion; a reader names those it knows.

    ``arrival_min`` and ``arrival_end`` cut the slice of tasks that arrive in [arrival_min, arrival_end), in seconds;
    ``from_date`` and ``until_date`` are dates in their place, which `placed` turns into seconds.
    ``model`` holds parameters by name, for a format that needs a model to become a workload. ``map_slots`` and
    ``reduce_slots`` are those of a machine, ``topology`` the name of a file, empty for none. ``gang``: the tasks of one
    row of a table start together.
    """

    resubmissions: Resubmissions = "new-task"
    censored: Censored = "keep"
    fleet: FleetChoice = "at-start"
    arrival_min: float = 0.0
    arrival_end: float = float("inf")
    from_date: str = ""  # empty: none is given
    until_date: str = ""
    model: dict[str, float] = {}
    batch: bool = False
    shuffle: Shuffle = "ignored"
    unfinished: Unfinished = "keep"
    slots: Slots = "common"
    computer: Computer = "nodes"
    topology: str = ""
    map_slots: int = 2  # mapred.tasktracker.map.tasks.maximum
    reduce_slots: int = 2  # mapred.tasktracker.reduce.tasks.maximum
    rack_local: float = 1.0  # times as long as where the input is
    off_rack: float = 1.0
    columns: tuple[str, ...] = ()  # of a table: what was given as --map
    separator: str = ""  # of a table; empty: as its first line tells
    gang: bool = False
    amounts: Amounts = "allocated"
    blanks: Blanks = "zero"  # of a table: what an empty field says of an amount
    names: tuple[str, ...] = ()  # of a table without a line of names: those of its columns
    zone: str = ""  # of instants that name none
    max_lost: float = 0.1  # share of the load that may be lost

    def __post_init__(self) -> None:
        low, high = self.arrival_min, self.arrival_end
        if not 0 <= low < high:
            raise InputError(f"slice: needs 0 <= --from < --until, not {low:g} and {high:g}")
        twice = next((name for place, name in enumerate(self.names) if not name or name in self.names[:place]), None)
        if twice is not None:
            raise InputError(f"--columns: must name each column once, not {twice[:40]!r}"
                             + (" twice" if twice else ""))
        for name, slots in (("--map-slots", self.map_slots), ("--reduce-slots", self.reduce_slots)):
            if not 1 <= slots <= AMOUNT_MAX:
                raise InputError(f"{name}: must be 1 to {AMOUNT_MAX}, not {slots}")
        if not 1 <= self.rack_local <= self.off_rack < float("inf"):
            raise InputError("--rack-local, --off-rack: must be finite numbers, 1 or more, the second no less than the "
                             f"first, not {self.rack_local:g} and {self.off_rack:g}")

    def placed(self, calendar: Calendar | None, last: float) -> "Options":
        """Return the options with seconds in the place of dates; *last* is the trace's last arrival, in seconds.

        A slice is cut to the trace's days, with a warning. Raises InputError where the trace has no calendar, and where
        nothing of it is in the slice.
        """
        names = {"from_date": ("--from", "arrival_min"), "until_date": ("--until", "arrival_end")}
        found: dict[str, object] = {}
        for name, (option, field) in names.items():
            when = getattr(self, name)
            if when and calendar is None:
                raise InputError(f"{option}: must be a time since the trace's begin such as 2d, not {when}: this trace "
                                 "has no dates")
            if when:
                seconds, note = clipped_seconds(option, when, Days(calendar, last), begins=name == "from_date")
                if note:
                    logging.getLogger("subak").warning(note)
                found |= {field: seconds, name: ""}
        return msgspec.structs.replace(self, **found)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """SWIM: what makes tasks of bytes; the rates and the floor are assumptions, not measurements."""

    block_bytes: float = 2.0**27  # 128 MiB, Hadoop's default block since version 2
    reduce_bytes: float = 1e9  # hive.exec.reducers.bytes.per.reducer before Hive 0.14
    reduces_max: float = 999.0  # hive.exec.reducers.max before Hive 0.14
    map_bytes_per_second: float = 20e6
    reduce_bytes_per_second: float = 20e6
    copy_bytes_per_second: float = 20e6  # of the maps' output, to one reduce
    floor_seconds: float = 5.0  # a task's start and end

    def __post_init__(self) -> None:
        for name, value in msgspec.structs.asdict(self).items():
            if not 0 <= value < float("inf") or (value == 0 and name != "floor_seconds"):
                least = "0 or more" if name == "floor_seconds" else "above 0"
                raise InputError(f"--model: {name} must be a finite number {least}, not {value:g}")
        if self.reduces_max != int(self.reduces_max):
            raise InputError(f"--model: reduces_max must be a whole number, not {self.reduces_max:g}")
