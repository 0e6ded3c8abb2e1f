"""Lists the mistakes in a job file, each with its line, field, rule and value."""
from subak.errors import InputError
from subak.output.plain import plain, shortened

LISTED_MISTAKES = 20
Field = tuple[str | int, ...]  # the way to a value: ("stages", 1, "resources", "memory")


def named(field: Field) -> str:
    """Return a field as people write it, such as ``stages[1].resources.memory``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{shortened(part, 80)}" for part in field)
    return plain(text.removeprefix("."))


class Mistakes:
    """Collects mistakes; of a field, with all that is in it, only what is said first."""

    def __init__(self, file: str | None) -> None:
        """*file* is named with each mistake and its line; None: there is none, and lines mean nothing."""
        self.file = None if file is None else plain(file)
        self.lines: dict[Field, int] = {(): 1}
        self.found: list[tuple[int, int, str]] = []  # line, number, words
        self.wrong: set[Field] = set()  # fields with a mistake in them

    def add(self, field: Field, rule: str, line: int | None = None) -> None:
        """Note that a value breaks a rule, unless one in it does; *line* is that of its key where it is not known."""
        if field in self.wrong:
            return
        self.wrong.update(field[:end] for end in range(1, len(field) + 1))
        line = self.line_of(field) if line is None else line
        place = [] if self.file is None else [f"{self.file}:{line}"]
        self.found.append((line, len(self.found), ": ".join([*place, *([named(field)] if field else []), rule])))

    def line_of(self, field: Field) -> int:
        """Return where a field is, or else what it would be in."""
        while field not in self.lines:
            field = field[:-1]
        return self.lines[field]

    def raise_any(self) -> None:
        """Raise InputError with a line for each mistake, by lines of the file, if there is any."""
        if not self.found:
            return
        words = [words for _, _, words in sorted(self.found)[:LISTED_MISTAKES]]
        if len(self.found) > LISTED_MISTAKES:
            words.append(f"and {len(self.found) - LISTED_MISTAKES:,} mistakes more")
        raise InputError("\n".join(words))
