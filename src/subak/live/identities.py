"""The names of processes in certificates: `subak://FEDERATION/ROLE/NAME`."""
import re
from collections.abc import Iterable
from typing import NamedTuple

GLOBAL_MASTER, LOCAL_MASTER, STANDBY, WORKER = "global-master", "local-master", "standby", "worker"
ROLES = GLOBAL_MASTER, LOCAL_MASTER, STANDBY, WORKER
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")  # of a federation, a global master, a cluster
MACHINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
URI = re.compile(rf"subak://({NAME.pattern})/({'|'.join(ROLES)})/({MACHINE_NAME.pattern})")


class Identity(NamedTuple):
    """A process of a federation: a global master by its name, a local master and a standby by their cluster's."""

    federation: str
    role: str
    name: str

    @property
    def uri(self) -> str:
        """Return it as certificates say it."""
        return f"subak://{self.federation}/{self.role}/{self.name}"

    def __str__(self) -> str:
        """Return it as messages say it."""
        return f"{self.role} {self.name} of {self.federation}"


def identity_in(names: Iterable[str]) -> Identity | None:
    """Return the identity that the URIs of a certificate name, or None where they name none, or several."""
    found = [match for match in map(URI.fullmatch, names) if match]
    return Identity(*found[0].groups()) if len(found) == 1 else None
