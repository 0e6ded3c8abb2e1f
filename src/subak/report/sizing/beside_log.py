"""Says whether the log kept the objectives itself, and whether the simulation is like the log."""
from collections.abc import Iterator

from subak.experiment.sizing.answer import Recorded, Size, Sized, Sizing
from subak.measures.objective import IN_SECONDS, Objective
from subak.report.number_text import counted, share_text
from subak.report.sizing.objective_words import objectives_of, said_beside, value_text, who_of

APART = 1.5  # times: a simulation further off does not reproduce the log; answers move by machines from there on
APART_MIN = 60.0  # seconds; shorter waits are alike
WORDS_OF = ("cores", "GPUs")  # that name their resource


def beside_log(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Say what the objectives came to in the log, how much it held at once, and how near the simulation is to it."""
    log = sizing.recorded
    if log is None:
        if sizing.has_log and sizing.load != 1.0:
            yield (f"At {sizing.load:g} times the load there is no log to set the simulation beside: size without "
                   "--load says whether it reproduces the log.")
        return
    said = "; ".join(f"{each.measure}.{each.statistic} {value_text(each)(value)}"
                     for each, value in zip(objectives_of(sizing), log.values, strict=True))
    of = "" if log.tasks == sizing.tasks else f", of the {log.tasks:,} of {sizing.tasks:,} tasks whose start it knows"
    if log.before:
        of += (f", of the {sizing.slurm_jobs:,} Slurm jobs that arrive in the window and {log.before:,} that waited as "
               f"it began")
    yield f"The log itself, under its own scheduler on the machines of that time: {said}{of}.{_kept(sizing, log)}"
    if not answer.as_in_log:
        return
    most = ", ".join(_held(*each) for each in zip(sizing.resources, log.most, log.of, strict=True) if each[1])
    yield (f"At most its jobs held {most} at once, as much as {counted(answer.as_in_log, 'such machine')} "
           f"{'has' if answer.as_in_log == 1 else 'have'}{_more(answer)}.")
    yield from _like(sizing, answer, log)


def _kept(sizing: Sizing, log: Recorded) -> str:
    """Say of each objective on a share of jobs whether the log's jobs keep it; empty where there is none such."""
    said = ""
    for each, value, share in zip(objectives_of(sizing), log.values, log.within, strict=False):
        if share is None:
            continue
        bound = value_text(each)(each.bound)
        which = "it" if len(sizing.objectives) == 1 else each.text
        said += (f" The log's own {who_of(each, _tasks(sizing))} {'keep' if each.holds(value) else 'do not keep'} "
                 f"{which}: {share_text(share)} within {bound}.")
    return said


def _like(sizing: Sizing, answer: Sized, log: Recorded) -> Iterator[str]:
    """Set the objectives of the log beside those of the simulation on as many machines, and judge that."""
    at, objectives = _at_peak(answer), objectives_of(sizing)
    if at is None or len(at.values) != len(objectives):
        return
    both = [(each, value.mean, was) for each, value, was in zip(objectives, at.values, log.values, strict=True)]
    said = "; ".join(said_beside(each, _tasks(sizing), was, value) for each, value, was in both)
    has = bool(sizing.replays and sizing.replays[sizing.answers.index(answer)])
    again = " Replay the log with the command below." if has else ""
    yield f"On {counted(at.machines, 'machine')} (the fewest that hold the log's peak) {said}.{again}"
    if unlike_log(sizing, answer):
        which = ("the command below tries other schedulers and says which is nearest to the log: size with that one"
                 if has else "try other values of --scheduler")
        yield (f"More than {APART:g} times apart: the simulation does not reproduce the log. Before you rely on the "
               f"answer, {which}.")


def unlike_log(sizing: Sizing, answer: Sized) -> bool:
    """Whether the simulation on as many machines as the log used says of an objective more than APART times off."""
    at = _at_peak(answer)
    if sizing.recorded is None or at is None:
        return False
    both = zip(objectives_of(sizing), at.values, sizing.recorded.values, strict=False)
    return any(is_apart(each, value.mean, log) for each, value, log in both)


def is_apart(objective: Objective, one: float, other: float) -> bool:
    """Whether two values of an objective are more than APART times apart, and not both short."""
    less, more = sorted((one, other))
    least = APART_MIN if objective.measure in IN_SECONDS else 0.0
    return more > APART * less and more >= least


def replay(sizing: Sizing) -> str:
    """Return the command that sets a log beside its simulation, of the best answer; empty where no kind is named."""
    places = sorted(range(len(sizing.replays)), key=lambda place: place != sizing.best)
    return next((sizing.replays[place] for place in places if sizing.replays[place]), "")


def _at_peak(answer: Sized) -> Size | None:
    return next((size for size in answer.sizes if size.machines == answer.as_in_log), None)


def _tasks(sizing: Sizing) -> str:
    return "jobs" if sizing.jobs == sizing.tasks else "tasks"


def _more(answer: Sized) -> str:
    """Return how many machines are needed beyond what the log used, or how many fewer."""
    return "" if answer.buy is None else f"; the answer is {beyond(answer.buy - (answer.as_in_log or 0))}"


def beyond(more: int) -> str:
    """Return how many more or fewer."""
    return f"{abs(more):,} {'more' if more > 0 else 'fewer'}" if more else "as many"


def _held(name: str, amount: float, of: str) -> str:
    """Return an amount as it is in a remark of `subak convert sacct`."""
    if of == "MiB":
        return f"{amount / 1024:,.10g} GiB of {name}"
    return f"{amount:,.10g} {of if of in WORDS_OF else f'{of} of {name}'.strip()}"
