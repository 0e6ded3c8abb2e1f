"""Metrics of a global master: what they say, and that dashboards and alerts ask for what there is."""
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from msgspec import structs
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from subak.live.api.models import Health, QueueView
from subak.live.config import FederationFile, decoded
from subak.live.role.waits import COMMIT_S, TASK_S, Waits
from subak.live.service.metrics import COUNTED, QUEUES_SAID, Seen, text_of
from subak.live.service.seeing import seen_by
from subak.live.torture.case import JobCase
from test_live_roles import JOB, world_of

ROOT = Path(__file__).parents[2]
DEPLOY, PAGE = ROOT / "deploy", ROOT / "docs" / "operators.md"
FILE = decoded("""
name = "lab"
global_master = [{name = "g0", http = "127.0.0.1:1"}]
cluster = [{name = "a", local_master = "127.0.0.1:2", standby = "127.0.0.1:3"}]
queue = [{name = "web"}]
""", FederationFile)
SAMPLE = ("_total", "_bucket", "_count", "_sum", "_info", "_created", "")


def seen(**changes):
    waits = Waits((1.0,))
    return Seen(**{"master": "g0", "federation": "lab", "is_ready": True, "tally": dict.fromkeys(COUNTED, 3),
                   "ended": {"finished": 2}, "machines": lambda: {("a", "ready"): 4}, "view_age_s": {"a": math.inf},
                   "queues": [QueueView(path="web", weight=1, guarantee=1, dominant_share=0.5)],
                   "connected": {"a standby": False}, "pending": 0, "timers": 0, "held_s": 0.0, "disk_refuses": False,
                   "task_waits": waits, "commits": waits, **changes})


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def samples(text):
    return {(each.name, tuple(sorted(each.labels.items()))): each.value
            for family in families(text).values() for each in family.samples}


def test_the_text_is_openmetrics_with_units_in_names():
    found = families(text_of(seen()))
    for name, family in found.items():
        assert family.documentation
        if name.startswith("subak_"):
            assert re.fullmatch(r"subak(_[a-z]+)+", name)
            assert family.type != "histogram" or name.endswith("_seconds")
    assert samples(text_of(seen()))["subak_view_age_seconds", (("cluster", "a"),)] == math.inf


def test_queues_beyond_the_bound_are_counted_and_left_out():
    queues = [QueueView(path=f"q{number}", weight=1, guarantee=0, dominant_share=0) for number in range(10_000)]
    found = samples(text_of(seen(queues=queues)))
    assert found["subak_queues_left_out", ()] == 10_000 - QUEUES_SAID
    assert sum(name == "subak_queue_jobs" for name, _ in found) == QUEUES_SAID


def test_names_from_outside_are_escaped():
    text = text_of(seen(queues=[QueueView(path='a"b\\c\nd', weight=1, guarantee=1, dominant_share=0)]))
    assert ("subak_queue_jobs", (("queue", 'a"b\\c\nd'),)) in samples(text)


def test_waits_are_counted_in_the_range_that_they_do_not_exceed():
    waits = Waits((1.0, 2.0))
    for seconds in (-5.0, 0.5, 1.0, 1.5, 2.0, 9.0):
        waits.note(seconds)
    assert waits.buckets() == [("1", 3.0), ("2", 5.0), ("+Inf", 6.0)]
    assert waits.sum == 14.0


def test_a_master_counts_what_it_did():
    stage = structs.replace(JOB.stages[0], command=("job", "1", "0"))
    other = structs.replace(JOB, stages=(stage,))
    world = world_of(machines=2, jobs=[JobCase(2.0, "one", JOB, (((0.5, 0),),)),
                                       JobCase(2.0, "two", other, (((0.5, 7),) * 9,))])
    world.until(90.0)  # with its retries
    role = world.masters[0].role
    waits = Waits(COMMIT_S)
    waits.note(0.003)
    found = samples(text_of(seen_by(role, FILE, Health(state="ready", held_ms=250.0), waits)))
    assert found["subak_tasks_ended_total", (("outcome", "finished"),)] == 1
    assert found["subak_tasks_ended_total", (("outcome", "failed"),)] == 1
    assert found["subak_task_wait_seconds_count", ()] == 2
    assert found["subak_launches_total", ()] >= 2
    assert found["subak_machines", (("cluster", "a"), ("state", "ready"))] == 2
    assert found["subak_commit_seconds_bucket", (("le", "0.005"),)] == 1
    assert found["subak_commit_seconds_bucket", (("le", "0.001"),)] == 0
    assert found["subak_event_loop_held_seconds", ()] == 0.25
    assert 0 <= found["subak_view_age_seconds", (("cluster", "a"),)] < 5


def test_a_federation_without_tasks_is_shown_too():
    found = samples(text_of(seen_by(world_of().masters[0].role, FILE, Health(state="starting"), Waits(TASK_S))))
    assert found["subak_task_wait_seconds_count", ()] == found["subak_task_wait_seconds_sum", ()] == 0
    assert found["subak_ready", ()] == 0


def said():
    """Return all names of samples that there can be."""
    return {f"{name}{suffix}" for name in families(text_of(seen())) for suffix in SAMPLE} | {"up"}


def names_in(expression):
    return set(re.findall(r"\b(?:subak|process)_[a-z_]+|\bup\b", expression))


def test_the_dashboard_asks_for_what_there_is_and_stands_at_first_import():
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) > 15
    for expression in expressions:
        assert names_in(expression)
        assert names_in(expression) <= said(), expression
    assert [each["type"] for each in board["templating"]["list"]] == ["datasource"]
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {"${datasource}"}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    boxes = [panel["gridPos"] for panel in board["panels"]]
    cells = [(x, y) for box in boxes for x in range(box["x"], box["x"] + box["w"])
             for y in range(box["y"], box["y"] + box["h"])]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24


def alerts():
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_each_alert_asks_for_what_there_is_has_a_paragraph_and_is_fired_in_the_test():
    page = PAGE.read_text()
    headings = re.findall(r"^### (Subak\w+)$", page, re.MULTILINE)
    assert headings == [*alerts()]
    for name, rule in alerts().items():
        assert names_in(rule["expr"]) <= said(), name
        assert len(page.partition(f"### {name}\n")[2].partition("###")[0].split()) > 15
    tested = yaml.safe_load((DEPLOY / "alerts_test.yml").read_text())["tests"][0]["alert_rule_test"]
    fired = {test["alertname"] for test in tested if test["exp_alerts"]}
    quiet = {test["alertname"] for test in tested if not test["exp_alerts"]}
    assert fired == quiet == set(alerts())


def test_the_page_names_all_metrics():
    page = PAGE.read_text()
    for name in families(text_of(seen())):
        short = name.removeprefix("subak")
        assert name in page or short.removeprefix("_queue") in page or f"{short}_" in page or name.startswith(
            "process_") or name == "subak_build", name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_each_alert_fires_when_it_should_and_not_before():
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=DEPLOY, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
