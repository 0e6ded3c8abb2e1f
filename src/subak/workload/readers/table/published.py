"""Published tables of jobs, whose columns are declared here, so that no `--map` is needed."""
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from subak.tables import Provenance
from subak.workload.readers.conversion import Conversion, Reader
from subak.workload.readers.files.delimited import Dialect, column_names
from subak.workload.readers.files.stream import Advance, single_file
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.table.jobs import read
from subak.workload.readers.table.submissions import Beside, submissions_of


class Published(NamedTuple):
    """A table as it was published."""

    name: str
    summary: str  # what the file is, for help texts
    origin: str
    licence: str
    map: tuple[str, ...]  # as --map has it
    names: tuple[str, ...] = ()  # of its columns, where it has no line of them
    also: Mapping[str, str] = MappingProxyType({})  # what is mapped too, by the column, where the file has it
    gang: bool = False  # whether the tasks of a row start together
    has_clocks: bool = False  # whether its times may name no zone
    beside: Beside | None = None  # a table of jobs, where its rows are their tasks


def reader_of(table: Published) -> Reader:
    """Return the reader of a published table; its options are those of a table, but for the names of columns."""
    files = single_file if table.beside is None else table.beside.files

    def read_it(source: Path, options: Options, advance: Advance) -> Conversion:
        path, *jobs = files(source)
        there = () if not table.also else column_names(path, Dialect(quoted=True))
        also = tuple(text for column, text in table.also.items() if column in there)
        joined = submissions_of(jobs[0], table.beside, options, advance) if table.beside and jobs else None
        found = read(path, msgspec.structs.replace(
            options, columns=table.map + also, names=table.names, gang=table.gang), advance, joined)
        remarks = found.remarks | (table.beside.absent if table.beside and not jobs else {})
        origin = f"file {' and '.join(each.name for each in (path, *jobs))}: {table.origin}"
        said = Provenance(table.name, origin, table.licence,
                          {**found.workload.provenance.notes, "remarks": remarks},
                          found.workload.provenance.calendar)
        return replace(found, workload=replace(found.workload, provenance=said), remarks=remarks)

    zones = ("zone",) if table.has_clocks else ()
    return Reader(table.summary, files, read_it,
                  frozenset({"blanks", "max_lost", *DATED, *zones}))
