"""The layouts of what processes send each other, and of what they keep on disk, as lines; and what a change asks for.

A layout is a block: its name, and a line for each field. Fields that come behind the others, with a default, are read
by those that do not know them; a block that is `closed` lists numbers, and any change of it is one of meaning.
"""
import ast
import re
import typing
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from msgspec import NODEFAULT, Struct, structs

from subak.federation import messages
from subak.federation.megha import ledger
from subak.federation.megha.attempts import ROW
from subak.federation.megha.worker import WORKER_ROW
from subak.live.jobfile.spec import JobSpec
from subak.live.people import identity as tokens
from subak.live.process.links import Challenge, Hello, Welcome
from subak.live.role import facts, frames
from subak.live.role.base import SPOKEN
from subak.live.role.facts import ConfigurationFact, Fact, JobFact, MachineFact, ShapeFact
from subak.live.role.global_master.book import ON_DISK, Head, StoredJob
from subak.live.role.global_master.history import Happening
from subak.live.role.global_master.queues import QueuesFact
from subak.live.role.layout import NUMBERING
from subak.live.role.local_role_base import StoredMachine
from subak.live.role.removal import REMOVE
from subak.live.role.store_claims import Refusal
from subak.live.role.worker.worker_role import Identity, Snapshot
from subak.live.role.written_for import WrittenFor
from subak.live.store.sqlite import TABLES

Blocks = dict[str, list[str]]
CLOSED = " (closed)"
SAID = (ShapeFact, ConfigurationFact, MachineFact, JobFact, QueuesFact, tokens.Identity)


def of_wire() -> Blocks:
    """Return the layouts that `WIRE_VERSION` numbers."""
    reasons, entries = _names_of(messages, "REASONS"), [name for name in vars(ledger) if name.startswith("ENTRY_")]
    crossing = sorted(set().union(*SPOKEN.values()))
    return {
        "frames" + CLOSED: [f"{kind.__struct_config__.tag} {kind.__name__}" for kind in typing.get_args(frames.Frame)],
        "messages" + CLOSED: [f"{kind} {messages.KINDS[kind]}: {' '.join(messages.FIELDS[kind])}" for kind in crossing],
        "roles" + CLOSED: list(messages.ROLES),
        "reasons" + CLOSED: reasons,
        "entries" + CLOSED: sorted(f"{getattr(ledger, name)} {name}" for name in entries),
        "facts" + CLOSED: [f"{getattr(facts, name)} {name}" for name in
                           ("SHAPE", "CONFIGURATION", "MACHINE", "JOB", "QUEUES")],
        "later facts": [f"{facts.IDENTITY} IDENTITY = skipped by those who do not know it"],
        "questions" + CLOSED: [repr(words) for words in (frames.LOGS, frames.TAIL, REMOVE)],
        "numbering" + CLOSED: [str(NUMBERING)],
        "MESSAGE": rows(messages.MESSAGE), "ENTRY": rows(ledger.ENTRY),
        **of_structs([*typing.get_args(frames.Frame), Challenge, Hello, Welcome, *SAID])}


def of_store() -> Blocks:
    """Return the layouts that `STORE_VERSION` numbers: of the bodies in the store of a master."""
    return {"tables" + CLOSED: list(TABLES), "ON_DISK" + CLOSED: rows(ON_DISK),
            "WrittenFor" + CLOSED: [f"{name}: {plain(kind)}" for name, kind in
                                    typing.get_type_hints(WrittenFor).items()],
            **of_structs([StoredJob, Head, tokens.Identity, JobSpec, StoredMachine, QueuesFact, ShapeFact,
                          ConfigurationFact, Happening, Refusal, frames.Claim])}


def of_worker() -> Blocks:
    """Return the layouts that `STATE_VERSION` numbers: of what a worker keeps."""
    return {"ROW" + CLOSED: rows(ROW), "WORKER_ROW" + CLOSED: rows(WORKER_ROW),
            **of_structs([Identity, Snapshot, Fact, *SAID])}


def rows(kind: np.dtype) -> list[str]:
    """Return the fields of a row; one that is added behind has the default zero."""
    return [f"{name}: {kind[name].str[1:]}" for name in kind.names]


def of_structs(kinds: Iterable[type[Struct]]) -> Blocks:
    """Return the layouts of records, and of those within them."""
    found: Blocks = {}
    left = list(kinds)
    while left:
        kind = left.pop(0)
        if kind.__name__ in found:
            continue
        found[kind.__name__] = []
        for field in structs.fields(kind):
            default = "" if field.required else f" = {field.default!r}" if field.default is not NODEFAULT else " = ..."
            found[kind.__name__].append(f"{field.encode_name}: {plain(field.type)}{default}")
            left += [each for each in inner(field.type) if isinstance(each, type) and issubclass(each, Struct)]
    return found


def inner(kind: object) -> list[object]:
    """Return a type, and those that it is made of."""
    return [kind, *(each for part in typing.get_args(kind) for each in inner(part))]


def plain(kind: object) -> str:
    """Return a type in words, without the modules that its parts are from."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", repr(kind)).replace("<class '", "").replace("'>", "")


def _names_of(module: object, words: str) -> list[str]:
    """Return the names of the constants that count the entries of a table of words: not the words themselves."""
    for each in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(each, ast.Assign) and ast.unparse(each.value) == f"range(len({words}))":
            return [name.id for name in each.targets[0].elts]
    raise AssertionError(f"nothing counts {words}")


# -- what is kept of them ----------------------------------------------------------------------------------------------


def text_of(version: str, blocks: Blocks) -> str:
    """Return layouts as a file keeps them."""
    return "\n".join([f"version {version}", *(line for name, fields in blocks.items()
                                                for line in ("", name, *(f"    {field}" for field in fields)))]) + "\n"


def read_text(text: str) -> tuple[str, Blocks]:
    """Return the version, and the layouts, of a file."""
    blocks: Blocks = {}
    head, *lines = text.splitlines()
    for line in lines:
        if line.startswith("    "):
            blocks[name].append(line[4:])  # noqa: F821 - a block's name comes before its fields
        elif line:
            name = line
            blocks[name] = []
    return head.removeprefix("version "), blocks


def needed(before: Blocks, now: Blocks) -> str:
    """Return which number a change of layouts raises: "none", "minor" or "major"."""
    if before == now:
        return "none"
    for name, fields in before.items():
        later = now.get(name)
        if later is None or later[: len(fields)] != fields or (name.endswith(CLOSED) and later != fields):
            return "major"
        if name not in ("MESSAGE", "ENTRY") and not all(" = " in field for field in later[len(fields):]):
            return "major"
    return "major" if any(name.endswith(CLOSED) for name in now.keys() - before.keys()) else "minor"


def is_raised(before: tuple[int, ...], now: tuple[int, ...], number: str) -> bool:
    """Whether a version was raised as a change needs: major, or one and no more; a version of one number by one."""
    if len(before) == 1 or number == "none":
        return now == (before if number == "none" else (before[0] + 1,))
    return now in ((before[0], before[1] + 1), (before[0] + 1, 0)) if number == "minor" else now == (before[0] + 1, 0)
