"""Readers of traces, one file or room per format; new ones are listed here."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loads polars; who asks for the names of formats does without
    from subak.workload.readers.conversion import Reader

FORMATS = {  # the module, or the room, that reads each
    "google2011": "google.google2011", "google2019": "google.google2019", "alibaba2018": "alibaba.alibaba2018",
    "openb": "alibaba.openb", "dlrm2025": "alibaba.dlrm2025",
    "azure": "microsoft.azure", "philly": "microsoft.philly", "helios": "slurm.helios", "rumen": "hadoop.rumen",
    "swim": "hadoop.swim", "tr": "tr", "swf": "swf", "sacct": "slurm.sacct", "pods": "kubernetes", "table": "table",
    "supercloud": "slurm.supercloud", "acme": "table.acme", "pai2020": "table.pai2020", "fdata": "table.fdata",
    "pm100": "table.pm100", "in2p3": "table.in2p3",
    "wfformat": "wfformat", "frontier": "frontier",
}


ALIASES = {"slurm": "sacct", "kubernetes": "pods", "k8s": "pods"}  # what else people call a format


class _Readers(Mapping[str, "Reader"]):
    """The readers by format; each is loaded when it is asked for."""

    def __getitem__(self, name: str) -> Reader:
        if name not in FORMATS:
            raise KeyError(name)
        reader: Reader = import_module(f"{__name__}.{FORMATS[name]}").READER
        return reader

    def __iter__(self) -> Iterator[str]:
        return iter(FORMATS)

    def __len__(self) -> int:
        return len(FORMATS)


READERS: Mapping[str, Reader] = _Readers()
