"""The page of limits says what holds: each limit of the live half by its value, and the words that are said."""
import ast
import re

import pytest

from checkout import ROOT
from subak.live.role.layout import ATTEMPTS_MORE, Layout, Rooms

PAGE = (ROOT / "docs" / "limits.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
SOURCE = " ".join(path.read_text() for path in sorted((ROOT / "src" / "subak" / "live").rglob("*.py")))
TEXT = re.sub(r'"\s*\n?\s*f?"', "", SOURCE)  # texts that go over lines
# Limits that nobody meets who does not write a client or a part of his own, each with why.
INSIDE = {
    "ANNOTATION_BYTES_MAX": "part of all annotations", "ANSWER_BYTES_MAX": "of a client, beyond all answers",
    "BEGINS_MAX": "in a turn",
    "CONNECTIONS_MAX": "of an agent and its worker", "DEPTH_MAX": "beyond what a job has",
    "FILE_BYTES_MAX": "of a token", "FOLDER_BYTES_MAX": "Linux's", "FRAME_BYTES_MAX": "between worker and agent",
    "HOPS_MAX": "of a client", "IDS_TEXT_MAX": "in the OpenAPI document", "INT64_MAX": "numbers",
    "LINE_MAX": "of what is written",
    "LINK_BYTES_MAX": "between masters", "LOG_LINES_MAX": "numbers", "NODE_FRAME_BYTES_MAX": "between masters",
    "PAGE_ITEMS_MAX": "in the OpenAPI document", "PORT_MAX": "numbers", "RECORD_BYTES_MAX": "of a journal",
    "SERVED_MAX": "in a turn",
    "TEXT_MAX": "in the OpenAPI document", "UNSENT_BYTES_MAX": "of an agent", "WORDS_MAX": "of an ending",
}


def limits():
    """Every constant of the live half that ends in MAX, with its value, as far as it is a number."""
    found = {}
    for path in sorted((ROOT / "src" / "subak" / "live").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and "torture" not in path.parts:
                for target in node.targets:
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(names)
                    for name, value in zip(names, values, strict=False):
                        if isinstance(name, ast.Name) and name.id.endswith("_MAX"):
                            try:
                                found[name.id] = eval(compile(ast.Expression(value), "", "eval"), {"__builtins__": {}})
                            except NameError:  # that of another one
                                continue
    return found


def test_what_is_said_to_be_inside_is_there():
    assert set(INSIDE) <= set(limits())


@pytest.mark.parametrize(("name", "value"), sorted(limits().items()))
def test_each_limit_is_on_the_page_or_said_to_be_inside(name, value):
    if name in INSIDE:
        return
    number = f"{value:,.0f}"
    assert re.search(rf"(?<![\d,]){re.escape(number)}(?!\d|,\d)", PAGE), f"{name} = {number} is not in docs/limits.md"


def test_each_room_is_on_the_page_with_its_default():
    rooms = {row[0].strip("`"): row[1] for row in ROWS if row[0].strip("`") in Rooms.__struct_fields__}
    assert rooms == {name: f"{getattr(Rooms(), name):,}" for name in Rooms.__struct_fields__}
    assert f"{ATTEMPTS_MORE:,} more" in PAGE


def test_what_the_page_says_is_said_is_in_the_source():
    said = [words for row in ROWS for words in re.findall(r"`([^`\[\]]+ [^`\[\]]+)`", row[-1])]
    assert len(said) > 15
    for words in said:
        assert words in TEXT, words


def test_fifty_clusters_of_a_thousand_machines_fit_the_defaults():
    layout = Layout(2, 50, ("cpu", "memory"))
    assert layout.machines_each >= 1000
    assert layout.topology().machine.size >= 50_000
