"""`subak ca`: a certificate authority for the processes of a federation."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.listed import LOOK
from subak.report.console import echo
from subak.report.number_text import counted

app = typer.Typer(**LOOK)
FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False,
                                                help="The folder of the authority. Keep its ca.key to yourself.")]
CertificateArgument = Annotated[Path, typer.Argument(metavar="FILE.crt", show_default=False,
                                                     help="A certificate in PEM.")]


@app.callback()
def authority() -> None:
    """Make a certificate authority, issue and revoke certificates of a federation's processes.

    A certificate names one process, such as `worker w1 of lab`, and its owner can speak for that process alone.
    `subak init` calls all of this for a federation on several hosts. An organisation's own authority works too: its
    certificates need the URI `subak://FEDERATION/ROLE/NAME` in their names, with the role global-master, local-master,
    standby or worker.

    - `subak ca init ca --name lab` makes an authority for the federation lab.
    - `subak ca issue ca worker w1` writes worker-w1.crt and worker-w1.key, for the host of the worker w1.
    - `subak ca issue ca global-master g0 --host g0.example.org` names the host too, for people's HTTPS.
    - `subak ca show worker-w1.crt` says whose a certificate is, and until when.
    - `subak ca revoke ca worker-w1` puts all certificates of that worker on the list ca/ca.crl.
    """


@app.command("init")
def init(folder: FolderArgument,
         name: Annotated[str, typer.Option("--name", metavar="NAME", show_default=False,
                                           help="The name of the federation, as in its file.")]) -> None:
    """Make an authority in a new folder: ca.crt for all hosts, ca.key for you alone.

    Example: `subak ca init ca --name lab`.
    """
    from subak.live.certificates import AUTHORITY, KEY, make_authority, shown  # noqa: PLC0415  (other commands do without)

    made = make_authority(folder, name)
    echo(f"{folder / AUTHORITY}: the authority of federation {name}, until {shown(made.certificate).end:%Y-%m-%d}; "
         "copy it to every host")
    echo(f"{folder / KEY}: its key; whoever has it can make certificates, so keep it off the hosts")


@app.command("issue")
def issue(
    folder: FolderArgument,
    role: Annotated[str, typer.Argument(metavar="ROLE", show_default=False,
                                        help="global-master, local-master, standby or worker.")],
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False,
                                        help="The name of the process; of a local master or standby, its cluster's.")],
    host: Annotated[list[str] | None, typer.Option(
        "--host", metavar="HOST", show_default=False,
        help="A name or address at which people reach a global master; once for each.")] = None,
    days: Annotated[int, typer.Option("--days", metavar="N", help="How long it counts.")] = 365,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where both files are written.")] = Path(),
) -> None:
    """Issue a certificate with its key, as ROLE-NAME.crt and ROLE-NAME.key.

    A running process reads a new certificate from its file within seconds, without a restart: copy both files over the
    old ones. Those of a global master need the host again.

    Example: `subak ca issue ca worker w1 --days 30`.
    """
    from subak.live.certificates import Authority, stem_of, write_pair  # noqa: PLC0415  (see above)

    pair = Authority(folder).issue(role, name, host or (), days)
    stem = stem_of(role, name)
    write_pair(out, stem, pair)
    echo(f"{out / stem}.crt, {stem}.key: {role} {name}, for {days} days")


@app.command("show")
def show(file: CertificateArgument) -> None:
    """Say whose a certificate is, until when it counts, and at which hosts.

    Example: `subak ca show worker-w1.crt`.
    """
    from subak.live.certificates import read_certificate, shown  # noqa: PLC0415  (see above)

    found = shown(read_certificate(file))
    whose = found.identity or ("an authority" if found.is_authority else "of no process: it has no URI subak://…")
    echo(f"{file}: {whose}")
    echo(f"counts from {found.begin:%Y-%m-%d %H:%M} to {found.end:%Y-%m-%d %H:%M} UTC")
    if found.hosts:
        echo(f"hosts: {', '.join(found.hosts)}")


@app.command("revoke")
def revoke(folder: FolderArgument,
           file: Annotated[Path, typer.Argument(
               metavar="ROLE-NAME|FILE.crt", show_default=False,
               help="A process, all of whose certificates are revoked; or a certificate.")]) -> None:
    """Put certificates on the list of revoked ones, ca.crl, which you then copy to every host, and to people.

    Processes whose [tls] says `revoked = "ca.crl"` read a new list within seconds, and end its connections.

    Example: `subak ca revoke ca worker-w1`.
    """
    from subak.live.certificates import REVOKED, Authority, read_certificate  # noqa: PLC0415  (see above)

    authority = Authority(folder)
    files = authority.issued(str(file)) or [file]
    for each in files:
        authority.revoke(read_certificate(each))
    count = counted(len(files), "certificate")
    echo(f"{folder / REVOKED}: {count} of {file} on it; copy it to all hosts and to people")
