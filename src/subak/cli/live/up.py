"""`subak up` and `subak down`: start and stop a whole federation on this machine."""
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from subak import exit_codes
from subak.cli.ending import OF_LIVE, CommandEndedError, without_live
from subak.cli.live.options import if_interrupted
from subak.cli.live.show import agreed, remark
from subak.errors import InputError
from subak.live.client.settings import FOLDER, usual_folder
from subak.report.console import echo

READY_S, END_S = 120.0, 300.0  # that a detached federation has to be ready, and `subak down` waits for tasks

FolderArgument = Annotated[Path | None, typer.Argument(
    metavar="[FOLDER]", show_default=False,
    help=f"Where all of it is kept [default: the folder of SUBAK_FEDERATION, else ./{FOLDER}].")]


def up(
    folder: FolderArgument = None,
    clusters: Annotated[int | None, typer.Option(
        "--clusters", metavar="N", show_default=False,
        help="How many clusters, each with a standby [default: 2, or 1 for a single worker].")] = None,
    workers: Annotated[int | None, typer.Option(
        "--workers", metavar="N", show_default=False,
        help="How many workers share this machine, in the clusters in turn; of a folder that is there, as many are "
             "added [default: one, with all cores and memory for tasks; or one for each of --clusters].")] = None,
    queue: Annotated[list[str] | None, typer.Option(
        "--queue", metavar="NAME[=WEIGHT]", show_default=False,
        help="A queue; once for each [default: one, named default].")] = None,
    capacity: Annotated[str | None, typer.Option(
        "--capacity", metavar="cpu=N,memory=N", show_default=False,
        help="The capacity of each worker, such as cpu=2,memory=4Gi [default: an equal part of this machine, "
             "whole for one worker].")] = None,
    order: Annotated[str | None, typer.Option(
        "--order", metavar="NAME", show_default=False,
        help="The order in which queues are served: round-robin, or a fair order such as drf or mch [default: "
             "drf].")] = None,
    preemption: Annotated[str | None, typer.Option(
        "--preemption", metavar="off|strict|paper", show_default=False,
        help="Whether a queue below its share may preempt tasks of others [default: off].")] = None,
    port: Annotated[int, typer.Option(
        "--port", metavar="N", min=1, max=65_000, help="The first port to try.")] = 7433,
    detach: Annotated[bool, typer.Option(
        "--detach", "-d", help="Return when all is ready, and leave it running.")] = False,
) -> None:
    """Start a federation on this machine: two global masters, clusters with their standbys, workers.

    One worker has all cores of this machine, and 4/5 of its memory, for tasks. The first start creates the folder, with
    a file for each process; later starts reuse it: tasks that wait wait on, and those that were stopped while they ran
    start again from the beginning. All ports are on 127.0.0.1. A process that dies
    is restarted. Ctrl-C stops all in order: running tasks are stopped, and start again from the beginning at the next
    start; a second Ctrl-C kills. The exit code is 0 either way; of --detach 1 if
    no machine has joined.

    - `subak up` starts one in ./subak-federation; in the same folder `subak run --queue web -- echo hello` asks it.
    - `subak up lab --workers 4 --queue research=2 --queue web` divides this machine among four workers;
      `SUBAK_FEDERATION=lab subak list`.
    - `subak up --capacity cpu=4` lets each worker run four tasks of a core, however many cores there are; so does
      `subak run --cpu 0.25`, of a quarter each.
    - `subak up lab --capacity gpu=2` says that each worker has two GPUs, for jobs with --gpus; they are counted,
      and none is hidden from a job.
    - `subak up --detach` leaves it running; `subak down` ends it.
    """
    if str(folder) == "detach" and not Path("detach").exists():
        raise InputError("detach: is the name of a folder here; is --detach meant? (mkdir detach first, if not)")
    folder = usual_folder() if folder is None else folder
    lacking = [name for name in OF_LIVE if find_spec(name) is None]
    if lacking:  # before anything is made, and processes are started that cannot say so
        raise InputError(without_live(lacking))
    from subak.live.up.folder import Home  # noqa: PLC0415  (other commands do without)
    from subak.live.up.plan import Wish, parse_capacity, parse_queue  # noqa: PLC0415

    wish = Wish(clusters, workers, None if queue is None else tuple(map(parse_queue, queue)),
                None if capacity is None else parse_capacity(capacity), order, preemption)
    if detach:
        _detach(folder)
        return
    home = Home(folder, wish, port)
    from subak.cli.live.up_screen import serve  # noqa: PLC0415

    serve(home)


def _detach(folder: Path) -> None:
    from subak.cli.live.up_screen import how_to_ask  # noqa: PLC0415  (see above)
    from subak.live.up.control import picture_of, start_detached, workers_of  # noqa: PLC0415
    from subak.live.up.folder import members_of  # noqa: PLC0415
    from subak.live.up.picture import NO_MACHINE  # noqa: PLC0415

    began = time.monotonic()
    if sys.stderr.isatty():
        remark([f"{folder}: starting; this takes some seconds"])
    arguments = [each for each in sys.argv[2:] if each not in ("--detach", "-d")]
    with if_interrupted(lambda: f"interrupted; what was started goes on, and subak down {folder} ends it"):
        pid = start_detached(folder, arguments, READY_S)
    after = f"after {time.monotonic() - began:.1f} s, as process {pid}"
    picture, workers = picture_of(folder), workers_of(folder)
    missing = picture.missing(workers) if picture.masters else []  # as far as can be seen
    is_without = bool(workers) and len(missing) >= len(workers)
    echo(f"{folder}: {f'masters are ready {after}, but {NO_MACHINE}' if is_without else f'ready {after}'}; "
         f"subak down {folder} ends it")
    for words in picture.of_before():
        echo(words)
    echo(how_to_ask(folder))
    remark([*members_of(folder)[1],
            *[f"not there: {', '.join(missing)}; {folder / 'log'} says why"][:len(missing)]])
    if is_without:
        raise CommandEndedError(exit_codes.OTHERWISE)


def down(
    folder: FolderArgument = None,
    now: Annotated[bool, typer.Option("--now", help="Kill running tasks at once, without a grace period.")] = False,
    yes: Annotated[bool, typer.Option(
        "--yes", "-y", help="Do not ask first; it asks only at a terminal, and only while tasks run.")] = False,
) -> None:
    """Stop the federation of a folder; tasks that run start again from the beginning at the next `subak up`.

    It waits until all processes have ended. Tasks that wait wait on, and no job is lost.

    - `subak down` stops the one in ./subak-federation.
    - `subak down lab --now` does not wait for tasks that take long to end.
    """
    from subak.live.up.control import stop  # noqa: PLC0415

    folder = usual_folder() if folder is None else folder
    with if_interrupted(lambda: f"interrupted; subak down {folder} waits again for its end"):
        before = stop(folder, now, END_S, lambda before: yes or _may_stop(before.would_stop()))
    for words in before.stopped():
        echo(words)
    echo(f"{folder}: all processes have ended; it keeps all jobs for the next subak up, until you delete it")


def _may_stop(what_runs: str) -> bool:
    """Whether a federation may be stopped: nothing runs in it, nobody is there to be asked, or somebody says yes."""
    return not what_runs or not sys.stdin.isatty() or agreed(f"{what_runs}. Stop?")
