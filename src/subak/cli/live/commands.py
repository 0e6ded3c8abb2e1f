"""Says what jobs run: their command lines, folders and the names of their variables, from their job files."""
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from subak.json_type import Json
from subak.live.api.errors import ForbiddenError, NotFoundError, UnavailableError
from subak.live.api.models import JobView
from subak.live.jobfile.wrapped import arguments_of, command_text

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

COMMAND_SIZE = 500  # characters of a command that are shown
STAGES_SHOWN = 5  # whose commands are
ASKED_MAX = 40  # jobs whose arguments are asked for, one by one


def facts_of(federation: "Client", job: str, stage: str = "") -> list[tuple[str, str]]:
    """Return what a job runs, or a stage of it, as facts: command, folder, variables without their values."""
    try:
        file = federation.file(job)
    except ForbiddenError:  # who may not look inside a job sees how it stands
        return [("command", "shown only to whoever submitted it")]
    stages = [each for each in _stages(file) if stage in ("", each.get("name", stage))]
    shown = [(f"command of {each['name']}" if len(stages) > 1 else "command",
              command_text(each["command"], COMMAND_SIZE)) for each in stages[:STAGES_SHOWN]]
    left = [("", f"and {len(stages) - STAGES_SHOWN:,} stages more")] if len(stages) > STAGES_SHOWN else []
    folders = dict.fromkeys(str(each.get("workdir", "")) for each in stages)
    names = dict.fromkeys(name for each in stages for name in each.get("env", {}))
    return [*shown, *left, ("folder", ", ".join(filter(None, folders))), ("variables", ", ".join(names))]


def arguments_by_id(federation: "Client", jobs: Sequence[JobView], size: int) -> dict[str, str]:
    """Return the arguments of those jobs that share a name, by id, each cut to *size*; the first ASKED_MAX of them.

    Nothing of jobs that the user may not look into.
    """
    times = Counter(job.name for job in jobs)
    found: dict[str, dict[str, list[str]]] = {}
    for job in [job for job in jobs if times[job.name] > 1 and len(job.stages) == 1][:ASKED_MAX]:
        try:
            stage, = _stages(federation.file(job.id))
        except (ForbiddenError, NotFoundError):
            continue
        except UnavailableError:  # its master has gone since: none of its jobs would answer
            break
        found.setdefault(job.name, {})[job.id] = arguments_of(stage["command"])
    return {id: text for alike in found.values() for id, text in _shortened(alike, size)}


def _stages(file: dict[str, Json]) -> list[dict[str, Any]]:
    stages: Any = file.get("stages")
    return stages if isinstance(stages, list) else [file]


def _shortened(alike: dict[str, list[str]], size: int) -> Iterator[tuple[str, str]]:
    """Yield arguments of jobs by id; where one is too long, all without the words with which all of them begin."""
    texts = {id: shlex.join(words) for id, words in alike.items()}
    if any(len(text) > size for text in texts.values()):
        same = 0
        while len({tuple(words[:same + 1]) for words in alike.values()}) == 1 and same < max(map(len, alike.values())):
            same += 1
        if same and all(words[same - 1].startswith("-") for words in alike.values()):
            same -= 1  # the option whose value differs
        texts = {id: f"{'… ' * bool(same)}{shlex.join(words[same:])}" for id, words in alike.items()}
    for id, text in texts.items():
        yield id, text if len(text) <= size else f"{text[:size - 1]}…"
