"""`subak reproduce all`: measures every paper's figures and writes one page of scoreboards."""
from pathlib import Path

from markupsafe import Markup

from subak.cli.reproduce import google_like, papers
from subak.cli.reproduce.board import TITLES, Board
from subak.cli.reproduce.reproduction import Request, run_into
from subak.cli.reproduce.time_left import TimeLeft
from subak.output.writing import new_folder
from subak.report import tags
from subak.report.console import echo, waiting
from subak.report.number_text import NOTHING
from subak.reproduce.page import Section, page, table

TITLE = "Six papers, reproduced"


def all_papers(trace: Path | None, quick: bool, out: Path, seed: int, overwrite: bool) -> None:
    """Reproduce every paper into a folder of its own in *out*, and write the scoreboards."""
    request = Request(None, quick, out, seed, overwrite)
    with new_folder(out, "index.html", overwrite, [trace] if trace else []) as folder:
        boards = [_google_like(trace, seed, _made(folder / "google-like"))]
        others = {"megha": papers.megha(trace, None, quick, seed), "mch": papers.mch(trace, quick, seed),
                  "lotes": papers.lotes(trace, quick, seed), "hmhs": papers.hmhs(None, quick, seed),
                  "dodoor": papers.dodoor(quick, seed)}
        left = TimeLeft([f"{name} {key}" for name, paper in others.items() for key in paper.chosen(None, False)])
        for name, paper in others.items():
            boards.append(run_into(paper, request, _made(folder / name), left))
            echo(f"{name}: {boards[-1].score}", err=True)
        (folder / "index.html").write_bytes(_page(boards, quick))
    for board in boards:
        echo(f"{board.name:12}{board.score}")
    echo(f"Wrote {out / 'index.html'}", err=True)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _google_like(trace: Path | None, seed: int, folder: Path) -> Board:
    found = google_like.reproduced(trace, seed)
    with waiting("Drawing"):
        google_like.write(found, folder)
    return google_like.board(found, folder.name)


def _page(boards: list[Board], quick: bool) -> bytes:
    sections = []
    for board in boards:
        cells: list[list[object]] = [[row[0], row[1] or NOTHING, *row[2:]] for row in board.rows]
        link = tags.tag("p", f"{board.score}. ", tags.tag("a", "Figures and tables", href=f"{board.name}/index.html"))
        sections.append(Section(board.title, Markup("").join([link, table(board.title, TITLES, cells)])))
    said = "; ".join(f"{board.name}: {board.score}" for board in boards)
    return page(TITLE, said + ("." if not quick else ". Quick versions: claims are about the full sizes."),
                ["Each claim is judged by the rule beside it; where an interval reaches over a bound it is undecided"],
                sections)
