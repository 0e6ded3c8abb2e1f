"""What a package index shows of the project."""
import importlib.metadata
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from packaging.specifiers import SpecifierSet

import other_versions
from checkout import closed_to_others, file_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook(monkeypatch):
    """The build's hook, with a stand-in for hatchling, which is there only while a package is built."""
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", "hatchling.metadata.plugin.interface"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["hatchling.metadata.plugin.interface"], "MetadataHookInterface", object,
                        raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_description_needs_no_file_beside_it(hook):
    metadata = {}
    hook.ReadmeHook.update(SimpleNamespace(root=str(ROOT)), metadata)
    text = metadata["readme"]["text"]
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert text.startswith("# Subak\n")
    assert "The tutorial (`docs/tutorial.md`)" in text
    assert "![" not in text
    assert [target for target in re.findall(r"\]\(([^)]*)\)", text) if not target.startswith("https://")] == []


@pytest.mark.parametrize(("text", "shown"), [
    ("a\n\n![A picture\nof it](docs/a.png)\n\nb\n", "a\n\nb\n"),
    ("[one](docs/a.md), [two\nwords](b.md)", "one (`docs/a.md`), two\nwords (`b.md`)"),
    ("[there](https://example.org/a)", "[there](https://example.org/a)"),
    ("![there](https://example.org/a.png)\n\n", "![there](https://example.org/a.png)\n\n"),
])
def test_pictures_go_and_links_become_names(hook, text, shown):
    assert hook.description(text) == shown


def test_the_versions_of_python_are_those_that_are_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [found[1] for each in project["classifiers"] if (found := re.search(r":: (3\.\d+)$", each))]
    assert versions == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == f">={versions[0]}"
    assert set(project["dynamic"]) == {"version", "readme"}


OLDEST = "3.11.0"  # of Python, that pins are resolved for; Debian 12 has 3.11.2
# Pins of distributions that only an isolated build, or another kind of machine, installs.
NOT_HERE = {"hatchling", "tomlkit", "trove-classifiers"}


def pins():
    """Names and versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [tuple(line.split("==")) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize(("name", "version"), pins())
def test_a_pin_can_be_installed_on_the_oldest_python(name, version):
    """pip says only ResolutionImpossible where one cannot."""
    try:
        found = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        assert name in NOT_HERE, f"{name} is pinned and not installed"
        return
    assert found["Version"] == version, f"{name} {found['Version']} is installed, {version} is pinned"
    asked = found["Requires-Python"]
    assert asked is None or SpecifierSet(asked).contains(OLDEST), f"{name} {version} wants Python {asked}"


def test_a_folder_that_others_may_not_enter_is_found(tmp_path):
    inner = tmp_path / "home" / "clone"
    inner.mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    assert closed_to_others(inner) == tmp_path / "home"
    assert closed_to_others(Path("/")) is None


def test_a_version_of_python_that_is_claimed_and_not_here_is_no_success(monkeypatch, capsys):
    monkeypatch.setattr(other_versions, "claimed", lambda: ["3.99"])
    monkeypatch.setattr("sys.argv", ["other_versions.py"])
    assert other_versions.main() == 1
    assert capsys.readouterr().out == "Python 3.99: not on this machine, and not run\n"


def test_the_versions_that_are_tried_are_those_that_are_claimed_and_their_tests_are_there():
    assert other_versions.claimed() == ["3.11", "3.12", "3.13"]
    assert all(file_of(f"test_{name}.py") for name in other_versions.PART)
