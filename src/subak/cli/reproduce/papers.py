"""Lists the papers that `subak reproduce` knows, with the options of each."""
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from subak.cli.reproduce.reproduction import Notify, Paper
from subak.errors import InputError
from subak.fleet.table import Fleet, read_fleet
from subak.output.workplaces import is_folder
from subak.reproduce.claims import Figure, Reproduction
from subak.reproduce.dodoor import experiments as dodoor_paper
from subak.reproduce.hmhs import experiments as hmhs_paper
from subak.reproduce.hmhs import study as hmhs_study
from subak.reproduce.mch import experiments as mch_paper
from subak.reproduce.mch import study as mch_study
from subak.reproduce.megha import experiments as megha_paper
from subak.reproduce.megha.study import QUICK, Scale, Study
from subak.reproduce.workloads import read_google
from subak.workload.table import Workload, read_workload

if TYPE_CHECKING:
    import altair as alt


def megha(trace: Path | None, alibaba: Path | None, quick: bool, seed: int) -> Paper:
    """Return the Megha paper on these traces."""

    def refuse() -> None:
        if alibaba is not None and not alibaba.exists():
            raise InputError(f"{alibaba}: no such file or folder")

    def reproduce(keys: Iterable[str], notify: Notify) -> Reproduction:
        google, fleet = _google(trace, notify)
        return megha_paper.reproduce(Study(QUICK if quick else Scale(), seed, notify, google, fleet, alibaba), keys)

    def draw(figure: Figure) -> "alt.TopLevelMixin":
        from subak.reproduce.megha import figures as megha_figures  # noqa: PLC0415  (slow to import, and most calls draw nothing)

        return megha_figures.draw(figure)

    return Paper("Megha, reproduced", megha_paper.chosen_figures, reproduce, draw, refuse, _named(trace, alibaba))


def mch(trace: Path | None, quick: bool, seed: int) -> Paper:
    """Return the MCH paper on this trace."""

    def reproduce(keys: Iterable[str], notify: Notify) -> Reproduction:
        google, _ = _google(trace, notify)
        scale = mch_study.QUICK if quick else mch_study.Scale()
        return mch_paper.reproduce(mch_study.Bench(scale, seed, notify, google), keys)

    def draw(figure: Figure) -> "alt.TopLevelMixin":
        from subak.reproduce.mch import figures as mch_figures  # noqa: PLC0415  (as above)

        return mch_figures.draw(figure)

    return Paper("MCH, reproduced", mch_paper.chosen_figures, reproduce, draw, inputs=_named(trace))


def lotes(trace: Path | None, quick: bool, seed: int) -> Paper:
    """Return the LoTES paper on this trace."""
    from subak.reproduce.lotes import experiments as lotes_paper  # noqa: PLC0415  (scipy and HiGHS take a while to load)
    from subak.reproduce.lotes import study as lotes_study  # noqa: PLC0415

    def reproduce(keys: Iterable[str], notify: Notify) -> Reproduction:
        google, fleet = _google(trace, notify)
        scale = lotes_study.QUICK if quick else lotes_study.Scale()
        return lotes_paper.reproduce(lotes_study.Study(scale, seed, notify, google, fleet), keys)

    def draw(figure: Figure) -> "alt.TopLevelMixin":
        from subak.reproduce.lotes import figures as lotes_figures  # noqa: PLC0415  (as above)

        return lotes_figures.draw(figure)

    return Paper("LoTES, reproduced", lotes_paper.chosen_figures, reproduce, draw, inputs=_named(trace),
                 tells_left=True)


def hmhs(jobs: Path | None, quick: bool, seed: int) -> Paper:
    """Return the HMHS paper, and these *jobs* past it."""

    def refuse() -> None:
        if jobs is not None and not is_folder(jobs):
            raise InputError(f"{jobs}: no such folder")

    def reproduce(keys: Iterable[str], notify: Notify) -> Reproduction:
        scale = hmhs_study.QUICK if quick else hmhs_study.Scale()
        trace = None if jobs is None else _trace_in(jobs)
        bench = hmhs_study.Bench(scale, seed, notify, trace, hmhs_study.processes_here())
        return hmhs_paper.reproduce(bench, keys)

    def draw(figure: Figure) -> "alt.TopLevelMixin":
        from subak.reproduce.hmhs import figures as hmhs_figures  # noqa: PLC0415  (as above)

        return hmhs_figures.draw(figure)

    def chosen(only: str | None, past_the_paper: bool) -> list[str]:
        keys = hmhs_paper.chosen_figures(only, past_the_paper, jobs is not None)
        known = jobs is None or hmhs_study.knows_places(_trace_in(jobs))
        return keys if known or only is not None else [key for key in keys if key != "locality"]

    return Paper("HMHS, reproduced", chosen, reproduce, draw, refuse, _named(jobs))


def dodoor(quick: bool, seed: int) -> Paper:
    """Return the Dodoor paper."""

    def reproduce(keys: Iterable[str], notify: Notify) -> Reproduction:
        scale = dodoor_paper.QUICK if quick else dodoor_paper.Scale()
        return dodoor_paper.reproduce(dodoor_paper.Bench(scale, seed, notify), keys)

    def draw(figure: Figure) -> "alt.TopLevelMixin":
        from subak.reproduce.dodoor import figures as dodoor_figures  # noqa: PLC0415  (as above)

        return dodoor_figures.draw(figure)

    return Paper("Dodoor, reproduced", dodoor_paper.chosen_figures, reproduce, draw)


def _trace_in(folder: Path) -> hmhs_study.Trace:
    """Return a converted trace with the fleet beside it, if it had machines."""
    fleet = read_fleet(folder / "fleet") if (folder / "fleet").is_dir() else None
    return hmhs_study.Trace(read_workload(folder), fleet)


def _google(trace: Path | None, notify: Notify) -> tuple[Workload | None, Fleet | None]:
    if trace is None:
        return None, None
    if not trace.is_dir():
        raise InputError(f"{trace}: no such folder")
    notify(f"Reading {trace}", 0.0)
    return read_google(trace)


def _named(*paths: Path | None) -> tuple[Path, ...]:
    return tuple(path for path in paths if path is not None)
