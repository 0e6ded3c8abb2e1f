"""Wraps the commands of scripts that travel with their job and of reruns, and says what a wrapped command runs."""
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from subak.live.jobfile.spec import INTERPRETERS

SHELL = ("/bin/sh", "-c")
# The machine has no copy of the script. The shell hands the text, its $0, to the interpreter as an open file, and makes
# way for it: signals and exit codes are the script's own, and nothing is left behind.
FEED = 'exec "$@" /dev/fd/3 3<<SCRIPT\n$0\nSCRIPT\n'
# Python looks for modules beside a script where it lies, first of all, and not beside /dev/fd/3.
BESIDE = 'PYTHONPATH=$1${PYTHONPATH:+:$PYTHONPATH}; export PYTHONPATH; shift; '
# Hands a command the number that stands at the place of its own: $1 says how many there are.
RENUMBERED = ('count=$1; shift; eval "SUBAK_TASK_INDEX=\\${$((SUBAK_TASK_INDEX + 1))}"; export SUBAK_TASK_INDEX; '
              'shift "$count"; exec "$@"')


def fed(script: str, beside: str, interpreter: Sequence[str]) -> list[str]:
    """Return the command that hands a script's text to its interpreter; modules are in the folder *beside*, if any."""
    return [*SHELL, (BESIDE if beside else "") + FEED, script, *([beside] if beside else []), *interpreter]


def renumbered(tasks: Sequence[int], command: Sequence[str]) -> list[str]:
    """Return the command of which the first task finds the first of these numbers in SUBAK_TASK_INDEX, and so on."""
    return [*SHELL, RENUMBERED, "sh", str(len(tasks)), *map(str, tasks), *command]


def command_text(command: Sequence[str], size: int) -> str:
    """Return a command line as a shell reads it, cut to *size*; of a script that travels its interpreter and lines."""
    words = _renumbered_of(command)
    if tuple(words[:2]) == SHELL and words[2:] and words[2] in (FEED, BESIDE + FEED):
        lines = len(words[3].splitlines())
        text = f"{shlex.join(words[4 + words[2].startswith(BESIDE):])} (its script of {lines:,} lines is in the job)"
    else:
        text = shlex.join(words)
    return text if len(text) <= size else f"{text[:size - 1]}…"


def arguments_of(command: Sequence[str]) -> list[str]:
    """Return the arguments of the script that a command runs, or of its program; none of a script that travels."""
    words = _renumbered_of(command)
    if tuple(words[:2]) == SHELL and words[2:] and words[2].endswith(FEED):
        return []
    script = next((place for place, word in enumerate(words) if PurePath(word).suffix in INTERPRETERS), 0)
    return words[script + 1:]


def _renumbered_of(command: Sequence[str]) -> list[str]:
    """Return what a rerun of some tasks runs; of a rerun of a rerun, too."""
    words = [*command]
    while tuple(words[:3]) == (*SHELL, RENUMBERED) and words[4].isdecimal():
        words = words[5 + int(words[4]):]
    return words
