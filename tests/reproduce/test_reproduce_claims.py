"""How claims of papers are judged: by rules that are shown, by intervals, with reasons that something shows."""
import io
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from subak.cli.reproduce.reproduction import Request, _show
from subak.report.console import PIPED_WIDTH, Console
from subak.reproduce.claims import (
    ABOVE_0,
    DIFFERS,
    HOLDS,
    UNDECIDED,
    UNEXPLAINED,
    Claim,
    Evidence,
    Figure,
    Interval,
    Reproduction,
    Why,
    judge,
    judge_all,
    over_seeds,
    rule,
    score,
    typical,
)
from subak.reproduce.dodoor import experiments as dodoor
from subak.reproduce.dodoor.published import CLAIMS as DODOOR
from subak.reproduce.hmhs import experiments as hmhs
from subak.reproduce.hmhs.published import CLAIMS as HMHS
from subak.reproduce.lotes import experiments as lotes
from subak.reproduce.lotes.published import CLAIMS as LOTES
from subak.reproduce.mch import experiments as mch
from subak.reproduce.mch.published import CLAIMS as MCH
from subak.reproduce.megha import experiments as megha
from subak.reproduce.megha.prototype.published import CLAIMS as PROTOTYPE
from subak.reproduce.megha.published import CLAIMS as MEGHA
from subak.reproduce.megha.study import QUICK

CLAIM = Claim("3", "a", "says", least=1.0, most=3.0, why=Why("it is so", "figure 4"), note="how")


def judged(number, more=(), **changes):
    """The claim's row, where figure 3 has its number, and each of *more* figures its numbers."""
    figures = {"3": {"a": number}, **dict(more)}
    return judge(CLAIM._replace(**changes), {key: Figure(key, "", pl.DataFrame(), numbers)
                                             for key, numbers in figures.items()})


@pytest.mark.parametrize(("number", "verdict"), [
    (2.0, HOLDS), (1.0, HOLDS), (3.0, HOLDS), (0.9, DIFFERS), (3.1, DIFFERS), (math.nan, None),
    (Interval(2.0, 1.0, 3.0), HOLDS), (Interval(2.9, 2.7, 3.1), UNDECIDED), (Interval(3.1, 2.9, 3.3), UNDECIDED),
    (Interval(0.5, 0.1, 0.9), DIFFERS), (Interval(4.0, 3.5, 4.5), DIFFERS), (Interval(2.0, 0.5, 3.5), UNDECIDED),
    (Interval(2.0, math.nan, math.nan), UNDECIDED)])
def test_only_what_the_interval_decides_is_judged(number, verdict):
    assert judged(number).verdict == verdict


def test_a_reason_stands_where_a_claim_differs_and_says_what_shows_it():
    assert judged(2.0).reason == "how"
    assert judged(0.5).reason == "it is so (figure 4); how"
    assert judged(0.5, why=None).reason == f"{UNEXPLAINED}; how"
    assert judged(Interval(2.9, 2.7, 3.1), why=None, note="").reason == ""


TESTED = Why("it is so", "figure 4", (Evidence("4", "b", least=1.0), Evidence("4", "c", most=2.0)))


@pytest.mark.parametrize(("numbers", "said"), [
    ({"b": 1.5, "c": 1.0}, "it is so (figure 4)"), ({"b": 1.5, "c": Interval(1.0, 0.5, 1.5)}, "it is so (figure 4)"),
    ({"b": 0.5, "c": 1.0}, UNEXPLAINED), ({"b": 1.5, "c": 3.0}, UNEXPLAINED), ({"b": 1.5}, UNEXPLAINED),
    ({"b": math.nan, "c": 1.0}, UNEXPLAINED), ({"b": 1.5, "c": Interval(1.0, 0.0, 2.5)}, UNEXPLAINED)])
def test_a_reason_stands_only_where_the_numbers_show_it(numbers, said):
    assert judged(0.5, {"4": numbers}, why=TESTED, note="").reason == said
    assert judged(2.0, {"4": numbers}, why=TESTED, note="").reason == ""


