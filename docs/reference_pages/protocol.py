"""The part of the reference that says what messages do to each of Megha's roles: tables and diagrams."""
from subak.federation.megha.transitions import ANY, NEW, TRANSITIONS, Transition
from subak.federation.messages import ROLES

WHAT = {"submitter": "tasks", "global master": "phases of a task", "worker": "attempts",
        "local master": "attempts, and of machines where it says LISTED, SILENT, LOST or ABSENT"}


def protocol() -> list[str]:
    """Return a table of what messages do, role by role, and a diagram of how states become others."""
    lines = ["## What messages do under megha and central\n",
             "A message changes what it meets as said here, and nothing else: `subak torture` checks it. A row in "
             "*italics* is of tasks or attempts that the message does not name.\n"]
    for role, name in enumerate(ROLES):
        rows = [row for row in TRANSITIONS if row.role == role]
        if rows:
            lines += [f"A {name}: {WHAT[name]}.\n", *diagram(rows), *table(rows)]
    return lines


def table(rows: list[Transition]) -> list[str]:
    """Return the rows; a state that stays is left out."""
    lines = ["| message | meets | which becomes | then |", "|---|---|---|---|"]
    for row in rows:
        becomes = "" if row.becomes == (row.state,) else " or ".join(row.becomes)
        kind = f"*{row.message}*" if row.aside else f"`{row.message}`"
        lines.append(f"| {kind} | {row.state} | {becomes} | {row.then} |")
    return [*lines, ""]


def diagram(rows: list[Transition]) -> list[str]:
    """Return how states become others, the messages that do so on one arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for state in row.becomes:
            if row.state not in (state, ANY):
                messages = arrows.setdefault((row.state, state), [])
                messages += [row.message] * (row.message not in messages)
    drawn = [f"    {node(one)} --> {node(other)}: {', '.join(messages)}" for (one, other), messages in arrows.items()]
    return ["```mermaid", "stateDiagram-v2", *drawn, "```\n"]


def node(state: str) -> str:
    """Return a state as mermaid knows it."""
    return "[*]" if state == NEW else state
