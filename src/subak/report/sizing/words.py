"""Words the answer of `subak size`, for the terminal and the page."""
import math
from collections.abc import Callable, Iterator

from subak.experiment.sizing.answer import Rise, Size, Sized, Sizing, Value, Weeks, scarcest
from subak.measures.intervals import SEEDS_MIN
from subak.measures.objective import IN_SECONDS, OF_TASKS, SLURM_WAIT, Objective, read_objective
from subak.placement.schedulers import BY_USERS
from subak.report.notes import MIDDLE_APART, ONE_WORKLOAD, REDRAWN, SEEDS_OF_TRACE, SPREAD_APART, parts_text, uneven
from subak.report.number_text import NOTHING, count_text, counted, number_text, ratio_text, seconds_text, share_text
from subak.report.sizing.objective_words import said_objective
from subak.report.tables.table import Amount, Cell, Table
from subak.workload.days import DAY_S, HOUR_S, USERS_DAYS, WEEK, WHOLE_DAYS, drawn_by
from subak.workload.resample import Drawable

ENDLESS = "never"
PARTITIONS_NAMED_MAX = 6
INTERVAL = "95 % interval"
TOO_SHORT = 1.5  # times the trace's answer, to buy: with more the trace says too little
TO_BUY, FEWEST = "to buy", "fewest"
USED, LEAST_USED = "used", "used, least used machine"  # behind the name of a resource
STRICT_ORDERS = ("first-fit", "best-fit", "worst-fit", "aligned-fit", "random-fit", "fifo")
STRICT = (" It lets nobody pass who waits first. Slurm and most batch systems backfill: --scheduler easy does, and "
          "usually needs fewer machines.")
SEVERAL = 2


def objectives_of(sizing: Sizing) -> list[Objective]:
    """Return the objectives that were to be kept."""
    return [read_objective(text) for text in sizing.objectives]


def headline(sizing: Sizing, answer: Sized) -> str:
    """Return the one line to report: how many machines, what they keep, and how surely."""
    if answer.buy is None:
        return in_short(answer)
    do = "Needed:" if answer.of_fleet else "Buy"
    if answer.fewest is not None and sizing.redrawn is not None and is_wide(answer):
        return (f"{do} {answer.fewest:,} to {in_short(answer)} in all: {_kept(sizing)} on {answer.fewest:,} of them in "
                f"the trace itself, and on {answer.buy:,} in the next {stretch_text(sizing.redrawn)} with 95 % "
                "certainty.")
    return f"{do} {in_short(answer)} in all: {_kept(sizing)}, {_surely(sizing, answer)}."


def is_wide(answer: Sized) -> bool:
    """Whether draws of the trace take so many more machines than the trace that it is too short to say one number."""
    weeks, own = answer.weeks, answer.fewest
    return weeks is not None and weeks.buy is not None and own is not None and weeks.buy > TOO_SHORT * own


def in_short(answer: Sized) -> str:
    """Return the machines to buy."""
    if answer.buy is None:
        return f"No number of machines of {answer.name} is enough" if answer.hopeless else (
            f"No number of machines up to {answer.limit:,} is enough")
    price = "" if answer.buy_price is None else f" at {number_text(answer.buy_price)}"
    parts = ", ".join(f"{count:,} of {kind}" for kind, count in answer.parts)
    return f"{counted(answer.buy, 'machine')} of {answer.name}{f' ({parts})' if parts else ''}{price}"


def _kept(sizing: Sizing) -> str:
    """Return the objectives in words; of a workload whose jobs are of one task, tasks are called jobs."""
    tasks = "jobs" if sizing.jobs == sizing.tasks else "tasks"
    grown = "" if sizing.load == 1.0 else f"at {sizing.load:g} times the load "
    return grown + " and ".join(said_objective(each, tasks) for each in objectives_of(sizing))


def _surely(sizing: Sizing, answer: Sized) -> str:
    """Return of what time or seeds the number to buy is known, and how surely."""
    if sizing.redrawn is not None:
        surely = answer.weeks is not None and answer.weeks.buy is not None
        return f"in the next {stretch_text(sizing.redrawn)} with 95 % certainty" if surely else _over(sizing)
    if len(sizing.seeds) == 1:
        return _over(sizing)
    over = f"in the mean over {len(sizing.seeds)} seeds"
    return over if answer.high is None else f"{over} with 95 % certainty"


