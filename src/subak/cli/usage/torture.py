"""Declares the arguments and help of `subak torture`."""
from typing import Annotated

import typer

from subak.cli.ending import loading
from subak.cli.limits import COUNT_MAX, SEED_MAX
from subak.errors import InputError
from subak.simulator.exhaustive.roles.configurations import CONFIGURATIONS

SEEDS, FIRST = 1000, 1  # unless others are asked for
STATES_MAX, STATES_LIMIT = 20_000_000, 200_000_000  # unless another is asked for, and that at most


def _refuse(contradicts: object, why: str) -> None:
    """Raise InputError where options contradict each other."""
    if contradicts:
        raise InputError(why)


def torture(
    seeds: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=COUNT_MAX, help=f"How many federations to torture [default: {SEEDS}].",
        show_default=False)] = None,
    first: Annotated[int | None, typer.Option(
        metavar="SEED", min=0, max=SEED_MAX, help=f"The seed of the first [default: {FIRST}].",
        show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(
        metavar="SEED", min=0, max=SEED_MAX, help="Replay only this seed, and print every message with its answers; "
                                                  "without the other options.", show_default=False)] = None,
    coverage: Annotated[bool, typer.Option(
        "--coverage", help="Print how often each row of the roles' transition tables was taken; with `--live`, how "
                           "often each kind of event happened.")] = False,
    shrinking: Annotated[bool, typer.Option(
        "--shrink/--no-shrink", help="Make a failing federation smaller before its messages are printed.")] = True,
    live: Annotated[bool, typer.Option(
        "--live", help="Torture role processes: with disks, connections and node agents that fail.",
    )] = False,
    exhaustive: Annotated[bool, typer.Option(
        "--exhaustive", help="Instead, walk every order in which the messages and timers of tiny federations can come; "
                             "with `--config` and `--states-max` only.")] = False,
    config: Annotated[list[str] | None, typer.Option(
        metavar="NAME", help="With `--exhaustive`: only this one of "
                             f"{', '.join(each.name for each in CONFIGURATIONS)}; may be repeated [default: all].",
        show_default=False)] = None,
    states_max: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=STATES_LIMIT, help="With `--exhaustive`: stop a walk after so many states "
                                                f"[default: {STATES_MAX}].", show_default=False)] = None,
) -> None:
    """Torture Megha: small random federations with lost, doubled and late messages, partitions and crashes.

    After every message all invariants are checked: no machine oversubscribed, no task run twice at once, every view a
    past state, nothing lost. When the faults are over, everything must come to rest. A failure prints its seed.

    - `subak torture --seeds 1000` tortures a thousand federations; exit code 1 if one fails, 2 if some row of
      the roles' transition tables was never taken (with 1000 seeds or more).
    - `subak torture --seed 26` replays one and prints its messages; seed 0 is written by hand and always comes first.
    - `subak torture --live` tortures role processes: killed between any two steps, machines switched off, disks full,
      connections cut, clients that submit again. Every job that was acknowledged ends once, no task runs twice at once.
    - `subak torture --exhaustive` is a model checker: it visits every state of some tiny federations that any
      order of messages and timers, with a few faults, can reach, and checks that the work can still be done from each.
      It prints the shortest way to a fault; exit code 1.
    """
    others = seeds is not None or first is not None or coverage or not shrinking
    if exhaustive:
        _refuse(others or live or seed is not None, "--exhaustive: goes with --config and --states-max only")
    else:
        _refuse(config or states_max is not None, "--config, --states-max: go with --exhaustive only")
        _refuse(seed is not None and others, "--seed: replays one federation, so the other options must be left out")
    with loading():
        from subak.cli.torture import command  # noqa: PLC0415  (loads the simulator)

    if exhaustive:
        command.walk(config or [], states_max or STATES_MAX)
    elif seed is not None:
        command.replay(seed, live)
    else:
        command.torture(FIRST if first is None else first, seeds or SEEDS, coverage, shrinking, live)
