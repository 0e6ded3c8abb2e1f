"""The page's tables of federations: messages by kind, what masters counted, how busy roles were, shares of queues."""
from collections.abc import Callable, Iterator

from markupsafe import Markup

from subak.measures.runs import FederationFacts, Run
from subak.report import tags
from subak.report.number_text import NOTHING, count_text, ratio_text, seconds_text, share_text

QUEUES_SHOWN = 12


def federation_tables(runs: list[Run]) -> Iterator[Markup]:
    """Return the tables of *runs*, each of a federation, a column a run."""
    facts = {run.label: run.summary.federation for run in runs if run.summary.federation}
    yield _by_name("Messages handled", "Message", facts, lambda each: each.messages)
    yield _by_name("Requests and what became of them", "Counted", facts, lambda each: each.counts)
    yield _roles(facts)
    yield _queues(facts)
    yield _settings(facts)


def _by_name(
    caption: str, head: str, facts: dict[str, FederationFacts], counts: Callable[[FederationFacts], dict[str, int]]
) -> Markup:
    names = list(dict.fromkeys(name for each in facts.values() for name in counts(each)))
    rows: list[list[object]] = [[name, *(count_text(counts(each).get(name)) for each in facts.values())]
                                for name in names]
    return tags.words_table(caption, [head, *facts], rows) if rows else Markup("")


def _roles(facts: dict[str, FederationFacts]) -> Markup:
    rows: list[list[object]] = [
        [label, name, count_text(role.roles), share_text(role.busy), share_text(role.busy_max),
         seconds_text(role.inbox_wait)]
        for label, each in facts.items() for name, role in each.roles.items()
    ]
    titles = ["Run", "Role", "How many", "Busy, mean", "Busiest", "Mean wait of a message"]
    return tags.words_table("How busy roles were", titles, rows) if rows else Markup("")


def _queues(facts: dict[str, FederationFacts]) -> Markup:
    rows: list[list[object]] = [
        [label, queue.queue, share_text(queue.share), share_text(queue.used), share_text(queue.used_at_end),
         count_text(queue.tasks), count_text(queue.waiting_at_end)]
        for label, each in facts.items() for queue in each.queues[:QUEUES_SHOWN]
    ]
    for label, each in facts.items():
        left = len(each.queues[QUEUES_SHOWN:]) + each.queues_left_out
        if left:
            rows.append([label, f"{count_text(left)} more queues, each of less", *[NOTHING] * 5])
    titles = ["Run", "Queue", "Entitled to", "Held, mean", "Held at the end", "Tasks", "Waiting at the end"]
    return tags.words_table("Shares of queues", titles, rows) if rows else Markup("")


def _settings(facts: dict[str, FederationFacts]) -> Markup:
    rows: list[list[object]] = [[
        label, ", ".join(f"{name} {value}" for name, value in each.settings.items()),
        ", ".join(f"{kind} {ratio_text(1e6 * seconds)}" for kind, seconds in each.service.items()) or NOTHING,
    ] for label, each in facts.items()]
    return tags.words_table("Settings", ["Run", "Settings", "Service of a message, µs"], rows)
