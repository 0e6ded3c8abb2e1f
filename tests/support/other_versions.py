"""Run a part of the suite under each version of Python that pyproject.toml names, or under those that are given.

    python tests/support/other_versions.py                    every version among the classifiers
    python tests/support/other_versions.py 3.13 --all         the whole suite under one

Each has an environment of its own in build/, with the versions of packages that CI runs. A version that is claimed and
not found on this machine is a failure: what was not run is not claimed.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from checkout import ROOT, file_of

CLASSIFIER = "Programming Language :: Python :: 3."
# What a version of Python may change: the kernels' compiler and their keys, what is imported at start, text of the
# standard library, sockets and processes, and one run of each engine.
PART = ("package", "names_of_constants", "start", "kernels", "kernel_cache", "kernel_compiler", "kernel_interrupts",
        "engine_by_hand", "engine_against_twin", "golden", "cli", "jobfile", "live_roles", "live_api", "live_cli",
        "live_processes", "agent")


def main() -> int:
    """Run the tests under each version; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", help="such as 3.13 (those of pyproject.toml)")
    parser.add_argument("--all", action="store_true", help="the whole suite, not a part of it")
    asked = parser.parse_args()
    tests = ["tests"] if asked.all else [file_of(f"test_{name}.py") for name in PART]
    said = {version: under(version, tests) for version in asked.versions or claimed()}
    for version, words in said.items():
        print(f"Python {version}: {words or 'passed'}")
    return 1 if any(said.values()) else 0


def claimed() -> list[str]:
    """Return the versions that pyproject.toml claims."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return [each.removeprefix("Programming Language :: Python :: ") for each in named if each.startswith(CLASSIFIER)]


def under(version: str, tests: list[str]) -> str:
    """Run tests under a version of Python; return what went wrong, or nothing."""
    python = interpreter(version)
    if python is None:
        return "not on this machine, and not run"
    place = ROOT / "build" / f"python-{version}"
    own = place / "bin/python"
    for command in ([python, "-m", "venv", place],
                    [own, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", "--editable", ".[dev]"],
                    [own, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *tests]):
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return f"failed: {' '.join(map(str, command))[:200]}"
    return ""


def interpreter(version: str) -> str | None:
    """Return a Python of a version that works: on PATH, or among those of pyenv, whose stand-ins may lead nowhere."""
    name = f"python{version}"
    homes = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(name), *sorted(map(str, homes.glob(f"{version}.*/bin/{name}")), reverse=True)]
    return next((each for each in found if each and works(each)), None)


def works(python: str) -> bool:
    """Whether a Python starts, and makes environments."""
    return not subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
