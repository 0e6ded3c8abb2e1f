"""What a task of a Megha federation costs as machines, masters, load and delay grow, and a very large federation.

Jobs of 20 alike tasks in a Poisson stream; in each panel of the chart one thing grows and the others stay. Every case
is a process of its own, so that its memory is its own. `--chart FILE` writes the chart that docs/performance.md shows.
`--large` runs 100 global and 1,000 local masters, 1,000,000 machines and 10,000,000 tasks instead: required are 24 GB
and 5 minutes.
"""
import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import altair as alt
import polars as pl

from subak.federation.settings import Federation
from subak.policy import find_scheduler
from subak.reproduce.workloads import machines, steady, workload_of
from subak.simulator.simulate import simulate


class Case(NamedTuple):
    """What is simulated."""

    machines: int = 10_000
    global_masters: int = 10
    local_masters: int = 10
    load: float = 0.8
    delay: float = 0.0005
    tasks: int = 200_000


USUAL, LARGE = Case(), Case(1_000_000, 100, 1_000, 0.8, 0.0005, 10_000_000)
GROWTH: dict[str, tuple[Case, ...]] = {
    "machines": tuple(USUAL._replace(machines=size) for size in (1_000, 3_000, 10_000, 30_000, 100_000)),
    "global masters": tuple(USUAL._replace(global_masters=count) for count in (1, 3, 10, 30, 100)),
    "local masters": tuple(USUAL._replace(local_masters=count) for count in (1, 3, 10, 30, 100)),
    "load": tuple(USUAL._replace(load=load) for load in (0.2, 0.4, 0.6, 0.8, 0.95)),
    "delay (ms)": tuple(USUAL._replace(delay=delay) for delay in (0.0001, 0.0005, 0.002, 0.01, 0.05)),
}
FIELDS = ("machines", "global_masters", "local_masters", "load", "delay")
ROUNDS = 3


def measure(case: Case, rounds: int) -> dict[str, float]:
    """Return seconds of the loop (the least of several runs) and in all, messages, and the peak memory in GB."""
    began = time.perf_counter()
    workload = workload_of(steady(case.tasks, case.machines, case.load, seed=1))
    fleet = machines(case.machines, case.local_masters)
    settings = Federation(global_masters=case.global_masters, local_masters=case.local_masters, delay=case.delay)
    megha, least = find_scheduler("megha"), float("inf")
    for _ in range(rounds):
        outcome = simulate(workload, fleet, megha, federation=settings)
        least = min(least, outcome.loop_result.seconds)
        assert outcome.federated is not None
        messages = int(outcome.federated.network.handled.sum())
        del outcome
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {"loop": least, "all": time.perf_counter() - began, "messages": messages, "peak_gb": peak}


def apart(case: Case, rounds: int) -> dict[str, float]:
    """Return what `measure` finds in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--case", json.dumps(case), "--rounds", str(rounds)], check=True,
                          capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def grow() -> pl.DataFrame:
    """Print what a task costs in each case, and return it."""
    rows = []
    simulate(workload_of(steady(100, 100, 0.5, seed=1)), machines(100, 2), find_scheduler("megha"),
             federation=Federation(global_masters=2, local_masters=2))  # compile, or load, the engine
    for (what, cases), field in zip(GROWTH.items(), FIELDS, strict=True):
        for case in cases:
            value = getattr(case, field) * (1000 if field == "delay" else 1)
            found = apart(case, ROUNDS)
            micros = 1e6 * found["loop"] / case.tasks
            rows.append({"what": what, "value": float(value), "microseconds": micros,
                         "messages": found["messages"] / case.tasks})
            print(f"{what:<15}{value:>9,g}: {micros:>7.2f} us a task, {found['messages'] / case.tasks:>5.1f} messages, "
                  f"{found['peak_gb']:.2f} GB", flush=True)
    return pl.DataFrame(rows)


def chart(rows: pl.DataFrame, file: Path) -> None:
    """Write the chart: a panel for each thing that grows."""
    panels = []
    for what in GROWTH:
        of = rows.filter(pl.col("what") == what)
        scale = alt.Scale(type="linear" if what == "load" else "log", nice=False)
        panels.append(alt.Chart(of).mark_line(point=True).encode(
            x=alt.X("value:Q", scale=scale, title=what,
                    axis=alt.Axis(values=of["value"].to_list(), grid=False,
                                  format="~s" if of["value"].max() >= 1000 else "~g")),
            y=alt.Y("microseconds:Q", scale=alt.Scale(domain=[0, float(rows["microseconds"].max()) * 1.05]),
                    title="microseconds a task" if what == "machines" else None),
        ).properties(width=150, height=180))
    alt.hconcat(*panels).properties(background="white").save(file)


def large() -> None:
    """Print what the very large federation takes."""
    found = apart(LARGE, 1)
    print(f"{LARGE.global_masters} x {LARGE.local_masters:,} masters, {LARGE.machines:,} machines, "
          f"{LARGE.tasks:,} tasks: {found['all']:.0f} s in all (required: 300), {found['loop']:.0f} s of it the loop, "
          f"{found['messages']:,.0f} messages, {found['peak_gb']:.1f} GB (required: 24)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write the chart, too")
    parser.add_argument("--large", action="store_true", help="the very large federation instead")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(Case(*json.loads(given.case)), given.rounds)))
    elif given.large:
        large()
    else:
        rows = grow()
        if given.chart is not None:
            chart(rows, given.chart)


if __name__ == "__main__":
    main()
