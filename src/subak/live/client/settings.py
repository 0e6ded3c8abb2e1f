"""Finds a federation's address and token: in a named file, the environment, or a default file."""
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from subak.errors import InputError
from subak.live.tokens import PEOPLE, checked_token, read_token

ADDRESS, TOKEN = "SUBAK_ADDRESS", "SUBAK_TOKEN"  # of the environment; several addresses are separated by commas
FEDERATION = "SUBAK_FEDERATION"  # of the environment: the folder of a federation that `subak up` has started
FOLDER = "subak-federation"  # where it is looked for, and made, where nothing else is said
CLIENT, PID = "client.toml", "up.pid"  # in the folder; the latter of a `subak up`, which may have ended
CA = "SUBAK_CA"  # of the environment: a file of authorities
SOCKET = "unix:"  # before the file of a socket, where the kernel says who asks
DEFAULT_ADDRESS = "http://127.0.0.1:7433"


class ClientFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What client.toml may say."""

    address: Annotated[str | list[str], Meta(description="Of one master, or of several.")] = []
    token_file: str = ""  # relative to the folder of this file
    ca: str = ""  # likewise: of the authorities that masters' certificates are of; left out: those of this machine
    revoked: str = ""  # likewise: a list of revoked certificates (a CRL in PEM)


class ClientSettings(Struct, frozen=True):
    """Addresses of masters, which are tried in turn, and the token."""

    addresses: tuple[str, ...]
    token: str
    folder: str = ""  # in which `subak up` keeps them, where it does
    ca: str = ""  # a file of the authorities that count for https; left out: those of this machine
    revoked: str = ""  # a file of revoked certificates

    def __repr__(self) -> str:
        """Say all but the token."""
        return f"ClientSettings({self.addresses})"

    def is_stopped(self) -> bool:
        """Whether `subak up` keeps the masters, and does not run now."""
        if not self.folder:
            return False
        try:
            os.kill(int(Path(self.folder, PID).read_text().split()[0]), 0)
        except (FileNotFoundError, ProcessLookupError):
            return True
        except (OSError, ValueError, IndexError):  # another user's, or nothing that can be told
            return False
        return False


def read_settings(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> ClientSettings:
    """Return where to ask. What *file* says comes first, then SUBAK_ADDRESS and SUBAK_TOKEN, then `usual_file`.

    Raises InputError for what is no address or no token, and where no token is found.
    """
    named = _read(file) if file is not None else ClientFile()
    home = usual_file(environment)
    usual = _read(home) if file is None and home.exists() else ClientFile()
    spoken = [each.strip() for each in environment.get(ADDRESS, "").split(",") if each.strip()]
    addresses = _several(named.address) or spoken or _several(usual.address) or [DEFAULT_ADDRESS]
    if named.token_file:
        token = _token(file or home, named)
    elif TOKEN in environment:
        token = checked_token(environment[TOKEN], PEOPLE, TOKEN)
    elif usual.token_file:
        token = _token(home, usual)
    elif all(each.startswith(SOCKET) for each in addresses):
        token = ""
    else:
        raise InputError(_no_token(file, home if home.exists() else None, bool(spoken)))
    source = (file or home).absolute().parent
    said = named if file is not None else usual
    ca = environment.get(CA, "") if file is None or not named.ca else ""
    if not ca and said.ca:
        ca = str(source / Path(said.ca).expanduser())
    revoked = str(source / Path(said.revoked).expanduser()) if said.revoked else ""
    is_kept = addresses == _several(said.address) and (source / PID).exists()
    return ClientSettings(tuple(checked_address(each) for each in addresses), token, str(source) if is_kept else "", ca,
                          revoked)


def _no_token(file: Path | None, home: Path | None, has_address: bool) -> str:
    """Return what is said where no token is found: of a file that names none, else what to type."""
    if (named := file or home) is not None:
        return f"{named}: names no token; add token_file = \"...\""
    if has_address:
        return f"{TOKEN}: must be set beside {ADDRESS}"
    return (f"no federation runs from this folder: there is no {Path(FOLDER, CLIENT).absolute()} of yours; subak up "
            f"--detach starts one; {FEDERATION}=FOLDER names another's")


def usual_file(environment: Mapping[str, str]) -> Path:
    """Return the client.toml of the federation that SUBAK_FEDERATION names, else of one in this folder, else a user's.

    One in this folder counts only if it is the user's own: others may have put a folder there. Raises InputError where
    SUBAK_FEDERATION names a folder without one.
    """
    if environment.get(FEDERATION):
        named = Path(environment[FEDERATION], CLIENT)
        if not named.exists():
            raise InputError(f"{FEDERATION}: there is no {named}; `subak up` makes one")
        return named
    here = Path(FOLDER, CLIENT)
    try:
        if here.stat().st_uid == os.geteuid():
            return here
    except OSError:
        pass
    return default_file(environment)


def usual_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of `subak up` and `subak down` where none is named: that of SUBAK_FEDERATION, else one here."""
    return Path(environment.get(FEDERATION) or FOLDER)


def default_file(environment: Mapping[str, str]) -> Path:
    """Return where client.toml is looked for."""
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME") or "/", ".config")  # noqa: PTH118
    return Path(base) / "subak" / "client.toml"


def checked_address(address: str) -> str:
    """Return an address without a slash at its end. Raises InputError for what is none."""
    if address.startswith(SOCKET) and address.isprintable() and len(address) > len(SOCKET):
        return address
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not address.isprintable() or parts.path not in ("", "/") or parts.query or "@" in parts.netloc:
        raise InputError(f"address: must be such as {DEFAULT_ADDRESS}, not {address!r}")
    return address.rstrip("/")


def _several(address: str | list[str]) -> list[str]:
    return [address] if isinstance(address, str) else address


def _token(file: Path, said: ClientFile) -> str:
    return read_token(file.parent / Path(said.token_file).expanduser())


def _read(file: Path) -> ClientFile:
    """Return what a file says. Raises InputError for one that is not there, or says something else."""
    try:
        return msgspec.toml.decode(file.read_bytes(), type=ClientFile)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