def test_what_could_show_a_reason_is_named_where_it_was_not_measured():
    assert judged(0.5, why=TESTED).reason == f"{UNEXPLAINED} by what was run here; --only 4 looks for a reason; how"


def test_the_rule_and_the_interval_are_in_words():
    assert rule(CLAIM) == "1 times to 3 times"
    assert rule(CLAIM._replace(least=None, unit="s", most=90.0)) == "at most 90 s"
    assert rule(CLAIM._replace(most=None, unit="share", least=0.5)) == "at least 50 %"
    assert (rule(CLAIM._replace(least=None, most=None)), judged(2.0, least=None, most=None).verdict) == ("", None)
    assert judged(Interval(0.5, 0.4, 0.6), unit="share").measured == "50 % (40 % to 60 %)"
    assert judged(0.5, unit="").measured == "0.5"


def test_the_score_counts_what_was_judged():
    rows = [judged(number) for number in (2.0, 0.5, Interval(2.9, 2.7, 3.1), math.nan)]
    assert score(row.verdict for row in rows) == "1 of 3 claims hold, 1 differ, 1 cannot be told"
    assert score([rows[0].verdict]) == "1 of 1 claims hold"


@pytest.mark.parametrize(("claims", "figures"), [
    (DODOOR, dodoor.FIGURES), (HMHS, hmhs.FIGURES), (LOTES, lotes.FIGURES), (MCH, mch.FIGURES), (MEGHA, megha.FIGURES)],
    ids=["dodoor", "hmhs", "lotes", "mch", "megha"])
def test_what_a_reason_names_is_there(claims, figures):
    for claim in claims:
        bounded = claim.least is not None or claim.most is not None
        assert bounded or claim.why is None, claim.says
        assert claim.figure in figures
        if claim.why is not None:
            assert claim.why.evidence, claim.says
        for each in claim.why.evidence if claim.why else ():
            assert (each.figure, each.number) in {(other.figure, other.number) for other in claims}, each
            assert each.figure in figures
            assert each.least is not None or each.most is not None
            named = {f"figure {each.figure}", f"Fig. {each.figure}"}
            assert each.figure == claim.figure or any(words in claim.why.shown for words in named), claim.why.shown


@pytest.mark.parametrize("claims", [DODOOR, HMHS, LOTES, MCH, MEGHA, PROTOTYPE],
                         ids=["dodoor", "hmhs", "lotes", "mch", "megha", "prototype"])
def test_no_claim_holds_of_nonsense(claims):
    """Of a number that is out of what it says on one side at least, nor, of times and amounts, where there is none."""
    for claim in claims:
        nonsense = [-1.0] if claim.least is not None else []
        nonsense += [1e12] if claim.most is not None else []
        nonsense += [0.0] if claim.unit in ABOVE_0 and (claim.least, claim.most) != (None, None) else []
        for value in nonsense:
            figure = Figure(claim.figure, "", pl.DataFrame(), {claim.number: value})
            assert judge(claim, {claim.figure: figure}).verdict in {DIFFERS, UNDECIDED}, (claim.says, value)
        assert nonsense or (claim.least, claim.most) == (None, None)


def shown(found, width):
    text = io.StringIO()
    _show(found, Request(None, False, None, 1, False), Console(width=width, file=text))
    return text.getvalue().splitlines()


def of_all_claims(claims):
    """A reproduction with a table of many columns a figure, and every claim of a paper."""
    keys = dict.fromkeys(claim.figure for claim in claims)
    names = ["first-fit+backfill", "delay-scheduling"]
    table = pl.DataFrame({"scheduler": names, "workers": [1_000, 50_000], **{
        f"{name} (s)": [12_345.678, 0.00051234]
        for name in ("median", "mean", "p90", "p99", "p99.9", "p99.99", "max")}})
    figures = tuple(Figure(key, "allocation times by numbers of workers", table, {
        claim.number: Interval(0.5, 0.25, 0.75) for claim in claims if claim.figure == key}) for key in keys)
    return Reproduction(figures, judge_all(claims, figures), ("means over so many seeds " * 20,))


