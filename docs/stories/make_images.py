"""Run the commands of README's stories in an empty folder, and draw docs/images/story-*.svg of what they wrote.

    .venv/bin/python docs/stories/make_images.py [--keep FOLDER]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import msgspec
import polars as pl

from subak.experiment.sizing.answer import Sizing
from subak.measures.run_folders import load_runs
from subak.output.writing import write_file
from subak.report.charts import runs as charts
from subak.report.charts.parts import Chart
from subak.report.charts.sizes import size_chart
from subak.report.charts.theme import LIGHT, SERIES
from subak.report.document import picture, unchecked
from subak.report.pictures import spec_of, still

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CRASHED = {"alone": "no standby", "standby": "with a standby"}
DOWN = "subak down"
QUEUES = ("research", "web")
ROW_HEIGHT = 44  # pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="the folder to run in, or in which they ran: then they do not again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="st") as folder:  # a short name: sockets are in it
        here = Path(given.keep or folder).resolve()
        here.mkdir(exist_ok=True)
        if not any(here.iterdir()):
            run(here)
        for name, spec in pictures(here):
            write_file(IMAGES / f"story-{name}.svg", picture(spec, "svg"))


def run(here: Path) -> None:
    """Run every command of the stories; `python` and `subak` are those of this environment."""
    (here / "docs").symlink_to(ROOT / "docs")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    try:
        for command in commands():
            if command == DOWN:
                keep_histories(here, environment)
            print(command)
            subprocess.run(["bash", "-c", command], cwd=here, env=environment, check=True, stdout=subprocess.DEVNULL)
    except BaseException:
        subprocess.run([*DOWN.split(), "--now"], cwd=here, env=environment, check=False)
        raise


def keep_histories(here: Path, environment: dict[str, str]) -> None:
    """Write what happened to the job of each queue, which the federation says as long as it runs."""
    def said(*words: str) -> bytes:
        return subprocess.run(["subak", *words, "-o", "json"], cwd=here, env=environment, check=True,
                              stdout=subprocess.PIPE).stdout

    for job in msgspec.json.decode(said("list"))["items"]:
        (here / f"{job['queue']}.json").write_bytes(said("history", job["id"]))


def commands() -> list[str]:
    blocks = CONSOLE.findall((ROOT / "README.md").read_text())
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def pictures(here: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the specification of each picture, of the folders that the commands wrote."""
    with unchecked():
        sizing = msgspec.json.decode((here / "size/size.json").read_bytes(), type=Sizing)
        yield "size", still(spec_of(size_chart(sizing, 0)))
        yield "policies", still(spec_of(charts.wait_comparison(load_runs(here / "policies"))))
        yield "shares", still(spec_of(share_chart(pl.read_csv(here / "shares/shares.csv"))))
        runs = [replace(each, summary=msgspec.structs.replace(each.summary, label=CRASHED[each.folder.name]),
                        settings=()) for each in load_runs(*(here / name for name in CRASHED))]
        yield "crash", still(spec_of(charts.queue_length(runs)))
        yield "scripts", still(spec_of(stint_chart(attempts(here))))


def share_chart(shares: pl.DataFrame) -> Chart:
    """Draw what each queue without others below it gets in the tree, and by flat weights; ticks are guarantees."""
    ways = {"H-DRF": "the tree (H-DRF)", "M-CH": "flat weights (M-CH)"}
    inner = {name.rpartition("/")[0] for name in shares["queue"] if name}
    leaves = shares.filter(~pl.col("queue").is_in(["", *inner]))
    rows = [{"queue": row["queue"], "way": words, "share": row[way], "guarantee": row["guarantee"]}
            for row in leaves.iter_rows(named=True) for way, words in ways.items()]
    names = leaves["queue"].to_list()
    base = alt.Chart(alt.InlineData(values=rows), height=ROW_HEIGHT * len(names)).encode(
        y=alt.Y("queue:N", title=None, sort=names, axis=alt.Axis(ticks=False, tickBand="extent", labelLimit=200)))
    across = alt.X("guarantee:Q", title="dominant share", scale=alt.Scale(zero=True),
                   axis=alt.Axis(format="%", tickCount=6))
    ticks = base.mark_tick(thickness=2, size=ROW_HEIGHT - 12, color=LIGHT["quiet"]).encode(x=across)
    marks = base.mark_point(filled=True, size=110, opacity=1).encode(
        x="share:Q", yOffset=alt.YOffset("way:N", sort=[*ways.values()], scale=alt.Scale(paddingOuter=0.4)),
        color=alt.Color("way:N", scale=alt.Scale(domain=[*ways.values()])),
        shape=alt.Shape("way:N", scale=alt.Scale(domain=[*ways.values()])))
    title = alt.Title("Who gets what", subtitle="Dominant share of each queue; the tick is what it is guaranteed")
    return alt.layer(ticks, marks).properties(title=title, width="container", usermeta={"legend": [*ways.values()]})


def attempts(here: Path) -> pl.DataFrame:
    """Return when which queue's tasks ran on which worker, of the histories of the two jobs."""
    rows = []
    for queue in QUEUES:
        began: dict[str, tuple[float, str]] = {}
        for event in msgspec.json.decode((here / f"{queue}.json").read_bytes()):
            if event["what"] == "began":
                began[event["id"]] = event["at"], event["machine"]
            elif event["what"] in ("finished", "attempt lost"):
                rows.append((queue, *began[event["id"]], event["at"]))
    table = pl.DataFrame(rows, ["queue", "begin", "worker", "end"], orient="row")
    first = pl.col("begin").min()
    return table.with_columns(pl.col("begin") - first, pl.col("end") - first).sort("worker", "begin")


def stint_chart(table: pl.DataFrame) -> Chart:
    """Draw a row a worker, a bar a task, a colour a queue."""
    bars: Chart = alt.Chart(alt.InlineData(values=table.to_dicts()), height=ROW_HEIGHT * table["worker"].n_unique())
    return bars.mark_bar(height={"band": 0.8}, stroke="white", strokeWidth=1.5).encode(
        x=alt.X("begin:Q", title="seconds since the first task began", axis=alt.Axis(tickCount=10)), x2="end:Q",
        y=alt.Y("worker:N", title="worker", axis=alt.Axis(grid=False, ticks=False)),
        color=alt.Color("queue:N", scale=alt.Scale(domain=QUEUES, range=[LIGHT[name] for name in SERIES[:2]]))
    ).properties(width="container", usermeta={"legend": [*QUEUES]}, title=alt.Title(
        "Which worker ran whose task when", subtitle="A bar a task; research weighs 2, web 1"))


if __name__ == "__main__":
    main()
