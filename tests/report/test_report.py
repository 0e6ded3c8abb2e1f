import io
import json
import re

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from fake_runs import write_comparison, write_run
from in_process import subak
from subak.errors import InputError
from subak.measures import series
from subak.measures.of_run import bounded_slowdown
from subak.measures.run_folders import load_runs
from subak.measures.runs import groups
from subak.report import document
from subak.report.charts.runs import chart_makers
from subak.report.comparison import compare, verdict
from subak.report.console import Console as PlainConsole
from subak.report.number_text import NOTHING, bytes_text, number_text, seconds_text, share_text
from subak.report.page import write_report
from subak.report.terminal import comparison_table, run_panel

NASTY = '</script><img src=x onerror="alert(1)">&amp;'


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return write_comparison(tmp_path_factory.mktemp("report") / "R")


def shown(renderable, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


# -- reading ---------------------------------------------------------------------------------------------------------


def test_runs_are_read_in_the_order_of_scheduler_and_seed(comparison):
    runs = load_runs(comparison)
    assert [run.label for run in runs] == ["best-fit", "first-fit", "lotes", "tetris", "tetris-s2"]
    assert {name: len(group) for name, group in groups(runs).items()}["tetris"] == 2


def test_a_run_folder_alone_is_one_run(comparison):
    assert [run.label for run in load_runs(comparison / "runs" / "lotes")] == ["lotes"]


def test_a_half_written_run_is_ignored(tmp_path):
    write_comparison(tmp_path, ["lotes"], tasks=500)
    for name in (".tetris.partial-77", "tetris.partial"):
        (tmp_path / "runs" / name).mkdir()
    assert [run.label for run in load_runs(tmp_path)] == ["lotes"]


def test_optional_facts_may_be_missing(tmp_path):
    folder = write_run(tmp_path / "run", tasks=500)
    (folder / "summary.json").write_text('{"scheduler": "mystery", "surprise": 1}')
    assert write_report(folder).is_file()
    assert "mystery" not in verdict(load_runs(folder))


def spoil_nothing_there(folder):
    (folder / "summary.json").unlink()


def spoil_summary(folder):
    (folder / "summary.json").write_text('{"scheduler": ')


def spoil_type(folder):
    (folder / "summary.json").write_text('{"scheduler": "x", "seed": "one"}')


def spoil_parquet(folder):
    (folder / "tasks.parquet").write_bytes(b"PAR1 no")


def spoil_columns(folder):
    pl.DataFrame({"start": [1.0]}).write_parquet(folder / "tasks.parquet")


def spoil_missing(folder):
    (folder / "timeline.parquet").unlink()


@pytest.mark.parametrize(("spoil", "words"), [
    (spoil_nothing_there, "neither a run"), (spoil_summary, "truncated"), (spoil_type, r"\$.seed"),
    (spoil_parquet, "not a readable Parquet"), (spoil_columns, "columns missing: wait_time, run_time"),
    (spoil_missing, "timeline.parquet: no such file"),
])
def test_what_is_not_a_run_is_refused_in_one_line(tmp_path, spoil, words):
    folder = write_run(tmp_path / "run", tasks=500)
    spoil(folder)
    with pytest.raises(InputError, match=words) as caught:
        load_runs(folder)
    assert "\n" not in str(caught.value)


def test_a_comparison_needs_a_finished_run_and_different_labels(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputError, match="holds no finished run"):
        load_runs(tmp_path)
    for name in ("a", "b"):
        write_run(tmp_path / "runs" / name, "same", tasks=500)
    with pytest.raises(InputError, match="'same' occurs 2 times"):
        load_runs(tmp_path)


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "text"), [
    (None, NOTHING), (0, "0 s"), (0.0005, "500 µs"), (0.0527, "52.7 ms"), (12, "12 s"), (119, "119 s"),
    (750, "12.5 min"), (14_760, "4.10 h"), (300_000, "3.47 d"),
])
def test_durations_read_naturally(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (12_583, "12,583"), (99.96, "100"), (9.996, "10.0"), (0.99951, "1.00"), (0.0512, "0.0512"),
    (-3.2, "-3.20"),
])
def test_numbers_have_three_digits(value, text):
    assert number_text(value) == text


