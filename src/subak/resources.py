"""Turns named resources into integer amounts in declared units; the only place where a float becomes an amount."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from subak.errors import InputError
from subak.quantities import BINARY, BYTES, DECIMAL, Amount, amount_in, read_amount, read_number

if TYPE_CHECKING:  # the names and limits are asked for by those who compute nothing, too
    import numpy as np

Value = TypeVar("Value")
MACHINE_BYTES_MAX = 2.0**46  # 64 TiB: nobody means a machine with more memory
MANY = 1000  # from here on all digits of an amount are shown, and its thousands told apart
AMOUNT_MAX = 2**31 - 1  # amounts are int32 so that a pass over the machines stays in the vector unit's lanes
GRACE = 4e-6  # of a unit: some eight times the last bit of a float near AMOUNT_MAX
CPU = "cpu"  # the resource that tasks can share by turns
RESERVED_NAMES = frozenset({
    "job", "stage", "task", "index", "queue", "user", "name", "kind", "priority", "constraints", "depends_on",
    "arrival", "run_time", "estimate", "outcome", "machine", "cluster", "present", "time", "attribute", "value", "gang",
    "scheduling_class", "speed_group", "shuffle", "recorded_start", "rack_local", "off_rack", "inputs",
})


class Resource(msgspec.Struct, frozen=True):
    """A named, divisible thing and the unit in which its amounts are counted.

    ``unit`` is the size of one unit in ``of``: ``Resource("cpu", 1e-3, "cores")`` counts thousandths of a core.
    """

    name: str
    unit: float = 1.0
    of: str = "units"

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name in RESERVED_NAMES:
            raise InputError(f"resource name {self.name!r}: must be an identifier and not the name of a column")
        if not (math.isfinite(self.unit) and self.unit > 0):
            raise InputError(f"resource {self.name}: unit must be a positive number, not {self.unit!r}")


def cpu_row(resources: tuple[Resource, ...]) -> int:
    """Return which of the resources is the CPU. Raises InputError where none is."""
    names = [resource.name for resource in resources]
    if CPU not in names:
        raise InputError(f"interference: tasks share a resource named {CPU}; there is {', '.join(names)}")
    return names.index(CPU)


def asked_units(amounts: np.ndarray, resource: Resource, where: str) -> np.ndarray:
    """Return what is asked for (float[row], in ``resource.of``) as int32[row] units: rounded up, so never to 0.

    What is within GRACE of a whole number of units is that number: it came of one, by a division.
    *where* names the table in errors. Raises InputError for a NaN, a negative amount, or one above 2^31-1 units.
    """
    import numpy as np  # noqa: PLC0415  (see above)

    counted = np.asarray(amounts, dtype=np.float64) / resource.unit
    return _units(np.maximum(np.ceil(counted - GRACE), counted > 0), amounts, resource, where)


def held_units(amounts: np.ndarray, resource: Resource, where: str) -> np.ndarray:
    """Return what machines have (float[row], in ``resource.of``) as int32[row] units: rounded down.

    Otherwise as `asked_units`.
    """
    import numpy as np  # noqa: PLC0415  (see above)

    return _units(np.floor(np.asarray(amounts, dtype=np.float64) / resource.unit + GRACE), amounts, resource, where)


def _units(units: np.ndarray, amounts: np.ndarray, resource: Resource, where: str) -> np.ndarray:
    import numpy as np  # noqa: PLC0415  (see above)

    amounts = np.asarray(amounts, dtype=np.float64)
    _refuse(np.isnan(amounts), amounts, f"{where}: {resource.name} must be a number")
    _refuse(amounts < 0, amounts, f"{where}: {resource.name} must not be negative")
    _refuse(units > AMOUNT_MAX, amounts,
            f"{where}: {resource.name} must be at most {AMOUNT_MAX} units of {resource.unit:g} {resource.of}")
    return units.astype(np.int32)


def _refuse(bad: np.ndarray, values: np.ndarray, rule: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(f"{rule}, row {row} has {values[row]:g}")


def parse_amounts(texts: Iterable[str], option: str = "--capacity") -> dict[str, Amount]:
    """Return {resource: amount} of texts such as ``cpu=64,memory=256Gi``.

    Raises InputError, naming *option*, for another form.
    """
    parts = [part.strip() for text in texts for part in text.split(",")]
    return _pairs(parts, read_amount, option, "RESOURCE=AMOUNT, such as cpu=4 or memory=256Gi")


def parse_numbers(texts: Iterable[str], option: str, form: str) -> dict[str, float]:
    """Return {name: number} of texts such as ``research=0.25``, also 25%; raises InputError for another form."""
    return _pairs(texts, read_number, option, form)


def _pairs(texts: Iterable[str], read: Callable[[str], Value], option: str, form: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if name in values:
            raise InputError(f"{option}: must name each once, {name} comes again")
        try:
            values[name] = read(value)
        except ValueError:
            separator = ""
        if not separator or not name:
            raise InputError(f"{option}: must be {form}, not {text!r}")
    return values


def natural(capacity: Mapping[str, Amount], resources: tuple[Resource, ...], where: str) -> dict[str, float]:
    """Return amounts in what each resource is counted in; 256Gi of a memory in MiB is 262144.

    Raises InputError for a resource that is not there, and for a suffix that it does not have.
    """
    counted = {resource.name: resource.of for resource in resources}
    strangers = [name for name in capacity if name not in counted]
    if strangers:
        raise InputError(f"{where}: the fleet has {', '.join(counted)}, and no {strangers[0]}")
    return {name: amount_in(amount, counted[name], f"{where}, {name}") for name, amount in capacity.items()}


def amount_number(resource: Resource, units: float) -> str:
    """Return how much so many units are, in ``resource.of``: ``0.5`` or ``4,096``."""
    amount = units * resource.unit
    return f"{amount:,.10g}" if amount >= MANY else f"{amount:g}"


def amount_words(resource: Resource, units: float) -> str:
    """Return how much so many units are, and of what: ``0.5 cores``, ``1 core``, ``4,096 MiB``, or a number alone."""
    number, of = amount_number(resource, units), resource.of
    if of in ("", "units", resource.name, f"{resource.name}s"):
        return number
    return f"{number} {of.removesuffix('s') if number == '1' and of.isalpha() else of}"


def largest_words(resource: Resource, asked: int, largest: int) -> str:
    """Return what the largest machine has, in units, and the amount that was probably meant where a byte unit was not.

    128 typed for a memory in MiB is 128 MiB, and 128G is 10^9-fold: Slurm's 128G, and most people's, is 128Gi.
    """
    said, size = amount_number(resource, largest), {**BYTES, "bytes": 1}.get(resource.of)
    if size is None or not largest:
        return said
    there, wanted = (units * resource.unit * size for units in (largest, asked))  # bytes
    for letter in "TG":
        number = math.ceil(there / DECIMAL[letter])
        whole = math.floor(number * DECIMAL[letter] / size / resource.unit + GRACE) == largest
        if number < MANY and whole and wanted <= number * BINARY[f"{letter}i"]:
            return (f"{amount_words(resource, largest)} ({number}{letter} counts in powers of 1000; did you mean "
                    f"{number}{letter}i?)")
    bare = there / size
    meant = next((f"{bare:g}{suffix}" for suffix, larger in BINARY.items()  # machines of some GiB are no mistake
                  if size < DECIMAL["G"] and larger > size and wanted <= bare * larger <= MACHINE_BYTES_MAX), "")
    if meant and bare == int(bare):
        return f"{amount_words(resource, largest)} (did you mean {meant}?)"
    return amount_words(resource, largest) if wanted > MANY * there else said


def bare_words(capacity: Mapping[str, Amount], resources: tuple[Resource, ...]) -> str:
    """Return in what the amounts of bytes are counted that were given as numbers alone; empty where none were."""
    of = {resource.name: resource.of for resource in resources if resource.of in BYTES}
    said = [f"{name} {amount:g} {of[name]}" for name, amount in capacity.items()
            if name in of and not isinstance(amount, str)]
    return f" ({', '.join(said)}: 256Gi and the like name their unit)" if said else ""


def same_resources(first: tuple[Resource, ...], second: tuple[Resource, ...], what: str) -> None:
    """Raise InputError unless both tuples name the same resources in the same units and order."""
    if first != second:
        raise InputError(f"{what}: resources must be the same in the same units: "
                         f"{describe(first)} against {describe(second)}")


def describe(resources: tuple[Resource, ...]) -> str:
    """Return the resources as a phrase, such as ``cpu (1e-08 of the largest machine)``."""
    return ", ".join(f"{resource.name} ({resource.unit:g} {resource.of})" for resource in resources)