@pytest.mark.parametrize("claims", [DODOOR, HMHS, LOTES, MCH, MEGHA],
                         ids=["dodoor", "hmhs", "lotes", "mch", "megha"])
@pytest.mark.parametrize("width", [80, PIPED_WIDTH])
def test_it_reads_at_80_columns_and_when_piped(claims, width):
    found = of_all_claims(claims)
    lines = shown(found, width)
    assert max(map(len, lines)) <= (80 if width == 80 else 200)
    text = "\n".join(lines)
    assert "…" not in text
    assert text.count("12,346") == text.count("0.00051") == 7 * len(found.figures)
    words = " ".join(text.split())
    assert words.count("(s)") == 7 * len(found.figures)
    for row in found.rows:
        assert " ".join(row.claim.split()) in words
    assert all(len(line.strip()) > 1 for line in lines if line.strip())


# -- several seeds -----------------------------------------------------------------------------------------------------


def figure_of(**numbers):
    return Figure("9", "t", pl.DataFrame(), numbers)


def test_the_typical_seed_is_by_students_t_of_logs():
    values = [2.0, 3.0, 5.0, 4.0]
    found = typical(values)
    low, high = stats.t.interval(0.95, 3, loc=np.log(values).mean(), scale=stats.sem(np.log(values)))
    assert found == pytest.approx((stats.gmean(values), math.exp(low), math.exp(high)))
    zeros = typical([0.0, 3.0, 5.0, 4.0])
    assert zeros == pytest.approx((3.0, *stats.t.interval(0.95, 3, loc=3.0, scale=stats.sem([0.0, 3.0, 5.0, 4.0]))))


def test_of_one_seed_there_is_no_interval():
    assert typical([2.0]) == typical([2.0, 2.0]) == (2.0, 2.0, 2.0)
    assert all(math.isnan(each) for each in typical([2.0, math.nan]))


def test_of_several_numbers_the_least_is_judged_with_its_own_interval():
    """Of two ratios the second is the lower one in the typical seed, though not in each."""
    ratios = [(1.6, 1.1), (1.2, 1.3), (1.5, 1.2)]
    found = over_seeds([figure_of(**{"falls: a": first, "falls: b": second}) for first, second in ratios])
    assert found.numbers["falls"] == found.numbers["falls: b"] == typical([1.1, 1.3, 1.2])


def test_what_goes_past_the_paper_keeps_its_own_intervals(monkeypatch):
    """It is measured once: a live federation says how sure each number is by itself."""
    figure = Figure("large", "t", pl.DataFrame(), {"x": Interval(1.0, 0.5, 2.0)})
    monkeypatch.setitem(megha.FIGURES, "large", lambda _: figure)
    found = megha.reproduce(megha.Study(QUICK, 1, lambda *_: None), ["large"])
    assert found.figures == (figure,)


def test_a_direction_is_undecided_where_its_interval_reaches_over_1():
    claim = Claim("9", "x", "grows", least=1.0)
    verdicts = {name: judge(claim, {"9": over_seeds([figure_of(x=each) for each in values])}).verdict
                for name, values in (("up", [1.1, 1.2, 1.15]), ("both", [0.9, 1.3, 1.0]), ("down", [0.9, 0.8, 0.85]),
                                     ("equal", [1.0, 1.0, 1.0]))}
    assert verdicts == {"up": HOLDS, "both": UNDECIDED, "down": DIFFERS, "equal": UNDECIDED}


def test_a_caveat_is_said_of_a_number_that_holds_where_its_evidence_does():
    caveat = Why("it is saturated", "the next line", (Evidence("9", "longer", least=2.0),))
    claim = Claim("9", "x", "high", least=10.0, note="n", caveat=caveat)
    assert judge(claim, {"9": figure_of(x=20.0, longer=3.0)}).reason == "n; it is saturated (the next line)"
    assert judge(claim, {"9": figure_of(x=20.0, longer=1.0)}).reason == "n"