def test_bytes_read_naturally():
    assert [bytes_text(size) for size in (None, 12, 8.12e8, 5.4e9)] == [NOTHING, "12 B", "812 MB", "5.40 GB"]


def test_exceedance_agrees_with_counting():
    values = np.random.default_rng(3).integers(0, 50, 997).astype(float)
    chosen, share = series.exceedance(values, 300)
    assert share == pytest.approx([np.mean(values > value) for value in chosen])
    assert (chosen[0], chosen[-1], share[-1]) == (values.min(), values.max(), 0.0)


def test_exceedance_keeps_both_ends_with_few_points():
    chosen, share = series.exceedance(np.arange(1_000_000.0), 100)
    assert len(chosen) <= 100
    assert chosen[-2:].tolist() == [999_998.0, 999_999.0]
    assert share[0] > 0.99


def test_wait_by_period_is_the_mean_of_the_tasks_that_arrive_in_it(tmp_path):
    run = load_runs(write_run(tmp_path / "run", tasks=2_000))[0]
    table = series.wait_by_period([run], 86_400.0)
    tasks = run.tasks().collect().drop_nulls("wait_time")
    third = tasks.filter(pl.col("arrival").is_between(2 * 86_400, 3 * 86_400, closed="left"))["wait_time"]
    row = table.filter(pl.col("time") == 2.5 * 86_400).row(0, named=True)
    assert (row["mean"], row["tasks"]) == (pytest.approx(third.mean()), len(third))
    assert table["tasks"].sum() == len(tasks)


@pytest.mark.parametrize(("span", "period"), [(30 * 86_400, 86_400), (345_600, 86_400), (86_400, 3600), (3600, 300),
                                              (100, 5), (0, 0.1), (5_000 * 86_400, 17 * 86_400)])
def test_the_period_suits_the_span(span, period):
    assert series.period_of(span) == period


def test_coarse_timelines_keep_time_means(tmp_path):
    run = load_runs(write_run(tmp_path / "run", tasks=500))[0]
    drawn, all_of_it = series.waiting_over_time([run]), run.timeline().collect()
    assert len(drawn) <= series.LINE_POINTS_MAX + 1 < len(all_of_it)
    assert drawn["waiting"].mean() == pytest.approx(all_of_it["waiting"].mean(), rel=0.02)
    assert drawn["waiting_max"].max() == all_of_it["waiting_max"].max()


def test_slowdown_is_bounded_and_leaves_services_out():
    table = pl.DataFrame({"ready": [0.0, 9.0, 0.0, 5.0], "finish": [0.5, 100.0, 200.0, None],
                          "run_time": [0.5, 1.0, 100.0, float("inf")]})
    assert table.select(bounded_slowdown().alias("slowdown"))["slowdown"].to_list() == [1.0, 9.1, 2.0, None]


def single(comparison):
    """The runs of the first seed alone."""
    return [run for run in load_runs(comparison) if run.summary.seed == 1]


def test_the_best_of_a_row_is_marked_and_equal_rows_have_none(comparison):
    rows = {(row.measure.family, row.measure.title): row for row in compare(single(comparison))}
    names = list(groups(single(comparison)))
    assert [names[index] for index in rows["Wait time", "mean"].best] == ["lotes"]
    assert [names[index] for index in rows["Utilisation", "cpu"].best] == ["lotes"]
    assert rows["Tasks", "finished"].best == frozenset()


def test_two_seeds_are_a_mean_and_decide_nothing(comparison):
    rows = {(row.measure.family, row.measure.title): row for row in compare(load_runs(comparison))}
    names = list(groups(load_runs(comparison)))
    assert {row.best for row in rows.values()} == {frozenset()}
    assert "lotes has the lowest mean wait time" in verdict(load_runs(comparison))
    assert "2 seeds do not decide" in verdict(load_runs(comparison))
    tetris = [run.summary.wait_time.mean for run in load_runs(comparison) if run.group == "tetris"]
    assert rows["Wait time", "mean"].values[names.index("tetris")] == pytest.approx(sum(tetris) / 2)


def test_the_verdict_names_the_winners_and_what_the_numbers_leave_out(comparison):
    text = verdict(single(comparison))
    assert "lotes has the lowest mean wait time" in text
    assert "next is tetris" in text
    assert "leave out up to 24 tasks" in text


# -- charts ----------------------------------------------------------------------------------------------------------


