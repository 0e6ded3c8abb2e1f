"""Computes the digest that identifies a run: a hash of everything that its result depends on.

That is the contents of the files that it reads, its scheduler, settings and seed, the code that decides and measures,
and the versions of the libraries that it computes with. Titles, paths, and faces such as pages and the command line are
no part of it.
"""
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.policy_files import is_piped, piped_command, policy_file, policy_name
from subak.workload.samples import workload_folder

DIGEST_DIGITS = 32
# Rooms of the package that no run depends on; that of studies says which runs there are, not what comes of one.
FACES = ("cli", "live", "report", "reproduce", "data", "experiment/study")
LIBRARIES = ("numba", "numpy", "polars", "scipy", "highspy")


class Contents:
    """The digests of files and folders, each read once."""

    def __init__(self) -> None:
        self.known: dict[Path, str] = {}

    def of_file(self, path: Path) -> str:
        """Return the digest of a file. Raises InputError where it cannot be read."""
        if path not in self.known:
            self.known[path] = _held(path)
        return self.known[path]

    def of_folder(self, folder: Path) -> str:
        """Return the digest of a workload's or a fleet's folder: of its tables and its header."""
        if folder not in self.known:
            self.known[folder] = _digest_of([*folder.glob("*.parquet"), *folder.glob("*.toml")], folder)
        return self.known[folder]


def run_digest(one: Scenario, contents: Contents) -> str:
    """Return the digest of the one run of a scenario, whose `resample` is settled. Raises InputError for no file."""
    workload = workload_folder(one.workload)
    fleet = Path(one.fleet) if one.fleet else workload / "fleet"
    name = one.schedulers[0]
    file = policy_file(name)
    files = {key: path for key in ("faults", "failures", "queues") if (path := getattr(one, key))}
    values = {
        **msgspec.structs.asdict(one), "workload": contents.of_folder(workload), "workload_digest": "",
        "fleet": "" if one.machines else contents.of_folder(fleet), "fleet_digest": "",
        "schedulers": _program(name, contents) if file is None else [contents.of_file(file), policy_name(name)],
        **{key: contents.of_file(Path(path)) for key, path in files.items()},
        "code": code_digest(),
    }
    # MessagePack, since JSON has no infinity
    return hashlib.sha256(msgspec.msgpack.encode(values, order="deterministic")).hexdigest()[:DIGEST_DIGITS]


def _program(name: str, contents: Contents) -> str | list[str]:
    """Return a scheduler's name; of one in a process of its own with the digests of the files in its command."""
    if not is_piped(name):
        return name
    files = [path for path in map(Path, piped_command(name)) if path.is_file()]
    return [name, *map(contents.of_file, files)]


@cache
def code_digest() -> str:
    """Return the digest of the code that decides and measures, and of what it computes with."""
    house = Path(__file__).parents[2]
    rooms = tuple(house / room for room in FACES)
    text = _digest_of((path for path in house.rglob("*.py") if not any(map(path.is_relative_to, rooms))), house)
    return hashlib.sha256(" ".join([text, *map(_version, LIBRARIES)]).encode()).hexdigest()[:DIGEST_DIGITS]


def _digest_of(files: Iterable[Path], folder: Path) -> str:
    named = (f"{path.relative_to(folder).as_posix()} {_held(path)}\n" for path in sorted(files))
    return hashlib.sha256("".join(named).encode(errors="surrogateescape")).hexdigest()[:DIGEST_DIGITS]


def _held(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGEST_DIGITS]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return library
