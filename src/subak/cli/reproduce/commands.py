"""`subak reproduce`: sets a paper's figures beside those measured here."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.ending import loading
from subak.cli.limits import SEED_MAX
from subak.cli.listed import LOOK
from subak.report.console import echo

app = typer.Typer(help="Print a paper's figures beside what is measured here, and draw its charts.",
                  invoke_without_command=True, **LOOK)
PAPERS = {
    "google-like": "Da Costa, Grange, De Courchelle: Modeling and Generating large-scale Google-like Workload",
    "megha": "Thiyyakat, Kalambur, Sitaram: Megha: Decentralized Global Fair Scheduling for Federated Clusters",
    "lotes": "Tran, Padmanabhan, Zhang, Li, Down, Beck: Multi-Stage Resource-Aware Scheduling for Data Centers",
    "hmhs": "Chen, Shen, Chen, Guo: HMHS: Hybrid Multistage Heuristic Scheduling Algorithm for Heterogeneous MapReduce",
    "dodoor": "Dodoor: Efficient Randomized Decentralized Scheduling with Load Caching (arXiv 2510.12889)",
    "mch": "You, Wang, Xu, Luo, Chen, Li: Low Complexity Hierarchical Scheduling for Diverse Datacenter Jobs",
}


@app.callback()
def papers(context: typer.Context) -> None:
    """Print a paper's figures beside what is measured here; without a paper's name, list the papers."""
    if context.invoked_subcommand is None:
        for name, title in PAPERS.items():
            echo(f"{name}  {title}")


@app.command("google-like")
def google_like(
    trace: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="A folder with parts of Google's 2011 trace (task_events/) [default: the shipped sample "
                               "of it].", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Also write index.html and figures 1 to 7 (svg, png) to this new folder.")] = None,
    seed: Annotated[int, typer.Option(
        metavar="N", min=0, max=SEED_MAX, help="Seed of the million tasks that are generated.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder of --out if it exists.")] = False,
) -> None:
    """Tables I to VII and the KS figures: the paper's, measured, generated; figures 1 to 7 with --out.

    Example: `subak reproduce google-like --trace traces/google2011 --out google-like`.
    """
    with loading():
        from subak.cli.reproduce.google_like import google_like as reproduce_all  # noqa: PLC0415  (slow to import)

    reproduce_all(trace, out, seed, overwrite)


TraceOption = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="A folder with parts of Google's 2011 trace (task_events/, machine_events/) [default: the "
                           "shipped sample of it].", show_default=False)]
OutOption = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="Also write index.html and the figures (svg, png, csv) to this new folder.")]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, max=SEED_MAX, help="Seed of all that is drawn.")]
ReplaceOption = Annotated[bool, typer.Option("--overwrite", help="Replace the folder of --out if it exists.")]


@app.command("all")
def all_papers(
    out: Annotated[Path, typer.Option(
        metavar="FOLDER", help="The new folder: index.html with the six scoreboards, and a folder for each paper.")],
    trace: TraceOption = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Small versions of all experiments: a few minutes.")] = False,
    seed: SeedOption = 1,
    overwrite: ReplaceOption = False,
) -> None:
    """Every paper's own figures, and one page with the six scoreboards.

    Example: `subak reproduce all --quick --out papers`.
    """
    with loading():
        from subak.cli.reproduce.all_papers import all_papers as reproduce_all  # noqa: PLC0415  (slow to import)

    reproduce_all(trace, quick, out, seed, overwrite)


@app.command("megha")
def megha(
    trace: TraceOption = None,
    alibaba: Annotated[Path | None, typer.Option(
        metavar="PATH", help="Alibaba's 2018 trace: a folder with batch_task, or that file [default: tasks of Google's "
                             "stand in].", show_default=False)] = None,
    only: Annotated[str | None, typer.Option(
        metavar="FIGURES", help="Figures to reproduce, such as 3,4,10; why, what explains them; past the paper: "
                                "heartbeat, load, large; prototype (Fig. 12): a live federation on this machine, for "
                                "five minutes [default: 3 to 11 and why; with --out and without --quick all but the "
                                "prototype].",
        show_default=False)] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="A tenth of the machines, a fifth of the tasks: seconds in place of minutes.")] = False,
    out: OutOption = None,
    seed: SeedOption = 1,
    overwrite: ReplaceOption = False,
) -> None:
    """Fig. 3 to 11: each claim beside what federations of this size do here; past the paper with --out.

    Example: `subak reproduce megha --quick --only 3,4,6 --out megha`; `subak reproduce megha --only prototype`.
    """
    with loading():
        from subak.cli.reproduce import papers, reproduction  # noqa: PLC0415  (slow to import)

    request = reproduction.Request(only, quick, out, seed, overwrite)
    reproduction.run(papers.megha(trace, alibaba, quick, seed), request)


@app.command("mch")
def mch(
    trace: TraceOption = None,
    only: Annotated[str | None, typer.Option(
        metavar="FIGURES", help="Figures to reproduce among 4, 5, root (algorithm and implementation); past the paper: "
                                "tree, large, federation [default: 4, 5, root; with --out and without --quick all].",
        show_default=False)] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Fewer jobs and decisions, smaller federations: seconds in place of minutes.")] = False,
    out: OutOption = None,
    seed: SeedOption = 1,
    overwrite: ReplaceOption = False,
) -> None:
    """Fig. 4 and 5: the shares of hierarchical orders, and how their run time grows; past the paper with --out.

    Example: `subak reproduce mch --quick --only 4 --out mch`.
    """
    with loading():
        from subak.cli.reproduce import papers, reproduction  # noqa: PLC0415  (slow to import)

    request = reproduction.Request(only, quick, out, seed, overwrite)
    reproduction.run(papers.mch(trace, quick, seed), request)


@app.command("lotes")
def lotes(
    trace: TraceOption = None,
    only: Annotated[str | None, typer.Option(
        metavar="FIGURES", help="Figures to reproduce among tables, 6, 7, 8; why and loads, what explains them; "
                                "past the paper: options, errors (wrong requests), mix (of classes, predicted), "
                                "usage (that varies), locality, fairness, federation [default: tables, 6, 7, 8, why, "
                                "loads; with --out and without --quick all].", show_default=False)] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="A month of 60,000 tasks on one of fifty machines: seconds in place of minutes.")] = False,
    out: OutOption = None,
    seed: SeedOption = 1,
    overwrite: ReplaceOption = False,
) -> None:
    """Tables 1 and 2, Fig. 6 to 8: Greedy, Tetris and LoTES on the trace and on a month; past the paper with --out.

    Example: `subak reproduce lotes --trace traces/google2011 --out lotes`.
    """
    with loading():
        from subak.cli.reproduce import papers, reproduction  # noqa: PLC0415  (slow to import)

    request = reproduction.Request(only, quick, out, seed, overwrite)
    reproduction.run(papers.lotes(trace, quick, seed), request)


@app.command("hmhs")
def hmhs(
    jobs: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="A workload of Hadoop's job history, made by `subak convert rumen`: its jobs too.",
        show_default=False)] = None,
    only: Annotated[str | None, typer.Option(
        metavar="FIGURES", help="Figures to reproduce among 1, 2; past the paper: baselines; with --jobs yahoo, "
                                "locality [default: 1, 2; with --out and without --quick all].",
        show_default=False)] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Fewer seeds, jobs and machines: seconds in place of minutes.")] = False,
    out: OutOption = None,
    seed: Annotated[int, typer.Option(
        metavar="N", min=0, max=SEED_MAX, help="The first seed of all that is drawn.")] = 1,
    overwrite: ReplaceOption = False,
) -> None:
    """Fig. 1 and 2: the makespan against the number of jobs and the share of slow machines; past the paper with --out.

    Example: `subak reproduce hmhs --quick --out hmhs`.
    """
    with loading():
        from subak.cli.reproduce import papers, reproduction  # noqa: PLC0415  (slow to import)

    request = reproduction.Request(only, quick, out, seed, overwrite)
    reproduction.run(papers.hmhs(jobs, quick, seed), request)


@app.command("dodoor")
def dodoor(
    only: Annotated[str | None, typer.Option(
        metavar="FIGURES", help="Figures to reproduce; azure is the only one.", show_default=False)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and requests.")] = False,
    out: OutOption = None,
    seed: Annotated[int, typer.Option(
        metavar="N", min=0, max=SEED_MAX, help="The first seed of all that is drawn.")] = 1,
    overwrite: ReplaceOption = False,
) -> None:
    """Messages, throughput and latency beside Sparrow's, of virtual machines on four kinds of machines.

    Example: `subak reproduce dodoor --out dodoor`.
    """
    with loading():
        from subak.cli.reproduce import papers, reproduction  # noqa: PLC0415  (slow to import)

    request = reproduction.Request(only, quick, out, seed, overwrite)
    reproduction.run(papers.dodoor(quick, seed), request)
