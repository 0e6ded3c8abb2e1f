"""Build the sdist and the wheel, and try the wheel by itself, as somebody does who has it from a package index.

    python tests/support/built_package.py

The wheel is built from the sdist and installed, without any extra, into a new environment. From an empty folder every
module must load there, but for those of an extra, and the program must simulate and report on its sample.
"""
import itertools
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

from subak.placement.schedulers import SCHEDULERS
from subak.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
BUILDER = "build==1.6.1"  # makes a wheel from the sdist that it has made
SAMPLE_TASKS = 145_459
# Where modules may need what an extra of pyproject.toml installs: a room or a module, and what it may lack.
EXTRAS = {
    "subak.live": {"yaml", "litestar", "uvicorn", "httptools", "uvloop", "cryptography", "prometheus_client"},
    "subak.gym": {"gymnasium"},
    "subak.experiment.tuning": {"optuna"}, "subak.report.tuning": {"optuna"}, "subak.cli.commands.tune": {"optuna"},
}
# Loads every module; prints where the package is, and each module that found something missing, with what it is.
LOADING = """import importlib, json, pkgutil
import subak
lacking = {}
for module in pkgutil.walk_packages(subak.__path__, "subak.", onerror=lambda name: None):
    if not module.name.endswith(".__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            lacking[module.name] = error.name
print(json.dumps([subak.__file__, lacking]))
"""


def main() -> int:
    """Build and try; return the exit code."""
    began, faults = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="subak-package-") as name:
        place = Path(name)
        sdist, wheel = built(place)
        for fault in itertools.chain(faults_of_files(sdist, wheel), faults_of_wheel(wheel, place)):
            print(f"wrong: {fault}", file=sys.stderr, flush=True)
            faults += 1
    if not faults:
        print(f"{sdist.name} and {wheel.name}: built, installed and tried in {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


def built(place: Path) -> tuple[Path, Path]:
    """Build both into *place*; return their paths."""
    python = environment(place / "builder", BUILDER)
    said(place, python, "-m", "build", "--outdir", place / "dist", ROOT)
    (sdist,), (wheel,) = (place / "dist").glob("*.tar.gz"), (place / "dist").glob("*.whl")
    return sdist, wheel


def environment(place: Path, *wanted: object) -> Path:
    """Make a new environment with some packages, in the versions that CI runs; return its Python."""
    venv.create(place, with_pip=True)
    said(place, place / "bin/python", "-m", "pip", "install", "--quiet", "--no-compile", *wanted)
    return place / "bin/python"


def said(place: Path, *command: object) -> str:
    """Run a command in a folder, with nothing of this environment; return what it prints. Raises where it fails."""
    ours = ("PYTHON", "VIRTUAL_ENV", "SUBAK")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run([str(part) for part in command], cwd=place, text=True, stdout=subprocess.PIPE, check=True,
                          env={**kept, "PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "COLUMNS": "160"})
    return done.stdout


def faults_of_files(sdist: Path, wheel: Path) -> Iterator[str]:
    """Compare the files of both with those of the package and of the project."""
    package = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/subak").rglob("*")
               if path.is_file() and "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    yield from (f"{wheel.name} lacks {name}" for name in sorted(package - inside))
    yield from (f"{wheel.name} has {name}, which is not in src" for name in sorted(inside - package))
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {f"src/{name}" for name in package}.union(
        ("LICENSE", "README.md", "constraints.txt", "pyproject.toml", "hatch_build.py", "tests/conftest.py"))
    yield from (f"{sdist.name} lacks {name}" for name in sorted(wanted - inside))


def faults_of_wheel(wheel: Path, place: Path) -> Iterator[str]:
    """Install the wheel alone, and run it from an empty folder."""
    python = environment(place / "bare", wheel)
    empty = place / "empty"
    empty.mkdir()
    said(empty, python, "-m", "pip", "check")
    found, lacking = json.loads(said(empty, python, "-c", LOADING))
    if not Path(found).is_relative_to(place):
        yield f"the package is loaded from {found}"
    yield from (f"{module} needs {name}, which the wheel alone does not install" for module, name in lacking.items()
                if not may_lack(module, name.partition(".")[0]))
    subak = python.with_name("subak")
    if said(empty, subak, "--version") != f"subak {VERSION}\n":
        yield "subak --version says another version"
    listed = said(empty, subak, "schedulers")
    yield from (f"subak schedulers does not list {name}" for name in SCHEDULERS if name not in listed)
    said(empty, subak, "simulate", "--out", "run")
    tasks = json.loads((empty / "run/summary.json").read_text())["workload"]["tasks"]
    if tasks != SAMPLE_TASKS:
        yield f"a run of the sample has {tasks} tasks"
    said(empty, subak, "report", "run")
    if not (empty / "run/report.html").is_file():
        yield "subak report leaves no page"
    yield from faults_without_live(subak, empty)


def may_lack(module: str, name: str) -> bool:
    """Whether a module may need a package that only an extra installs."""
    return any(f"{module}.".startswith(f"{room}.") and name in names for room, names in EXTRAS.items())


def faults_without_live(subak: Path, place: Path) -> Iterator[str]:
    """Ask for a live federation, which needs an extra: one line must name it."""
    done = subprocess.run([subak, "run", "--", "true"], cwd=place, text=True, capture_output=True, check=False)
    if done.returncode != 2 or "pip install 'subak[live]'" not in done.stderr or done.stderr.count("\n") != 1:
        yield f"without the extra live, subak run ends with {done.returncode}: {done.stderr}"


if __name__ == "__main__":
    sys.exit(main())
