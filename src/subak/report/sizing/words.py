"""Words the answer of `subak size`, for the terminal and the page."""
import math
from collections.abc import Iterator

from subak.experiment.sizing.answer import Rise, Size, Sized, Sizing, Value, Weeks, scarcest
from subak.measures.intervals import SEEDS_MIN
from subak.measures.objective import IN_SECONDS, Objective
from subak.placement.schedulers import BY_USERS
from subak.report.notes import MIDDLE_APART, SEEDS_OF_TRACE, SPREAD_APART
from subak.report.number_text import NOTHING, count_text, counted, number_text, seconds_text, share_text
from subak.report.sizing.beside_log import beside_log, beyond
from subak.report.sizing.objective_words import objectives_of, said_objective, value_text
from subak.report.tables.table import Amount, Cell, Table
from subak.workload.days import DAY_S, WEEK
from subak.workload.resample import Drawable

INTERVAL = "95 % interval"
TOO_SHORT = 1.5  # times the trace's answer: with more the trace says too little
NEEDED, FEWEST = "needed", "fewest"
IN_LOG = "log's peak"  # the machines that have what the log's tasks held at once
USED, LEAST_USED = "used", "used, least used machine"  # behind the name of a resource
SEVERAL = 2
LONG_HELPS = "jobs that end before their limits leave gaps, which short jobs fill out of turn"
SHORT_HELPS = "jobs whose limits are too long fit into fewer gaps"


def headline(sizing: Sizing, answer: Sized) -> str:
    """Return the one line to report: how many machines, what they keep, and how surely."""
    if answer.buy is None:
        return in_short(answer)
    if answer.fewest is not None and sizing.redrawn is not None and is_wide(answer):
        return (f"You need {answer.fewest:,} to {in_short(answer)} in all (not so many more): {_kept(sizing)} on "
                f"{answer.fewest:,} of them in the trace itself, and on {answer.buy:,} in the next "
                f"{stretch_text(sizing.redrawn)} with 95 % certainty.")
    return f"You need {in_short(answer)} in all (not {answer.buy:,} more): {_kept(sizing)}, {_surely(sizing, answer)}."


def is_wide(answer: Sized) -> bool:
    """Whether draws of the trace take so many more machines than the trace that it is too short to say one number."""
    weeks, own = answer.weeks, answer.fewest
    return weeks is not None and weeks.buy is not None and own is not None and weeks.buy > TOO_SHORT * own


def in_short(answer: Sized) -> str:
    """Return how many machines are needed."""
    if answer.buy is None:
        return f"No number of machines of {answer.name} is enough" if answer.hopeless else (
            f"No number of machines up to {answer.limit:,} is enough")
    price = "" if answer.buy_price is None else f" for {number_text(answer.buy_price)}"
    parts = ", ".join(f"{count:,} of {kind}" for kind, count in answer.parts)
    return f"{counted(answer.buy, 'machine')} of {answer.name}{f' ({parts})' if parts else ''}{price}"


def _kept(sizing: Sizing) -> str:
    """Return the objectives in words; of a workload whose jobs are of one task, tasks are called jobs."""
    tasks = "jobs" if sizing.jobs == sizing.tasks else "tasks"
    grown = "" if sizing.load == 1.0 else f"at {sizing.load:g} times the load "
    return grown + " and ".join(said_objective(each, tasks) for each in objectives_of(sizing))


def _surely(sizing: Sizing, answer: Sized) -> str:
    """Return of what time or seeds the number needed is known, and how surely."""
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
    yield from _beside_fleet(answer)
    yield from _limits(sizing, answer)
    if answer.hopeless:
        yield f"{answer.hopeless}. A task that can never run misses every objective."
    elif answer.fewest is None:
        yield from _not_enough(sizing, answer)
    else:
        yield f"Fewest with which {_all_hold(sizing)} {_over(sizing)}: {answer.fewest:,}."
        yield _certainty(sizing, answer)
        if answer.weeks is not None and sizing.redrawn is not None:
            yield from _weeks(answer, answer.weeks)
        yield from _binds(sizing, answer)
    if answer.fewest == 1:
        yield "It is the smallest size there is."
    yield from beside_log(sizing, answer)
    yield from _exceptions(sizing, answer)


def _beside_fleet(answer: Sized) -> Iterator[str]:
    """Say how many machines there are more or fewer than those of the fleet."""
    if answer.buy is None or answer.has is None:
        return
    more = answer.buy - answer.has
    yield f"The fleet has {answer.has:,}; the answer is {beyond(more)}."


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
               f"exact run times as limits {exact:,} are enough, with limits up to 3 times too long {longer:,}: "
               f"{SHORT_HELPS if longer > exact else LONG_HELPS}. The larger one is reported; a log with time limits "
               "decides.")
        if longer > exact:
            yield "The figures that follow are with exact run times as limits."


