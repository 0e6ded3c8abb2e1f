"""The energy settings, read from TOML: power of machines, prices, carbon intensity.

```toml
resource = "cpu"               # whose used share power follows; left out: the workload's first resource
currency = "USD"               # of all prices, to be shown
price = [[21600, 0.11], [79200, 0.05]]   # of a kWh: one number; or a table, in which each value holds from its time
                               # (seconds of the trace) on until the next one's, and the last one to the end; or the
                               # name of a CSV file beside this one, with such rows under the titles time and value
price_every = 86400            # seconds after which the table begins again, here a tariff of day and night; its last
                               # value then holds until its first time, too; left out: it does not
carbon = [[0, 0.55], [3600, 0.48]]   # kg of CO2 equivalent that a kWh emits: likewise
carbon_every = 7200            # likewise

[[kind]]                       # the machines that fit all it names; of several kinds that fit one the last one holds
name = "ML110 G5"
machine = "*"                  # the machine's id; names may have * and ? in them
cluster = "*"
attributes = { platform = "B*" }
capacity = { cpu = 0.5 }       # at time 0, in amounts of the fleet
resource = "cpu"               # left out: the one above
watts = [93.7, 97, 101, 105, 110, 116, 121, 125, 129, 133, 135]   # at 0, 10, ..., 100 % of the resource in use
empty = 5.0                    # watts while no task runs there: off or asleep; left out: as at a share of 0
per_hour = 0.04                # what a machine-hour costs, as rent or written off

[[kind]]
name = "another"
watts = [80, 120, 200]
shares = [0, 0.25, 1]          # the shares that the watts are of; left out: evenly from 0 to 1
```

Between two of `watts` power is read off a straight line: two of them, idle and full, are a linear model, and eleven are
what a SPECpower report lists. A machine that is not there draws nothing and costs nothing.
"""
import csv
import math
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import msgspec

from subak.errors import InputError
from subak.quantities import Amount, Seconds
from subak.toml_files import read_toml

ANY = "*"
WATTS_MAX = 1e6  # of one machine
PRICE_MAX = 1e9  # of a kWh or of a machine-hour, and kg of a kWh
SERIES_POINTS_MAX = 1_000_000
SERIES_LEAST = {"price": -PRICE_MAX, "carbon": 0.0}  # what changes over time, and the least value of each
POINT_COLUMNS = ["time", "value"]

Points = list[tuple[Seconds, float]]  # seconds and the value from then on