def without_scripts(text):
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


def rows_of(chart):
    spec = chart.to_dict()
    return [row for values in (spec.get("datasets") or {"": spec["data"]["values"]}).values() for row in values]


def test_every_chart_is_labelled_and_small(comparison):
    for name, make in chart_makers(load_runs(comparison)).items():
        chart = make()
        assert 0 < len(rows_of(chart)) <= 5_000, name
        assert chart.to_dict()["title"]["text"] and "lotes" in chart.to_dict()["description"]


def test_many_runs_stay_small(tmp_path):
    write_comparison(tmp_path, [f"policy{number}" for number in range(20)], tasks=1_000)
    for name, make in chart_makers(load_runs(tmp_path)).items():
        assert len(rows_of(make())) <= 5_000, name


def test_a_scheduler_has_the_same_place_in_every_legend(comparison):
    for make in chart_makers(load_runs(comparison)).values():
        domains = re.findall(r'"domain": (\["best-fit".*?\])', json.dumps(make().to_dict()))
        assert domains and set(domains) == {'["best-fit", "first-fit", "lotes", "tetris"]'}


# -- page and pictures -------------------------------------------------------------------------------------------------


def test_the_page_holds_everything_and_refers_to_nothing(comparison, tmp_path):
    text = write_report(comparison, tmp_path / "page.html").read_text(encoding="utf-8")
    links = re.findall(r"(?:src|href|url)\b[=(]([^ >]*)", without_scripts(text))
    assert links and all(link.startswith(('"#', '"data:')) for link in links)
    for words in ("Synthetic month", "CC0-1.0", "no machine has 2 cores free", "needs 96 cores", "0.61.0", "tetris-s2"):
        assert words in text


def test_text_cannot_become_markup(tmp_path):
    folder = write_run(tmp_path / "run", tasks=500, label=NASTY,
                       workload={"name": NASTY, "origin": NASTY, "licence": NASTY},
                       options={NASTY: NASTY}, reasons=[{"status": NASTY, "reason": NASTY, "tasks": 1}])
    text = write_report(folder).read_text(encoding="utf-8")
    assert "<img" not in without_scripts(text)
    assert "alert(1)" not in re.sub(r"&lt;.*?&gt;", "", without_scripts(text))
    assert "</script>" not in without_scripts(text)


def test_pictures_are_written_in_the_formats_asked_for(comparison, tmp_path):
    write_report(comparison, tmp_path / "page.html", tmp_path / "pictures", ["svg", "png"])
    names = set(chart_makers(load_runs(comparison)))
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    assert (tmp_path / "pictures" / "queue-length.png").read_bytes().startswith(b"\x89PNG")
    assert "waiting tasks" in (tmp_path / "pictures" / "queue-length.svg").read_text(encoding="utf-8")


def test_it_is_said_how_far_the_pictures_are(comparison, tmp_path):
    told = []
    write_report(comparison, tmp_path / "page.html", tmp_path / "pictures", ["svg"],
                 lambda name, part: told.append((name, part)))
    names = [name for name, _ in told]
    assert sorted(names) == sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert [part for _, part in told] == [number / len(names) for number in range(len(names))]


def test_the_default_place_is_in_the_folder_and_nothing_half_written_stays(tmp_path):
    folder = write_run(tmp_path / "run", tasks=500)
    assert write_report(folder) == folder / "report.html"
    assert not list(folder.glob(".*"))


def test_errors_of_writing_and_of_options_are_worded(tmp_path):
    folder = write_run(tmp_path / "run", tasks=500)
    with pytest.raises(InputError, match="svg, png, pdf, csv, json or latex, not gif"):
        write_report(folder, formats=["gif"])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"could not be written: .*file is not a folder"):
        write_report(folder, tmp_path / "file" / "page.html")
    with pytest.raises(InputError, match="the page's name must end in"):
        write_report(folder, folder / "tasks.parquet")


@pytest.mark.parametrize(("out", "images", "said"), [
    ("p.html", "p.html", "p.html: is to be the page and .*p.html, a folder of pictures; choose another name"),
    ("p.html", "p.html/below", "p.html: is to be the page and .*below, a folder of pictures; choose another name"),
    ("p.html", "file/below", "file/below: could not be written: .*file is not a folder"),
    ("p.html", "taken", "taken/queue-length.png: is a folder; a file is to be written")])