def interval_text(answer: Sized) -> str:
    """Return the interval of an answer, of a trace that of the typical week; empty where there is none."""
    if answer.weeks is not None and answer.weeks.typical is not None:
        return "{:,} to {:,}".format(*answer.weeks.typical)
    if answer.low is None:
        return ""
    if answer.high is None:
        return f"{answer.low:,} or more"
    return f"{answer.low:,} to {answer.high:,}"


def sentences(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Return what is to be said of an answer."""
    yield from _limits(sizing, answer)
    if answer.hopeless:
        yield f"{answer.hopeless}. A task that can never run misses every objective."
    elif answer.fewest is None:
        yield from _not_enough(sizing, answer)
    else:
        yield f"Fewest with which {_all_hold(sizing)} {_over(sizing)}: {answer.fewest:,}."
        yield from _binds(sizing, answer)
        yield _certainty(sizing, answer)
        if answer.weeks is not None and sizing.redrawn is not None:
            yield from _weeks(answer, answer.weeks)
    if answer.fewest == 1:
        yield "It is the smallest size there is."
    yield from _exceptions(sizing, answer)


def _limits(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Say which time limits the answer goes by, and how it moves with them where they are supposed."""
    if answer.buy is None or not sizing.knows:
        return
    if answer.supposed is None:
        theirs = sizing.knows.endswith(BY_USERS)
        yield f"{sizing.scheduler} goes by {'the time limits of the users' if theirs else f'the {sizing.knows}'}."
        return
    exact, longer = answer.by_scenario or 0, answer.supposed.buy
    lacks = "The workload has no time limits of users"
    if longer is None:
        yield (f"{lacks}. With exact run times as limits {exact:,} machines are enough; with limits up to 3 times too "
               f"long no number up to {answer.limit:,} is.")
    elif longer == exact:
        yield f"{lacks}: with exact run times as limits and with limits up to 3 times too long the answer is the same."
    else:
        less, more = sorted((exact, longer))
        yield (f"{less:,} or {more:,} machines: {lacks[0].lower()}{lacks[1:]}, and the answer depends on them. With "
               f"exact run times as limits {exact:,} are enough, with limits up to 3 times too long {longer:,}. The "
               "larger one is reported; a log with time limits decides.")
        if longer > exact:
            yield "The figures that follow are with exact run times as limits."


def _binds(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Say which resource the number of machines hangs upon."""
    most = scarce(sizing, answer)
    at = next((size for size in answer.sizes if size.machines == answer.fewest), None)
    if not most or at is None or not at.used or len(sizing.resources) < SEVERAL:
        return
    shares = [f"{name} {share_text(share)}" for name, share in zip(sizing.resources, at.used, strict=True)
              if share is not None]
    yield f"{most} is the scarcest resource. On {counted(at.machines, 'machine')} the mean use is: {', '.join(shares)}."


def stretch_text(redrawn: Drawable) -> str:
    """Return what the trace is one of: a week, or as long a time."""
    if redrawn.length != DAY_S:
        return f"stretch of {seconds_text(redrawn.days * redrawn.length)}"
    return "week" if redrawn.days == WEEK else f"stretch of {redrawn.days} days"


def notes(sizing: Sizing) -> list[str]:
    """Return what to hold the answers against, and how they came about."""
    return [*_choice(sizing), *_recorded(sizing), *_grown(sizing), *_pooled(sizing), *_counted(sizing), *_known(sizing),
            *_used(sizing), *_single(sizing), *_came_about(sizing), *_partial(sizing)]


def _over(sizing: Sizing) -> str:
    if sizing.redrawn is not None:
        return "on the trace itself"
    return "in one run" if len(sizing.seeds) == 1 else "in the mean over the seeds"


def _recorded(sizing: Sizing) -> Iterator[str]:
    """Say what the objectives came to in the log."""
    if sizing.recorded is None:
        return
    said = "; ".join(f"{each.measure}.{each.statistic} {value_text(each)(value)}"
                     for each, value in zip(objectives_of(sizing), sizing.recorded.values, strict=True))
    of = "" if sizing.recorded.tasks == sizing.tasks else (
        f", of the {sizing.recorded.tasks:,} of {sizing.tasks:,} tasks whose start it knows")
    yield f"The log itself, under its own scheduler on the machines of that time: {said}{of}."


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
    if sizing.slurm_jobs < sizing.tasks:
        yield "Nodes of one job may share a machine, as in Slurm they may not: a job of 8 can run on 4 larger machines."
    of_tasks = [each for each in objectives if each.measure in OF_TASKS]
    slurm = f"an element of an array, or all nodes of a job: {sizing.slurm_jobs:,} in all"
    if of_tasks:
        together = sizing.slurm_jobs < sizing.tasks
        once = f" {SLURM_WAIT} counts what Slurm calls a job, {slurm}." if together else ""
        yield (f"{of_tasks[0].measure} is of tasks: {counted(sizing.jobs, 'job')} {have} {sizing.tasks:,}, and each "
               f"counts.{once} job_wait counts a job once, until the first of its tasks starts.")
    elif any(each.measure == SLURM_WAIT for each in objectives):
        yield f"{SLURM_WAIT} counts what Slurm calls a job: {slurm}."


def _choice(sizing: Sizing) -> Iterator[str]:
    """Say that kinds and mixes are alternatives."""
    if len(sizing.answers) > 1:
        yield "Each line is an answer of its own: buy the machines of one, not of all. --mix asks for several kinds."


def _known(sizing: Sizing) -> Iterator[str]:
    """Say how to settle which time limits there are."""
    if any(answer.supposed is not None for answer in sizing.answers):
        yield ("Time limits: of Slurm, export the column Timelimit and convert again. --estimates exact, or factor=2, "
               "answers for one supposition alone. Longer limits may take more machines or fewer: they hide gaps, and "
               "let short jobs pass.")


def _partial(sizing: Sizing) -> Iterator[str]:
    """Say what is there of the first and the last day."""
    if sizing.begins:
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
        yield ("Used is the share of the capacity that tasks hold, the mean over the time that is measured; beside it "
               "that of the least used machine, which near 0 % is there for peaks alone.")


def _single(sizing: Sizing) -> Iterator[str]:
    """Say why there are no intervals of single sizes."""
    if any(value.low is not None for answer in sizing.answers for size in answer.sizes for value in size.values):
        return
    if sizing.redrawn is not None:
        yield "A size has no interval of its own: each was run once, on the trace itself."
    elif len(sizing.seeds) > 1:
        yield f"A size has no interval of its own: that takes {SEEDS_MIN} seeds, there are {len(sizing.seeds)}."


def _came_about(sizing: Sizing) -> list[str]:
    seeds = len(sizing.seeds)
    under = f"{sizing.workload} under {sizing.scheduler}.{STRICT if sizing.scheduler in STRICT_ORDERS else ''}"
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
            f"and {kinds[1]} times for each apart, and each draw was sized: the intervals say how much chance moves "
            "the answer, not growth or machines that fail.")


def _weeks(answer: Sized, weeks: Weeks) -> Iterator[str]:
    """Say what the draws of a trace give reason to beware of."""
    own = answer.fewest or 1
    if weeks.buy is not None:
        yield ("95 % means: nineteen in twenty such intervals hold the number that is needed, and at most one in "
               f"twenty next stretches needs more than {weeks.buy:,}.")
    if weeks.beyond:
        yield (f"On {weeks.beyond} of {len(weeks.whole) + len(weeks.users)} draws no size up to {answer.limit:,} is "
               "enough, so there is no interval.")
        return
    if abs(weeks.middle / own - 1) > MIDDLE_APART:
        yield (f"Beware: the median draw takes {weeks.middle:,.0f} machines, the trace {own:,}; the draws do not keep "
               "what makes it wait.")
    if is_wide(answer):
        yield "The range is wide, for the trace is short and its days differ: accounting of more weeks narrows it."
    if weeks.spread_whole > SPREAD_APART * weeks.spread_users and weeks.typical is not None:
        yield "Days differ for all users alike, and more than each user's days do apart."


def size_table(sizing: Sizing, answer: Sized) -> Table:
    """Return the sizes that were tried: what each objective came to, whether all were kept, and what was used.

    The fewest machines and those to buy are marked.
    """
    objectives = objectives_of(sizing)
    priced = any(size.price is not None for size in answer.sizes)
    titles = ["machines", *(["price"] if priced else []),
              *(title for each in objectives for title in (each.text, INTERVAL)), "kept", "answer"]
    most = scarce(sizing, answer)
    used = [f"{name} {USED}" for name in sizing.resources] if most else []
    return Table("sizes", f"Numbers of machines of {answer.name} that were tried",
                 [*titles, *used, *([f"{most} {LEAST_USED}"] if most else [])],
                 [[*_row(size, objectives, priced), mark(answer, size), *_shares(sizing, size, most)]
                  for size in answer.sizes])


def scarce(sizing: Sizing, answer: Sized) -> str:
    """Return the resource of which the most is used with the machines to buy; empty where that is not known."""
    at = [size for size in answer.sizes if size.machines == answer.buy] or answer.sizes[-1:]
    place = scarcest(at[0]) if at else None
    return "" if place is None else sizing.resources[place]


def mark(answer: Sized, size: Size) -> str:
    """Return which number of the answer a size is; empty where it is none."""
    return TO_BUY if size.machines == answer.buy else FEWEST if size.machines == answer.fewest else ""


def _shares(sizing: Sizing, size: Size, most: str) -> list[Cell]:
    """Return what was used of each resource, and of the scarcest on the machine that was used least."""
    if not most:
        return []
    shares = [*(size.used or [None] * len(sizing.resources)),
              size.least_used[sizing.resources.index(most)] if size.least_used else None]
    return [Amount(share, share_text(share)) for share in shares]


def value_text(objective: Objective) -> Callable[[float | None], str]:
    """Return how a value of an objective is said."""
    words = seconds_text if objective.measure in IN_SECONDS else ratio_text
    return lambda value: ENDLESS if value is not None and math.isinf(value) else words(value)


def _row(size: Size, objectives: list[Objective], priced: bool) -> list[Cell]:
    kept = "no: " + size.missed if size.missed else "yes" if size.keeps(objectives) else "no"
    cells = [cell for each, value in zip(objectives, size.values, strict=False) for cell in _cells(each, value)]
    missing: list[Cell] = [NOTHING] * (2 * len(objectives) - len(cells))
    price: list[Cell] = [Amount(size.price, number_text(size.price or 0.0))] if priced else []
    return [Amount(size.machines, count_text(size.machines)), *price, *cells, *missing, kept]


def _cells(objective: Objective, value: Value) -> list[Cell]:
    text = value_text(objective)
    known = value.low is not None and math.isfinite(value.mean)
    interval = f"{text(value.low)} to {text(value.high)}" if known else NOTHING
    return [Amount(value.mean if math.isfinite(value.mean) else None, text(value.mean)), interval]


def _all_hold(sizing: Sizing) -> str:
    return f"{' and '.join(sizing.objectives)} {'holds' if len(sizing.objectives) == 1 else 'hold'}"


def _certainty(sizing: Sizing, answer: Sized) -> str:
    weeks, interval = answer.weeks, interval_text(answer)
    if weeks is not None and weeks.coming is not None and sizing.redrawn is not None:
        stretch, coming = stretch_text(sizing.redrawn), "{:,} to {:,}".format(*weeks.coming)
        return f"95 % intervals: {interval} machines in the typical {stretch}, {coming} in the next one."
    if interval:
        return f"95 % interval: {interval} machines."
    if len(sizing.seeds) == 1:
        return "One run for each size, so there is no interval."
    if sizing.redrawn is not None:
        return f"No interval: that takes seeds 1-{SEEDS_OF_TRACE}."
    return f"No interval: that takes {SEEDS_MIN} seeds, there are {len(sizing.seeds)}."


def _not_enough(sizing: Sizing, answer: Sized) -> Iterator[str]:
    most = answer.sizes[-1]
    if most.missed:
        yield f"On {most.machines:,} machines: {most.missed}. A task that can never run misses every objective."
        return
    said = [f"{each.text}: {value_text(each)(value.mean)}"
            for each, value in zip(objectives_of(sizing), most.values, strict=True) if not each.holds(value.mean)]
    yield f"On {most.machines:,} machines, {'; '.join(said)}."


def _exceptions(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Say where more machines did not help."""
    for machines in answer.odd:
        kept = answer.fewest is not None and machines < answer.fewest
        yield (f"Not monotone: {machines:,} machines {'keep all objectives, too' if kept else 'do not keep them'}, "
               "so the answer is of the sizes that were tried around it.")
    for rise in answer.rises:
        yield _rise(sizing, answer, rise)


def _rise(sizing: Sizing, answer: Sized, rise: Rise) -> str:
    objective = objectives_of(sizing)[rise.objective]
    fewer, more = (answer.size(machines).values[rise.objective].mean for machines in (rise.fewer, rise.more))
    text = value_text(objective)
    return (f"Not monotone: {objective.measure}.{objective.statistic} is {text(fewer)} on {rise.fewer:,} machines and "
            f"{text(more)} on {rise.more:,}.")
