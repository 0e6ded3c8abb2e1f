"""The interface through which parts of a local master's role see the whole."""
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from subak.federation.megha.catalog import Catalog
from subak.federation.megha.local_master.state import LocalMaster
from subak.federation.messages import NOBODY
from subak.live.role.master import MasterRole


class StoredMachine(Struct, frozen=True, array_like=True):
    """A machine on disk."""

    name: str
    identity: str  # of its worker's folder
    capacity: tuple[int, ...]
    attributes: dict[str, str]
    cordoned: bool = False
    gone: bool = False  # another of this name has joined since
    version: int = 0  # how often it was written
    joining: bool = False  # not every local master of the cluster knows it yet
    removed: bool = False  # for good: it may not come back


class LocalRoleBase(MasterRole):
    """The tables of a local master, and what its parts ask of it."""

    local: LocalMaster
    catalog: Catalog
    machines: dict[int, StoredMachine]
    free: list[int]  # numbers of machines that none has
    leaving: set[int]  # machines whose workers have said, on this connection, that they leave for good

    def held(self, owner: int) -> np.ndarray:
        """Return the rows of attempts of a global master, int64[row]."""
        rows = self.local.rows
        held = rows.row[: rows.counts.rows_ever]
        return np.flatnonzero((held["machine"] != NOBODY) & (held["owner"] == owner))

    def write_machine(self, number: int, machine: StoredMachine) -> None:
        """Note a machine on disk, and let the local master know what it has."""
        raise NotImplementedError

    def end_rows(self, rows: Iterable[int], reason: int) -> int:
        """End attempts that run, or begin; return how many those are."""
        raise NotImplementedError

    def end_fenced(self) -> None:
        """End what global masters have begun from stores from which others have taken over."""
        raise NotImplementedError

    def note_for(self, owner: int) -> None:
        """Take it that a global master, which was removed, has seen all that is known here."""
        raise NotImplementedError
