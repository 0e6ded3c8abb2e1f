"""`subak people` and `subak whoami`: make, list and revoke tokens of people, and say who asks."""
import time
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.listed import LOOK
from subak.cli.live.options import ClientOption, LimitOption, Output, OutputOption, opened
from subak.cli.live.show import remark, show, show_facts, show_table, time_text
from subak.errors import InputError
from subak.live.api.models import VALID_S_MAX, TokenView
from subak.live.people.identity import EVERYWHERE, PERSON, Role
from subak.live.tokens import PEOPLE, write_token
from subak.quantities import parse_duration
from subak.report.console import echo

app = typer.Typer(**LOOK)
NEVER = "never"


@app.callback()
def people() -> None:
    """Make tokens for people, list and revoke them; only an admin may.

    An admin may do everything. An operator takes machines in and out, applies configurations, cancels and preempts
    jobs. A submitter submits to its queues, and cancels and reads its own jobs there. A reader sees the states of all
    jobs, queues and machines.

    - `subak people add ada --role submitter --queue research --expires 90d`
    - `subak people list` shows who has tokens.
    - `subak people revoke ada` revokes all of Ada's.
    """


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False,
                                        help="The person; jobs are kept under this name.")],
    role: Annotated[Role, typer.Option("--role", metavar="admin|operator|submitter|reader", show_default=False,
                                       help="What the token allows.")],
    queue: Annotated[list[str] | None, typer.Option(
        "--queue", metavar="PATH", show_default=False,
        help="A queue to which a submitter (or an operator) may submit, with all below it; / is all. Repeat it for "
             "several.")] = None,
    all_of_subtree: Annotated[bool, typer.Option(
        "--all-of-subtree", help="It may cancel and read all jobs of these queues, not only its own.")] = False,
    expires: Annotated[str, typer.Option("--expires", metavar="90d|12h|never", help="How long it is valid.")] = NEVER,
    token_file: Annotated[Path | None, typer.Option(
        "--token-file", metavar="FILE", show_default=False,
        help="A new file, of mode 600, for the token [default: standard output].")] = None,
    on_host: Annotated[bool, typer.Option(
        "--on-host", help="Make no token: NAME is a user of the global masters' hosts, and asks over their "
                          "sockets.")] = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Make a token for a person; it is shown once, and all masters know it within a heartbeat.

    - `subak people add ada --role submitter --queue research --expires 90d --token-file ada.token`
    - `subak people add lab --role submitter --queue research --all-of-subtree` may cancel all jobs of research.
    - `subak people add dashboard --role reader`
    - `subak people add ada --role submitter --queue research --on-host` needs no token on the host of a global master:
      `SUBAK_ADDRESS=unix:/srv/subak/g0/people.sock`.
    """
    if not PERSON.fullmatch(name):
        raise InputError(f"NAME: must be letters, digits and . _ @ -, 64 at most, not {name!r}")
    if token_file is not None and token_file.exists():
        raise InputError(f"{token_file}: exists already; a token is written to a new file")
    if on_host and token_file is not None:
        raise InputError("--token-file: goes without --on-host, which makes no token")
    with opened(client, "subak people list shows whether the token was made") as federation:
        made = federation.add_person(name, role, queues=tuple(queue or ()), all_jobs=all_of_subtree,
                                     valid_s=_seconds(expires), on_host=on_host)
    if token_file is not None:
        write_token(token_file, made.token, PEOPLE)
    if output != Output.TABLE:
        show(made.holder if token_file is not None else made, output)
    elif on_host:
        echo(f"{_words(made.holder)}: asks over the sockets of global masters")
    elif token_file is None:
        echo(made.token)
        remark([f"token {made.holder.id} of {_words(made.holder)}; it is not shown again"])
    else:
        echo(f"{token_file}: token {made.holder.id} of {_words(made.holder)}")


def _seconds(expires: str) -> float:
    """Return how long a token is valid, 0 for ever. Raises InputError."""
    if expires == NEVER:
        return 0.0
    try:
        seconds = parse_duration(expires)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= VALID_S_MAX:
        raise InputError(f"--expires: must be a duration such as 90d or 12h, or never, not {expires!r}")
    return seconds


@app.command("list")
def list_tokens(limit: LimitOption = 1000, output: OutputOption = Output.TABLE, client: ClientOption = None) -> None:
    """List tokens with their holders, roles and queues; what was revoked or expired is listed for 30 days.

    Example: `subak people list`. The token of the first start, which is an admin's, is not in the list.
    """
    with opened(client) as federation:
        found = federation.people(limit)
    if not show(found, output):
        show_table(("token", "name", "role", "queues", "state", "made", "by", "expires"), [
            (f"{each.id}{' (none)' if each.on_host else ''}", each.name, each.role, _queues(each), each.state,
             time_text(each.made), each.made_by, NEVER if each.expires is None else time_text(each.expires))
            for each in found])


@app.command("revoke")
def revoke(
    names: Annotated[list[str], typer.Argument(metavar="NAME|TOKEN...", show_default=False,
                                               help="Persons, or ids of tokens such as t4f1c02a97b3e.")],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Revoke tokens: all of a person, or one by its id. Every master refuses them within a heartbeat.

    Jobs that were submitted with them go on.

    - `subak people revoke ada`
    - `subak people revoke t4f1c02a97b3e`
    """
    for name in names:
        if not PERSON.fullmatch(name):
            raise InputError(f"NAME|TOKEN: must be a person or the id of a token, not {name!r}")
    with opened(client, "subak people list shows what was revoked") as federation:
        for name in names:
            found = federation.revoke(name)
            if not show(found, output):
                for each in found:
                    echo(f"{each.id} of {each.name}: {each.state}")


def whoami(output: OutputOption = Output.TABLE, client: ClientOption = None) -> None:
    """Say who holds the token that commands use here, and what it allows.

    Example: `subak whoami`.
    """
    with opened(client) as federation:
        found = federation.whoami()
    if not show(found, output):
        show_facts(found.name, [
            ("role", found.role), ("queues", _queues(found)), ("token", found.id),
            ("expires", NEVER if found.expires is None else
             f"{time_text(found.expires)}{', within a day' if found.expires < time.time() + 86_400 else ''}")])


def _queues(token: TokenView) -> str:
    paths = ", ".join("all" if path == EVERYWHERE else path for path in token.queues)
    return f"{paths} (all jobs)" if token.all_jobs else paths


def _words(token: TokenView) -> str:
    """Return whose a token is, and what it allows."""
    until = "" if token.expires is None else f", until {time_text(token.expires)}"
    return f"{token.name}, {token.role}{f' of {_queues(token)}' if token.queues else ''}{until}"
