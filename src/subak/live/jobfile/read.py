"""Reads a job from the text of a job file."""
import contextlib
from pathlib import Path
from typing import NamedTuple

from subak.errors import InputError
from subak.live.jobfile.fields import fill
from subak.live.jobfile.form import JobForm
from subak.live.jobfile.mistakes import Mistakes, named
from subak.live.jobfile.normal import normalised
from subak.live.jobfile.spec import JobSpec
from subak.live.jobfile.tree import TEXT_BYTES_MAX, Node, read_tree, tree_of_json
from subak.output.plain import plain


class Read(NamedTuple):
    """A job, and in which line of its file each field is, such as ``stages[1].resources.memory``."""

    spec: JobSpec
    lines: dict[str, int]


def read_job(text: str, file: str = "job") -> JobSpec:
    """Return the job that a text in YAML or JSON describes; see docs/jobs.md.

    Raises InputError with a line of words for each mistake, 20 at most: file, line, field, rule and value.
    """
    tree = tree_of_json(text)
    if tree is not None:
        with contextlib.suppress(InputError):  # said below, with lines
            return _filled(tree, Mistakes(None))
    return _filled(read_tree(text, plain(file)), Mistakes(file))


def read_with_lines(text: str, file: str = "job") -> Read:
    """Return the job, and where its fields are, for errors that only a federation can find."""
    return job_of_tree(read_tree(text, plain(file)), file)


def read_job_file(path: Path) -> JobSpec:
    """Return the job that a file describes. Raises InputError as `read_job`, and for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(TEXT_BYTES_MAX + 1)
        return read_job(data.decode(), str(path))
    except OSError as error:
        raise InputError(f"{plain(str(path))}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{plain(str(path))}:{line}: must be text in UTF-8") from None


def job_of_tree(tree: Node, file: str | None) -> Read:
    """Return the job of a tree; *file* is None where lines mean nothing."""
    mistakes = Mistakes(file)
    return Read(_filled(tree, mistakes), {named(field): line for field, line in mistakes.lines.items() if field})


def _filled(tree: Node, mistakes: Mistakes) -> JobSpec:
    form = fill(JobForm, tree, mistakes)
    if form is None:
        mistakes.raise_any()
    assert form is not None
    return normalised(form, mistakes)
