"""Parses the fields of a table: amounts with units, instants and durations."""
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from subak.quantities import CORES, MILLI, SHARES, SLURM_BYTES
from subak.resources import Resource


class AmountUnit(NamedTuple):
    """What one of it is, and how the workload counts it."""

    size: float  # in *of*
    of: str
    unit: float  # of the workload's amounts, in *of*
    suffixes: Mapping[str, float] = MappingProxyType({})  # sizes that a field may name itself, in *of*


MIB = 2.0**20
# A letter alone is 1024-fold, as in Slurm; k, kB, MB ... are decimal
SUFFIXES = {name: size / MIB for name, size in SLURM_BYTES.items()}
AMOUNT_UNITS: dict[str, AmountUnit] = {
    "units": AmountUnit(1.0, "units", MILLI), "%": AmountUnit(0.01, "units", MILLI, SHARES),
    "cores": AmountUnit(1.0, "cores", MILLI, CORES), "millicores": AmountUnit(MILLI, "cores", MILLI, CORES),
    "GPUs": AmountUnit(1.0, "GPUs", MILLI),
    **{name: AmountUnit(SLURM_BYTES[name] / MIB, "MiB", 1.0, SUFFIXES)
       for name in ("B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB")},
}
AMOUNT = r"^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z%]*)$"


def resource(name: str, unit: str) -> Resource:
    """Return the resource that amounts in a unit are of."""
    kind = AMOUNT_UNITS[unit or "units"]
    return Resource(name, kind.unit, kind.of)


def amount(text: pl.Expr, unit: str) -> pl.Expr:
    """Return amounts in what the unit is of; a field that names its own unit, as 16G does, is read by that."""
    kind = AMOUNT_UNITS[unit or "units"]
    number = text.str.extract(AMOUNT, 1).cast(pl.Float64, strict=False)
    suffix = text.str.extract(AMOUNT, 2)
    sizes = {"": kind.size, **kind.suffixes}
    return number * suffix.replace_strict(sizes, default=None, return_dtype=pl.Float64)