def test_pictures_that_cannot_be_written_are_refused_before_the_page_is(tmp_path, out, images, said):
    folder = write_run(tmp_path / "run", tasks=500)
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "queue-length.png").mkdir(parents=True)
    with pytest.raises(InputError, match=said):
        write_report(folder, tmp_path / out, tmp_path / images)
    assert not (tmp_path / out).exists()


def test_the_command_writes_the_page_and_refuses_in_one_line(tmp_path):
    folder = write_run(tmp_path / "run", tasks=500)
    done = subak("report", folder, "--out", tmp_path / "r.html", "--images", tmp_path / "i", "--format", "svg")
    assert (done.returncode, (tmp_path / "r.html").is_file()) == (0, True), done.stderr
    assert {path.suffix for path in (tmp_path / "i").iterdir()} == {".svg"}
    refused = subak("report", tmp_path / "absent")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


# -- terminal ----------------------------------------------------------------------------------------------------------


def test_the_comparison_fits_80_columns(tmp_path):
    labels = [f"scheduler-{number}" for number in range(7)]
    text = shown(comparison_table(load_runs(write_comparison(tmp_path, labels, tasks=500))))
    assert max(map(len, text.splitlines())) <= 80
    assert all(label in text for label in labels)
    assert "…" not in text


def test_as_many_schedulers_stand_beside_each_other_as_fit(tmp_path):
    labels = [*(f"scheduler-{number}" for number in range(7)), "x", "y" * 16]
    table = comparison_table(load_runs(write_comparison(tmp_path, labels, tasks=500)))
    heads = {width: [line.split() for line in shown(table, width).splitlines() if set(line.split()) & set(labels)]
             for width in (40, 100, 250)}
    assert heads[250] == [labels]
    assert heads[100] == [labels[:6], labels[6:]]
    assert heads[40][-2:] == [["x"], ["y" * 16]]
    assert len(heads[40]) == len(labels)


def test_what_is_piped_is_as_wide_as_it_needs_to_be(tmp_path, monkeypatch, capsys):
    labels = [f"scheduler-{number}" for number in range(10, 30)]
    table = comparison_table(load_runs(write_comparison(tmp_path, labels, tasks=500)))
    monkeypatch.delenv("COLUMNS", raising=False)
    PlainConsole().print(table)
    note, head = filter(str.strip, capsys.readouterr().out.splitlines()[:4])
    assert note.rstrip() == "1 of 500 tasks can never run: needs 96 cores, the largest machine has 64."
    assert head.split() == labels
    monkeypatch.setenv("COLUMNS", "80")
    PlainConsole().print(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_best_is_starred_and_the_seeds_are_stated(comparison):
    text = shown(comparison_table(single(comparison)))
    mean = next(line for line in text.splitlines() if line.startswith("  mean"))
    assert mean.count("*") == 1
    assert "Means over 2 seeds" in shown(comparison_table(load_runs(comparison)))


def test_the_panel_of_a_run_gives_the_reasons(comparison):
    text = shown(run_panel(load_runs(comparison)[0]))
    assert "20 WAITING: no machine has 2 cores free" in text
    assert "*" not in text


def test_nearly_all_is_not_called_all():
    assert [share_text(share) for share in (1.0, 0.99999, 0.9994, None)] == ["100 %", "> 99.9 %", "99.9 %", NOTHING]


def test_the_script_of_charts_is_made_once_for_all_processes(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(document, "kernel_folder", lambda: tmp_path)
    monkeypatch.setattr(document, "_bundle", lambda snippet: made.append(snippet) or f"/* {snippet} */")
    assert document._kept_bundle("a") == document._kept_bundle("a") == "/* a */"
    assert document._kept_bundle("b") == "/* b */"
    assert made == ["a", "b"]
    path, = (path for path in tmp_path.iterdir() if b"/* a */" in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"/* a */", b"/* x */"))
    assert document._kept_bundle("a") == "/* a */"  # what is damaged is made anew
    assert made == ["a", "b", "a"]
    monkeypatch.setattr(document, "VEGA_LITE", "another")
    document._kept_bundle("a")
    monkeypatch.setattr(document, "kernel_folder", lambda: None)
    document._kept_bundle("a")
    assert made == ["a", "b", "a", "a", "a"]
