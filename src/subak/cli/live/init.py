"""`subak init`: writes the folders of a federation on several hosts."""
from pathlib import Path
from typing import Annotated

import typer

from subak.report.console import echo
from subak.report.number_text import counted


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False,
                                           help="A new folder, in which a folder for each host is made.")],
    hosts: Annotated[str, typer.Option(
        "--hosts", metavar="NAME[=ADDRESS],...", show_default=False,
        help="All hosts, each with the address at which the others reach it [default address: its name].")],
    global_masters: Annotated[str | None, typer.Option(
        "--global-masters", metavar="HOST,...", show_default=False,
        help="The hosts of the global masters g0, g1, ... [default: the first two hosts].")] = None,
    clusters: Annotated[str | None, typer.Option(
        "--clusters", metavar="NAME=HOST+HOST,...", show_default=False,
        help="Clusters, each with its hosts: the local master is on the first, its standby on the second, a worker on "
             "each [default: one cluster, a, with all hosts].")] = None,
    name: Annotated[str | None, typer.Option(
        "--name", metavar="NAME", show_default=False,
        help="The name of the federation [default: that of the folder].")] = None,
    queue: Annotated[list[str] | None, typer.Option(
        "--queue", metavar="NAME[=WEIGHT]", show_default=False,
        help="A queue; once for each [default: one, named default].")] = None,
    order: Annotated[str, typer.Option(
        "--order", metavar="NAME",
        help="The order in which queues are served: round-robin, or a fair order such as drf or mch.")] = "drf",
    port: Annotated[int, typer.Option(
        "--port", metavar="N", min=1, max=65_000,
        help="Of global masters, for people; local masters and standbys have the ports from 10 further on.")] = 7433,
    days: Annotated[int, typer.Option("--days", metavar="N", help="How long certificates count.")] = 365,
) -> None:
    """Write a folder for each host of a federation: files, certificates, tokens and systemd units.

    Copy each folder to its host, and start the host with one command: `subak up HOST`. All processes talk to each other
    over TLS, and each has a certificate that names it. FOLDER/people is for those who submit jobs, from any host;
    FOLDER/ca holds the authority: keep it, `subak ca` issues further certificates with it.

    - `subak init lab --hosts h1=10.0.0.1,h2=10.0.0.2,h3=10.0.0.3`
    - `scp -r lab/h1 10.0.0.1:` and then, on that host, `subak up h1`; so for each.
    - `SUBAK_FEDERATION=lab/people subak machines` asks it.
    - `subak init two --hosts h1,h2,h3,h4 --clusters east=h1+h2,west=h3+h4 --global-masters h1,h3`
    """
    from subak.live.service.planning import check_order  # noqa: PLC0415  (loads the scheduler)
    from subak.live.up.hosts import (  # noqa: PLC0415  (loads cryptography)
        Cluster,
        Spread,
        count_of,
        parse_clusters,
        parse_hosts,
        parse_masters,
        write,
    )
    from subak.live.up.plan import QUEUES, name_of, parse_queue  # noqa: PLC0415

    there = parse_hosts(hosts)
    check_order(order)
    spread = Spread(
        name or name_of(folder), there,
        parse_masters(global_masters, there) if global_masters else tuple(host.name for host in there[:2]),
        parse_clusters(clusters, there) if clusters else (Cluster("a", tuple(host.name for host in there)),),
        tuple(map(parse_queue, queue)) if queue else QUEUES, order, port)
    processes = write(folder, spread, days)
    echo(f"{folder}: federation {spread.name} on {counted(len(there), 'host')}")
    for host in there[:10]:
        echo(f"  {folder / host.name}: " + ", ".join(
            f"{process.role} {process.name}" for process in processes if process.host == host.name))
    if len(there) > 10:
        counts = ", ".join(counted(count, role) for role, count in count_of(processes).items())
        echo(f"  and {len(there) - 10:,} more; in all {counts}")
    single = [cluster.name for cluster in spread.clusters if len(cluster.hosts) == 1]
    if single:
        echo(f"no cluster has a standby: cluster {single[0]} has a single host, and all have one or none has")
    idle = {host.name for host in there} - {process.host for process in processes}
    if idle:
        echo(f"no process is on {', '.join(sorted(idle)[:10])}: no cluster and no global master names it")
    echo(f"1. copy each folder to its host, such as scp -r {folder / there[0].name} {there[0].address}:")
    echo(f"2. start each host: subak up {there[0].name}; or link {there[0].name}/systemd in systemd")
    echo(f"3. ask it: SUBAK_FEDERATION={folder / 'people'} subak machines")
    echo(f"keep {folder / 'ca'}: whoever has ca.key can make certificates; people.token lets its owner do everything")
