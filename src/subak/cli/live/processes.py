"""`subak global-master`, `local-master`, `worker`: start one process of a federation from its file.

A worker loads nothing of the scheduler: it runs on every machine.
"""
from pathlib import Path
from typing import Annotated

import typer

FileArgument = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The file of this process; paths in it are "
                                              "meant from its folder.", show_default=False)]


def global_master(file: FileArgument) -> None:
    """Run a global master: it takes jobs, and places their tasks on the machines of all clusters.

    It ends in order on Ctrl-C or SIGTERM, and resumes when it is started again. Its file:

        name = "g0"                       # one of those in the file of the federation
        data = "data/g0"                  # the folder of its store
        federation = "federation.toml"    # shared by all masters
        people_token_file = "people.token"    # made when it first starts
        listen = "0.0.0.0:7433"           # left out: the address that the federation's file says
        [tls]                             # left out: a join token, and only on this machine
        certificate = "g0.crt"
        key = "g0.key"
        ca = "ca.crt"
        revoked = "ca.crl"                # may be left out

    The file of the federation, in which masters, clusters and queues are listed:

        name = "home"
        global_master = [{name = "g0", http = "127.0.0.1:7433"}]
        cluster = [{name = "a", local_master = "127.0.0.1:7434", standby = "127.0.0.1:7435"}]
        queue = [{name = "research", weight = 2.0}, {name = "web"}]

    - `subak global-master g0.toml`
    - `subak up` starts a whole federation on this machine, and writes such files.
    """
    _serve("global-master", file)


def local_master(file: FileArgument) -> None:
    """Run the local master of a cluster, or its standby: it starts and ends tasks on the cluster's machines.

    It ends in order with Ctrl-C or SIGTERM. Its file:

        cluster = "a"                     # one of those in the file of the federation
        standby = false                   # true: take over when the other one falls silent
        data = "data/a"
        federation = "federation.toml"
        [tls]                             # as of a global master
        certificate = "local-master-a.crt"
        key = "local-master-a.key"

    - `subak local-master a.toml`
    """
    _serve("local-master", file)


def worker(
    file: FileArgument,
    leave: Annotated[bool, typer.Option("--leave", help="Let the machine leave the federation for good when the worker "
                                        "is told to end, as `leave = true` in its file does.")] = False,
) -> None:
    """Run the worker of this machine: it joins a cluster, and runs tasks.

    Tasks go on for a lease after the worker ends; a restarted worker takes them over again. Its file:

        name = "node-3"
        local_masters = ["127.0.0.1:7434", "127.0.0.1:7435"]    # of its cluster, the standby too
        data = "data/node-3"
        join_token_file = "join.token"
        capacity = {cpu = 4, memory = "8Gi"}      # of cores also 0.5 or "500m"; left out: all that there is
        attributes = {rack = "b"}                 # for constraints of jobs
        run_as = "submitter"                      # under root, of tasks that name no user: or an account

    With `--leave` the machine leaves for good when the worker is told to end (Ctrl-C, SIGTERM): running tasks get their
    grace period and run elsewhere; then the name and the number of the machine are free. A second signal ends the
    worker at once. A machine that left may join again with a new folder.

    - `subak worker node-3.toml`
    - `subak worker node-3.toml --leave`
    """
    _serve("worker", file, leave)


def _serve(role: str, file: Path, leave: bool = False) -> None:
    from subak.live.process.__main__ import serve  # noqa: PLC0415  (other commands do without)

    serve(role, file, leave=leave)
