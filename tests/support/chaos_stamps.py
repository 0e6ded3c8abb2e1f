"""What attempts have stamped, and whether that is as it must be: pure functions over lines.

An attempt appends a line to the file of its task when it starts, now and then while it runs, and when it ends; so the
order of the lines is the order in which that happened, whatever clocks say.
"""
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

START, ALIVE, END, TWICE = "start", "alive", "end", "twice"
# As a shell writes them: what, attempt, agent, seconds since the machine was booted. The lock of the task is held by
# the shell alone: one who does not get it runs beside another, whatever anybody says.
SCRIPT = """
file="$STAMPS/$SUBAK_JOB.$SUBAK_TASK_INDEX"
say() { read -r up idle < /proc/uptime; echo "$1 $SUBAK_ATTEMPT $SUBAK_AGENT $up" >> "$file"; }
say start; exec 9> "$STAMPS-locks/$SUBAK_JOB.$SUBAK_TASK_INDEX"; flock -n 9 || say twice
left="$1"; while [ "$left" -gt 0 ]; do sleep 0.1 9>&-; say alive; left=$((left - 1)); done; say end; exit "$2"
"""
BEFORE_S, AFTER_S = 0.5, 5.0  # a kill of an agent may undo an end that it has not noted, or not told
LEASE_PART = 0.8  # the last sign of life was before the kill


class Stamp(NamedTuple):
    """A line."""

    what: str
    attempt: int
    agent: str
    at: float


class Kill(NamedTuple):
    """An agent was killed; or, with *lease_s*, its worker, so that after a lease the machine counts as lost.

    Of what ended *until* then nobody may have heard.
    """

    agent: str
    at: float
    lease_s: float = 0.0
    until: float = math.inf


def read_stamps(folder: Path) -> dict[str, list[Stamp]]:
    """Return the stamps of all tasks, by the task."""
    found = {}
    for file in folder.iterdir():
        rows = [line.split() for line in file.read_text().splitlines()]
        found[file.name] = [Stamp(what, int(attempt), agent, float(at)) for what, attempt, agent, at in rows]
    return found


def overlaps(stamps: Sequence[Stamp]) -> list[str]:
    """Return what shows that two attempts of a task were alive at once, or that one began twice.

    Attempts are numbered for each cluster: one of another machine is another one, whatever its number.
    """
    former: set[tuple[int, str]] = set()
    now, found = (-1, ""), []
    for stamp in stamps:
        if (stamp.attempt, stamp.agent) != now:
            former.add(now)
            now = stamp.attempt, stamp.agent
            if now in former:
                found.append(f"attempt {stamp.attempt} was alive at {stamp.at:.2f} s, after a later one had started")
            elif stamp.what != START:
                found.append(f"attempt {stamp.attempt} says {stamp.what} before it started")
        elif stamp.what == START:
            found.append(f"attempt {stamp.attempt} started twice")
        if stamp.what == TWICE:
            found.append(f"attempt {stamp.attempt} runs at {stamp.at:.2f} s beside another that holds the task's lock")
    return found


def repeated(stamps: Sequence[Stamp], kills: Iterable[Kill]) -> int:
    """Return how many complete runs there were beyond the first that no kill explains."""
    kills = list(kills)
    ends = [place for place, stamp in enumerate(stamps) if stamp.what == END]
    return sum(not any(_explains(kill, stamps[end], stamps[end + 1]) for kill in kills) for end in ends[:-1])


def _explains(kill: Kill, end: Stamp, again: Stamp) -> bool:
    """Whether a kill explains that a task that had come to its end was begun *again*."""
    if kill.agent != end.agent:
        return False
    if kill.lease_s:  # nobody heard of the end before the machine had been silent for a lease
        return kill.until >= end.at >= kill.at - BEFORE_S and again.at >= kill.at + LEASE_PART * kill.lease_s
    return -BEFORE_S <= kill.at - end.at <= AFTER_S


def wrongs(task: str, outcome: str, stamps: Sequence[Stamp], kills: Iterable[Kill], once: bool = False) -> list[str]:
    """Return what is wrong about a task that was reported to have ended with *outcome*, as lines.

    *once*: whether its losses_max is 0, so that nothing starts it again.
    """
    found = overlaps(stamps)
    complete = sum(stamp.what == END for stamp in stamps)
    if outcome == "finished" and not complete:
        found.append("is reported finished, and never ran to its end")
    starts = sum(stamp.what == START for stamp in stamps)
    if once and starts > 1:
        found.append(f"started {starts} times, with losses_max 0")
    again = repeated(stamps, kills)
    if again:
        found.append(f"ran to its end {again} times more, which no kill explains")
    return [f"{task}: {words}" for words in found]


def takeovers(stamps: Mapping[str, Sequence[Stamp]], kills: Sequence[tuple[str, float]], cluster_of: Mapping[str, str],
              in_flight_s: float) -> list[float]:
    """Return the seconds from each kill of an active local master (cluster, when) to the next start in its cluster.

    What starts within *in_flight_s* was ordered by the one that was killed. *cluster_of*: by agent.
    """
    starts: dict[str, list[float]] = {}
    for of_task in stamps.values():
        for stamp in of_task:
            if stamp.what == START:
                starts.setdefault(cluster_of.get(stamp.agent, ""), []).append(stamp.at)
    found = []
    for cluster, at in kills:
        later = [start - at for start in starts.get(cluster, ()) if start - at > in_flight_s]
        if later:
            found.append(min(later))
    return found


def outcomes_of(reported: Mapping[str, str]) -> str:
    """Return how many tasks ended how, in words."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(Counter(reported.values()).items()))
