"""Tables of federations: messages, counts of masters, busy roles, shares of queues."""
from collections.abc import Callable

from subak.measures.runs import FederationFacts, Run
from subak.report.number_text import NOTHING, count_text, ratio_text, seconds_text, share_text
from subak.report.short_names import shortened
from subak.report.tables.table import Cell, Table, amount

QUEUES_SHOWN = 12


def federation_tables(runs: list[Run]) -> list[Table]:
    """Return the tables of those of *runs* that are of a federation, a column a run; none where none is."""
    facts = {run.label: run.summary.federation for run in runs if run.summary.federation}
    if not facts:
        return []
    return [_roles(facts), _queues(facts),
            _by_name("messages", "Messages handled", "Message", facts, lambda each: each.messages),
            _by_name("requests", "Requests and what became of them", "Counted", facts, lambda each: each.counts),
            _settings(facts)]


def _by_name(name: str, caption: str, head: str, facts: dict[str, FederationFacts],
             counts: Callable[[FederationFacts], dict[str, int]]) -> Table:
    names = list(dict.fromkeys(each for fact in facts.values() for each in counts(fact)))
    rows: list[list[Cell]] = [[each, *(amount(counts(fact).get(each), count_text) for fact in facts.values())]
                              for each in names]
    return Table(name, caption, [head, *facts], rows)


def _roles(facts: dict[str, FederationFacts]) -> Table:
    rows: list[list[Cell]] = [
        [label, name, amount(role.roles, count_text), amount(role.busy, share_text), amount(role.busy_max, share_text),
         amount(role.inbox_wait, seconds_text)]
        for label, each in facts.items() for name, role in each.roles.items()
    ]
    titles = ["Run", "Role", "How many", "Busy, mean", "Busiest", "Mean wait of a message"]
    return Table("roles", "How busy roles were", titles, rows)


def _queues(facts: dict[str, FederationFacts]) -> Table:
    short = shortened(queue.queue for each in facts.values() for queue in each.queues[:QUEUES_SHOWN])
    rows: list[list[Cell]] = []
    for label, each in facts.items():
        rows += [
            [label, short[queue.queue], amount(queue.share, share_text), amount(queue.used, share_text),
             amount(queue.used_at_end, share_text), amount(queue.tasks, count_text),
             amount(queue.waiting_at_end, count_text)] for queue in each.queues[:QUEUES_SHOWN]]
        left = len(each.queues[QUEUES_SHOWN:]) + each.queues_left_out
        if left:
            rows.append([label, f"{count_text(left)} more queues, each of less", *[NOTHING] * 5])
    titles = ["Run", "Queue", "Entitled to", "Held, mean", "Held at the end", "Tasks", "Waiting at the end"]
    return Table("queues-of-federations", "Shares of queues", titles, rows)


def _settings(facts: dict[str, FederationFacts]) -> Table:
    rows: list[list[Cell]] = [[
        label, ", ".join(f"{name} {value}" for name, value in each.settings.items()),
        ", ".join(f"{kind} {ratio_text(1e6 * seconds)}" for kind, seconds in each.service.items()) or NOTHING,
    ] for label, each in facts.items()]
    return Table("settings", "Settings", ["Run", "Settings", "Service of a message, µs"], rows)
