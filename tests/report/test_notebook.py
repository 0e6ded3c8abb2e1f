"""The tutorial's notebook, and the examples of pages in Python, run as they stand."""
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def environment():
    return {**os.environ, "PYTHONPATH": ":".join([str(ROOT / "src"), *filter(None, sys.path)])}


def test_the_notebook_runs(tmp_path):
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in book.cells), "clear its outputs"
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(tmp_path / "kernel"))
    NotebookClient(book, km=manager, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute(
        env=environment())
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml", "application/vnd.vegalite.v6+json"} <= kinds
    said = "".join(output.get("text", "") for output in shown)
    assert "scheduler careless answered a machine that cannot hold the task" in said
    assert "report.html" in said
    for output in shown:
        if output.output_type == "display_data":  # bars, which are gone
            assert output.data == {"text/plain": "", "text/html": ""}
        assert "https://" not in output.get("data", {}).get("text/html", "")
    assert not [each for each in shown if each.output_type == "stream" and each.name == "stderr"]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    blocks = PYTHON.findall((ROOT / page).read_text())
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "example"})
    assert "Wait time" in capsys.readouterr().out
    assert (tmp_path / "queues.svg").read_text().startswith("<svg")
