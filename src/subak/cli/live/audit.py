"""`subak audit`: shows who changed what."""
import time
from typing import Annotated

import typer

from subak.cli.live.options import ClientOption, Output, OutputOption, opened, time_of
from subak.cli.live.show import remark, show, show_table, time_text
from subak.report.number_text import NOTHING

AUDITED_MAX = 1_000


def audit(
    since: Annotated[str | None, typer.Option(
        "--since", metavar="TIME", show_default=False,
        help="Only changes since then: a duration such as 2h or 7d before now, or a time such as "
             "2026-11-27T10:00.")] = None,
    who: Annotated[str, typer.Option("--who", metavar="NAME", show_default=False,
                                     help="Only what this person asked for.")] = "",
    about: Annotated[str, typer.Option("--object", metavar="JOB|TASK|MACHINE|NAME", show_default=False,
                                       help="Only changes of this job and its tasks, machine, person or token.")] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=AUDITED_MAX,
                                       help="How many at most: the latest.")] = 40,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Show who asked for which change, from where, and how it ended; only an admin may.

    How it ended is an HTTP status: 200 and 201 are done, 403 was refused for want of a right. Each global master keeps
    the latest 64 MiB.

    - `subak audit --since 1d` shows the changes since yesterday at this time, 40 at most.
    - `subak audit --object g0-17` shows who submitted a job, and who cancelled it or a task of it.
    - `subak audit --who ada -o json | jq -r '.items[].what'`
    """
    begin = 0.0 if since is None else time_of(since, time.time())
    with opened(client) as federation:
        found = federation.audit(since=begin, who=who, object=about, limit=limit)
    if not show(found, output):
        show_table(("when", "who", "role", "from", "what", "object", "status", "request"), [
            (time_text(each.at), each.who, each.role, each.origin, each.what, each.object or NOTHING,
             f"{each.code}" if each.code else "no answer", each.request) for each in found.items], right=("status",))
    remark(found.unreachable)