class MachineKind(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What some machines draw and cost; see the head of this file."""

    name: str
    machine: str = ANY
    cluster: str = ANY
    attributes: dict[str, str] = {}
    capacity: dict[str, Amount] = {}
    resource: str = ""
    watts: list[float]
    shares: list[float] = []
    empty: float | None = None
    per_hour: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no machine could draw or cost."""
        if not self.name.strip():
            raise InputError("kind.name: must be a name, not empty")
        where = f"kind {self.name!r}"
        if len(self.watts) < 2:
            raise InputError(f"{where}: watts must be at least two, idle and full, not {len(self.watts)}")
        for watts in [*self.watts, *([] if self.empty is None else [self.empty])]:
            if not 0 <= watts <= WATTS_MAX:
                raise InputError(f"{where}: watts must be from 0 to {WATTS_MAX:g}, not {watts:g}")
        self._refuse_shares(where)
        if not 0 <= self.per_hour <= PRICE_MAX:
            raise InputError(f"{where}: per_hour must be from 0 to {PRICE_MAX:g}, not {self.per_hour:g}")

    def _refuse_shares(self, where: str) -> None:
        if not self.shares:
            return
        if len(self.shares) != len(self.watts):
            raise InputError(f"{where}: shares must be as many as watts ({len(self.watts)}), not {len(self.shares)}")
        rising = all(one < other for one, other in pairwise(self.shares))
        if not rising or (self.shares[0], self.shares[-1]) != (0.0, 1.0):
            raise InputError(f"{where}: shares must rise from 0 to 1, not {self.shares}")


class Energy(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What machines draw and cost; see the head of this file."""

    resource: str = ""
    currency: str = ""
    price: float | str | Points | None = None  # a file's name is replaced by what it holds when that is read
    price_every: Seconds | None = None
    carbon: float | str | Points | None = None
    carbon_every: Seconds | None = None
    kind: list[MachineKind]

    def __post_init__(self) -> None:
        """Refuse what says nothing, or two things."""
        if not self.kind:
            raise InputError("kind: must be at least one, with the watts of its machines")
        names = [kind.name for kind in self.kind]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"kind: names must differ, {twice!r} occurs {names.count(twice)} times")
        for name, least in SERIES_LEAST.items():
            if getattr(self, name) == []:
                raise InputError(f"{name}: must have at least one time and value, or be left out")
            self._refuse_every(name)
            _refuse_points(name, points_of(getattr(self, name)), least)

    def _refuse_every(self, name: str) -> None:
        """Refuse a time after which no table begins again, or before it has ended."""
        value, every = getattr(self, name), getattr(self, f"{name}_every")
        if every is None:
            return
        if not isinstance(value, str | list):
            raise InputError(f"{name}_every: needs a table as {name}, which is to begin again")
        if not 0 < every < math.inf:
            raise InputError(f"{name}_every: must be a finite number of seconds above 0, not {every:g}")
        outside = next((time for time, _ in points_of(value) if not 0 <= time < every), None)
        if outside is not None:
            raise InputError(f"{name}_every: times of {name} must be from 0 to below it, {every:g} s, not {outside:g}")

    @property
    def costs(self) -> bool:
        """Whether anything has a price."""
        return self.price is not None or any(kind.per_hour for kind in self.kind)


def points_of(value: float | str | Points | None) -> Points:
    """Return a price or the like as a table; empty where there is none, or its file has not been read."""
    if value is None or isinstance(value, str):
        return []
    return [(0.0, value)] if isinstance(value, float | int) else value


def read_energy(path: Path) -> Energy:
    """Read a file, and the tables that it names. Raises InputError with the file and the mistake."""
    energy = read_toml(path, Energy)
    tables = {name: _read_points(path.parent / value) for name in SERIES_LEAST
              if isinstance(value := getattr(energy, name), str)}
    for name, points in tables.items():
        _refuse_points(str(path.parent / getattr(energy, name)), points, SERIES_LEAST[name])
    try:
        return msgspec.structs.replace(energy, **tables)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def tables_of(path: Path) -> list[Path]:
    """Return the other files that such a file names; none where it cannot be read."""
    try:
        energy = read_toml(path, Energy)
    except InputError:
        return []
    return [path.parent / value for value in (energy.price, energy.carbon) if isinstance(value, str)]


def energy_names() -> list[str]:
    """Return the names of the shipped files."""
    return sorted(path.stem for path in _shipped().glob("*.toml"))


def energy_file(text: str) -> Path:
    """Return the path of a shipped file by its name, else the file of that name (a ``./`` before it tells)."""
    return _shipped() / f"{text}.toml" if text in energy_names() else Path(text)


def _shipped() -> Path:
    return Path(str(files("subak") / "data" / "energy"))


def _refuse_points(where: str, points: Points, least: float) -> None:
    for time, value in points:
        if not math.isfinite(time):
            raise InputError(f"{where}: time must be a finite number of seconds, not {time:g}")
        if not least <= value <= PRICE_MAX:
            raise InputError(f"{where}: must be from {least:g} to {PRICE_MAX:g} a kWh, not {value:g}")
    for (one, _), (other, _) in pairwise(points):
        if not one < other:
            raise InputError(f"{where}: times must rise, {other:g} comes behind {one:g}")


def _read_points(path: Path) -> Points:
    """Read a table of times and values. Raises InputError with the line of the first mistake."""
    try:
        if not path.is_file():  # a device or a pipe may never end
            raise FileNotFoundError
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _points(path, csv.reader(file))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, csv.Error) as error:  # ValueError: no UTF-8, or no path
        raise InputError(f"{path}: cannot be read: {error}") from None


def _points(path: Path, lines: Iterator[list[str]]) -> Points:
    head = [cell.strip() for cell in next(lines, [])]
    if head != POINT_COLUMNS:
        raise InputError(f"{path}: the first line must be {','.join(POINT_COLUMNS)}, not {','.join(head)!r}")
    points: Points = []
    for number, cells in enumerate(lines, start=2):
        if len(points) == SERIES_POINTS_MAX:
            raise InputError(f"{path}: must have at most {SERIES_POINTS_MAX:,} rows")
        try:
            time, value = map(float, cells)
        except ValueError:
            raise InputError(f"{path}, row {number}: must be two numbers, time and value, not "
                             f"{','.join(cells)!r}") from None
        points.append((time, value))
    if not points:
        raise InputError(f"{path}: must have at least one row of a time and a value")
    return points