def _binds(sizing: Sizing, answer: Sized) -> Iterator[str]:
    """Say which resource the number of machines hangs upon."""
    most = scarce(sizing, answer)
    at = next((size for size in answer.sizes if size.machines == answer.fewest), None)
    if not most or at is None or not at.used or len(sizing.resources) < SEVERAL:
        return
    mean, peak = (", ".join(f"{name} {share_text(share)}" for name, share in zip(
        sizing.resources, shares, strict=True) if share is not None) for shares in (at.used, at.peak or at.used))
    use = f"the mean use is {mean}; for 95 % of the time it is at most {peak}" if at.peak else f"the mean use is {mean}"
    shown = [(share_text(top), name) for top, name in zip(at.peak or at.used, sizing.resources, strict=True)
             if top is not None]
    level = next((share for share, name in shown if name == most), "")
    ties = [name for share, name in shown if share == level] or [most]
    which = f"{ties[0]} is the scarcest resource" if len(ties) == 1 else f"{' and '.join(ties)} are equally scarce"
    yield f"{which}: on {counted(at.machines, 'machine')} {use}."


def stretch_text(redrawn: Drawable) -> str:
    """Return what the trace is one of: a week, or as long a time."""
    if redrawn.length != DAY_S:
        return f"stretch of {seconds_text(redrawn.days * redrawn.length)}"
    return "week" if redrawn.days == WEEK else f"stretch of {redrawn.days} days"


def _over(sizing: Sizing) -> str:
    if sizing.redrawn is not None:
        return "on the trace itself"
    return "in one run" if len(sizing.seeds) == 1 else "in the mean over the seeds"


def _weeks(answer: Sized, weeks: Weeks) -> Iterator[str]:
    """Say what the draws of a trace give reason to beware of."""
    own = answer.fewest or 1
    if weeks.buy is not None:
        yield f"95 %: of twenty such stretches to come at most one needs more than {weeks.buy:,}."
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

    The fewest machines and those needed are marked.
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


def with_units(table: Table, sizing: Sizing) -> Table:
    """Return a table of sizes whose titles say in what its numbers are: seconds, or shares of one."""
    units = {each.text: "seconds" for each in objectives_of(sizing) if each.measure in IN_SECONDS}
    units |= {title: "share" for title in table.titles if title.endswith((USED, LEAST_USED))}
    return table._replace(titles=[f"{title} ({units[title]})" if title in units else title for title in table.titles])


def scarce(sizing: Sizing, answer: Sized) -> str:
    """Return the resource of which the most is used with the machines needed; empty where that is not known."""
    at = [size for size in answer.sizes if size.machines == answer.buy] or answer.sizes[-1:]
    place = scarcest(at[0]) if at else None
    return "" if place is None else sizing.resources[place]


def mark(answer: Sized, size: Size) -> str:
    """Return which number of the answer a size is; empty where it is none."""
    marks = ((NEEDED, answer.buy), (FEWEST, answer.fewest), (IN_LOG, answer.as_in_log))
    return next((word for word, machines in marks if size.machines == machines), "")


def _shares(sizing: Sizing, size: Size, most: str) -> list[Cell]:
    """Return what was used of each resource, and of the scarcest on the machine that was used least."""
    if not most:
        return []
    shares = [*(size.used or [None] * len(sizing.resources)),
              size.least_used[sizing.resources.index(most)] if size.least_used else None]
    return [Amount(share, share_text(share)) for share in shares]


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
    """Say where more machines did not help, in one sentence."""
    said = []
    for machines in answer.odd:
        kept = answer.fewest is not None and machines < answer.fewest
        said.append(f"{machines:,} machines {'keep all objectives, too' if kept else 'do not keep them'}, so the "
                    "answer is of the sizes that were tried around it")
    said += [_rise(sizing, answer, rise) for rise in answer.rises]
    if said:
        yield f"Not monotone: {'; '.join(said)}."


def _rise(sizing: Sizing, answer: Sized, rise: Rise) -> str:
    objective = objectives_of(sizing)[rise.objective]
    fewer, more = (answer.size(machines).values[rise.objective].mean for machines in (rise.fewer, rise.more))
    text = value_text(objective)
    return (f"{objective.measure}.{objective.statistic} is {text(fewer)} on {rise.fewer:,} machines and "
            f"{text(more)} on {rise.more:,}")
