"""Notes below the answer of `subak size`: what to hold it against first, how it came about last."""
from collections.abc import Iterator

from subak.experiment.sizing.answer import Sizing
from subak.measures.intervals import SEEDS_MIN
from subak.measures.objective import OF_TASKS, SLURM_WAIT
from subak.report.notes import ONE_WORKLOAD, REDRAWN, parts_text, uneven
from subak.report.number_text import counted, seconds_text
from subak.report.sizing.objective_words import objectives_of
from subak.workload.days import DAY_S, HOUR_S, USERS_DAYS, WHOLE_DAYS, drawn_by
from subak.workload.resample import Drawable
from subak.workload.table import NO_MATTER

PARTITIONS_NAMED_MAX = 6
STRICT_ORDERS = ("first-fit", "best-fit", "worst-fit", "aligned-fit", "random-fit", "fifo")
STRICT = (" is in strict order: nobody passes who waits first. Slurm and most batch systems backfill: --scheduler easy "
          "does, and usually needs fewer machines.")


def notes(sizing: Sizing) -> list[str]:
    """Return what to hold the answers against, and how they came about; what matters least is last."""
    return [*_choice(sizing), *_order(sizing), *_pooled(sizing), *_counted(sizing), *_grown(sizing), *_known(sizing),
            *_window(sizing), *_partial(sizing), *_shared(sizing), *_came_about(sizing), *_single(sizing),
            *_used(sizing)]


def _order(sizing: Sizing) -> Iterator[str]:
    """Say what a strict order is, which is the default."""
    if sizing.scheduler in STRICT_ORDERS:
        yield f"{sizing.scheduler}{STRICT}"


def _grown(sizing: Sizing) -> Iterator[str]:
    if sizing.load != 1.0:
        yield (f"At {sizing.load:g} times the load: instants of submission are divided by {sizing.load:g}, so that a "
               f"day of the workload passes in {seconds_text(DAY_S / sizing.load)}; jobs run for as long as they did. "
               f"Use grows {sizing.load:g} times; machines grow less where a peak sets the wait, for a wide job or the "
               "burst of one user is no larger than before.")


def _pooled(sizing: Sizing) -> Iterator[str]:
    if len(sizing.partitions) > 1:
        named = ", ".join(sizing.partitions[:PARTITIONS_NAMED_MAX])
        more = len(sizing.partitions) - PARTITIONS_NAMED_MAX
        yield (f"All machines are one pool for {len(sizing.partitions)} partitions ({named}"
               f"{f' and {more} more' if more > 0 else ''}). One with nodes of its own is sized alone: --only-queue "
               f"{sizing.partitions[0]}.")


def _counted(sizing: Sizing) -> Iterator[str]:
    """Say what is counted where jobs are of several tasks, and objectives of tasks or of Slurm jobs."""
    if sizing.jobs == sizing.tasks:
        return
    objectives, have = objectives_of(sizing), "has" if sizing.jobs == 1 else "have"
    of_tasks = [each for each in objectives if each.measure in OF_TASKS]
    slurm = f"an element of an array, or all nodes of a job: {sizing.slurm_jobs:,} Slurm jobs"
    if of_tasks:
        together = sizing.slurm_jobs < sizing.tasks
        once = f" {SLURM_WAIT} counts what Slurm calls a job, {slurm}." if together else ""
        yield (f"{of_tasks[0].measure} is of tasks: {counted(sizing.jobs, 'job')} {have} {sizing.tasks:,}, and each "
               f"counts.{once} job_wait counts a job once, until the first of its tasks starts.")
    elif any(each.measure == SLURM_WAIT for each in objectives):
        yield f"{SLURM_WAIT} counts what Slurm calls a job: {slurm}."


def _shared(sizing: Sizing) -> Iterator[str]:
    """Say that the simulation packs nodes of a job, where a machine has room for several."""
    if sizing.may_share:
        yield "Nodes of one job may share a machine, as in Slurm they may not: a job of 8 can run on 4 larger machines."


def _window(sizing: Sizing) -> Iterator[str]:
    """Say that counts are of the window, where one was asked for."""
    if sizing.window:
        yield f"Measured {sizing.window}. Counts and the log's peak are of that time."


def _choice(sizing: Sizing) -> Iterator[str]:
    """Say that kinds and mixes are alternatives."""
    if len(sizing.answers) > 1:
        yield "The kinds are alternatives: take the machines of one, not of all. --mix asks for several kinds."


def _known(sizing: Sizing) -> Iterator[str]:
    """Say how to settle which time limits there are."""
    if any(answer.supposed is not None for answer in sizing.answers):
        yield ("Time limits: of Slurm, export the column Timelimit and convert again. --estimates exact, or factor=2, "
               "answers for one supposition alone.")


def _partial(sizing: Sizing) -> Iterator[str]:
    """Say what is there of the first and the last day."""
    if sizing.begins and not sizing.begins.endswith(NO_MATTER):
        yield f"The dump begins {sizing.begins}."
    rest, days = (0.0, 0) if sizing.redrawn is None else (sizing.redrawn.rest, sizing.redrawn.days)
    if rest >= HOUR_S:
        yield (f"The {seconds_text(rest)} behind the last of the {days} days are measured, too, and stay as they are "
               "in every draw; --measure-until leaves them out.")
    elif rest <= -HOUR_S:
        yield (f"The last of the {days} days lacks {seconds_text(-rest)}, and counts as a whole one; --measure-until "
               "leaves it out.")


def _used(sizing: Sizing) -> Iterator[str]:
    """Say what is used of machines, where that is known."""
    if any(size.used for answer in sizing.answers for size in answer.sizes):
        yield ("used: the mean share of the capacity that tasks hold. least used: that of the least used machine; near "
               "0 % it is there for peaks alone.")


def _single(sizing: Sizing) -> Iterator[str]:
    """Say why there are no intervals of single sizes."""
    if any(value.low is not None for answer in sizing.answers for size in answer.sizes for value in size.values):
        return
    if sizing.redrawn is not None:
        yield "Each size was run once, on the trace itself, so a size has no interval."
    elif len(sizing.seeds) > 1:
        yield f"A size has no interval of its own: that takes {SEEDS_MIN} seeds, there are {len(sizing.seeds)}."


def _came_about(sizing: Sizing) -> list[str]:
    seeds = len(sizing.seeds)
    under = f"{sizing.workload} under {sizing.scheduler}."
    if sizing.redrawn is not None:
        return [f"{under} {_drawn(sizing, sizing.redrawn)}", *uneven(sizing.redrawn.sessions)]
    how = REDRAWN.get(sizing.resample, ONE_WORKLOAD)
    drawn = f"Each size with the same {seeds} seeds: {how}." if seeds > 1 else "One run for each size."
    return [f"{under} {drawn}",
            *(["The interval of the answer goes over the sizes that the seeds do not decide (95 %)."]
              if seeds >= SEEDS_MIN else [])]


def _drawn(sizing: Sizing, redrawn: Drawable) -> str:
    kinds = [sum(drawn_by(seed) == kind for seed in sizing.seeds) for kind in (WHOLE_DAYS, USERS_DAYS)]
    return (f"Its {parts_text(redrawn.days, redrawn.length)} were drawn anew, {kinds[0]} times for all users together "
            f"and {kinds[1]} times for each apart, and each draw was sized: the intervals are of chance, not of growth "
            "or of machines that fail.")
