"""The node agent's program: `python -m subak.live.agent --state FOLDER --machine NUMBER`.

What is imported here is also in the guard's memory, so it is little.
"""
import argparse
import os
import sys
from collections.abc import Sequence

from subak import exit_codes
from subak.errors import InputError
from subak.live.agent.guard import lock, watch_over
from subak.live.agent.settings import CGROUPS, Settings, checked, open_state
from subak.output.plain import plain


def main(arguments: Sequence[str] | None = None) -> int:
    """Be the guard of an agent until it ends; return its exit code."""
    try:
        settings = checked(_settings(arguments))
        open_state(settings.state)
        if lock(settings.state / "lock") < 0:
            raise InputError(f"{settings.state}: another node agent is at work here")
    except (InputError, OSError) as error:
        return _mistake(error)
    guard = os.getpid()
    return watch_over(lambda: _work(settings, guard))


def _work(settings: Settings, guard: int) -> None:
    from subak.live.agent.loop import work  # noqa: PLC0415  (the guard needs nothing of it)

    try:
        work(settings, guard)
    except (InputError, OSError) as error:
        sys.exit(_mistake(error))


def _settings(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(
        prog="python -m subak.live.agent", description="Run attempts on this machine for a worker.")
    parser.add_argument("--state", required=True, help="folder of the agent's own")
    parser.add_argument("--machine", required=True, type=int, help="number of the machine")
    parser.add_argument("--lease", type=float, default=60.0, help="seconds the worker may be silent (60)")
    parser.add_argument("--lease-grace", type=float, default=-1.0,
                        help="seconds of them that are grace for what then runs (a sixth)")
    parser.add_argument("--cgroups", choices=CGROUPS, default="auto", help="whether to use control groups (auto)")
    parser.add_argument("--attempts", type=int, default=100_000, help="attempts to keep at most, until forgotten")
    parser.add_argument("--output", type=int, default=16 << 20, help="bytes to keep of a stream of output (16 Mi)")
    parser.add_argument("--kept", type=int, default=1 << 30, help="bytes to keep of output that is over (1 Gi)")
    parser.add_argument("--idle", type=float, default=600.0,
                        help="seconds without a worker and without attempts after which to end (600)")
    parser.add_argument("--lifeline", type=int, default=-1, help="number of an open file, at whose end to end (none)")
    given = parser.parse_args(arguments)
    grace_s = given.lease / 6 if given.lease_grace < 0 else given.lease_grace
    return Settings(given.state, given.machine, given.lease, grace_s, given.cgroups, given.attempts, given.output,
                    given.kept, given.idle, given.lifeline)


def _mistake(error: Exception) -> int:
    sys.stderr.write(f"node agent: {plain(str(error))}\n")
    return exit_codes.MISTAKE


if __name__ == "__main__":
    sys.exit(main())
