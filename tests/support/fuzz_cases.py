"""What the fuzz suite is made of: a case is one call of the command line with one mistake in it.

Every case names the rule that it breaks, and is made so that it breaks it; where an input may be in order (it is odd,
not wrong) the case is `odd`, and only the way it ends is looked at. Everything drawn is drawn from the case's name.
"""
import gzip
import lzma
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Of a file; None: a folder stands in its place; a function is called when the file is written.
Content = bytes | str | Callable[[], bytes] | None
Damage = Callable[[bytes, random.Random], bytes]

# Texts that are no number, or none that a trace may hold where a finite number of 0 or more is asked for.
NO_NUMBERS = ("x", "nan", "NaN", "inf", "-inf", "1e400", "0x10", "1;5", "--1", "1e", "\u0663", "1_0", "9" * 400, "1.2.3",
              "None", "'1'")
NEGATIVE = ("-1", "-0.5", "-1e-9", "-9223372036854775809")
NO_WHOLE = ("1.5", "1e3", "9223372036854775808", "18446744073709551616", "99999999999999999999")


@dataclass(frozen=True)
class Case:
    """One call: its files below a folder of its own, in which it is run, and its arguments."""

    name: str  # a path such as swf/submit/nan; no two alike
    arguments: tuple[str, ...]
    files: Mapping[str, Content] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()  # files and folders without any permission
    odd: bool = False  # it may be in order

    def build(self, folder: Path) -> None:
        """Write the files below *folder*."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir(exist_ok=True)
            else:
                made = content() if callable(content) else content
                path.write_bytes(made.encode() if isinstance(made, str) else made)


def drawn(name: str) -> random.Random:
    """Return the random numbers of a name."""
    return random.Random(name)


def packed(text: bytes, form: str) -> bytes:
    """Return *text* plain, or compressed as gz or xz."""
    return {"": lambda: text, ".gz": lambda: gzip.compress(text, 1, mtime=0),
            ".xz": lambda: lzma.compress(text, preset=0)}[form]()


def with_field(lines: Iterable[str], place: int, value: str, separator: str, name: str) -> str:
    """Return the lines with one field, of a drawn line, replaced."""
    rows = [line.split(separator) for line in lines]
    row = drawn(name).randrange(len(rows))
    rows[row][place] = value
    return "".join(f"{separator.join(each)}\n" for each in rows)


def short(value: object) -> str:
    """Return a value as part of a case's name."""
    text = str(value)
    text = text if len(text) <= 24 else f"{text[:12]}..{len(text)}"
    return "".join(letter if letter.isascii() and letter.isprintable() and letter not in " /[]:{}" else "_"
                   for letter in text) or "nothing"


def numbered(cases: Iterable[Case]) -> list[Case]:
    """Return the cases with a number behind names that occur twice."""
    seen: dict[str, int] = {}
    found = []
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        name = case.name if seen[case.name] == 1 else f"{case.name}-{seen[case.name]}"
        found.append(Case(name, case.arguments, case.files, case.unreadable, case.odd))
    return found


# What may befall any file


def _cut(share: float) -> Damage:
    return lambda whole, _: whole[: max(1, int(len(whole) * share))]


def _flipped(whole: bytes, draws: random.Random) -> bytes:
    """Flip a bit of the middle half: of compressed data the check sum no longer agrees."""
    place = draws.randrange(len(whole) // 4, 3 * len(whole) // 4)
    return whole[:place] + bytes([whole[place] ^ (1 << draws.randrange(8))]) + whole[place + 1:]


NO_TEXT: dict[str, Damage] = {
    "nothing": lambda whole, draws: b"",
    "newlines": lambda whole, draws: b"\n\r\n \n\n",
    "junk": lambda whole, draws: draws.randbytes(5000),
    "bytes": lambda whole, draws: bytes(range(256)) * 4,
    "nuls": lambda whole, draws: b"\0" * 3000,
    "utf-16": lambda whole, draws: whole.decode().encode("utf-16"),
    "utf-32": lambda whole, draws: whole.decode().encode("utf-32"),
    "html": lambda whole, draws: b"<!DOCTYPE html>\n<html><body>404: not found</body></html>\n",
    "zip": lambda whole, draws: b"PK\x03\x04\x14\0\0\0\x08\0" + draws.randbytes(500),
    "bzip2": lambda whole, draws: b"BZh91AY&SY" + draws.randbytes(500),
    "parquet": lambda whole, draws: b"PAR1" + draws.randbytes(300) + b"PAR1",
    "one-long-line": lambda whole, draws: b"a" * 200_000,
    "one-word-a-line": lambda whole, draws: b"word\n" * 500,
    "git-lfs": lambda whole, draws: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n",
}
NO_GZIP: dict[str, Damage] = {
    "cut-at-once": _cut(0.0), "cut-early": _cut(0.1), "cut-in-the-middle": _cut(0.5), "cut-late": _cut(0.98),
    "cut-by-one": lambda whole, draws: whole[:-1], "flipped": _flipped,
    "junk-behind": lambda whole, draws: whole + b"more of it",
}
NO_XZ = {name: damage for name, damage in NO_GZIP.items() if name != "cut-at-once"}
