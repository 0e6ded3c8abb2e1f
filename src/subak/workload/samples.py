"""The workloads that the package ships."""
from importlib.resources import files
from pathlib import Path

from subak.errors import InputError
from subak.workload.piped import PIPE, piped_folder

DEFAULT_SAMPLE = "google2011-sampled"  # what is simulated when nothing is named


def sample_folder(name: str = "google2011") -> Path:
    """Return the folder of a shipped workload, with its fleet in `fleet/`. Raises InputError for an unknown name."""
    data = Path(str(files("subak") / "data"))
    folder = data / name
    if name not in sample_names():
        raise InputError(f"sample {name!r}: must be one of {', '.join(sample_names())}")
    return folder


def sample_names() -> list[str]:
    """Return the names of the shipped workloads."""
    return sorted(path.parent.name for path in Path(str(files("subak") / "data")).glob("*/workload.toml"))


def workload_folder(text: str) -> Path:
    """Return the folder of a shipped workload by its name, else the folder of that name (a ``./`` before it tells).

    A workload that comes through a pipe has the name PIPE. Raises InputError for a file.
    """
    piped = piped_folder() if text == PIPE else None
    found = piped or (Path(text) if is_path(text) else sample_folder(text))
    if found.is_file():
        raise InputError(f"{text}: is a file, not a workload's folder: subak convert FORMAT {text} --out W makes one")
    return found


def is_path(text: str) -> bool:
    """Whether the name of a workload is a folder's, neither a shipped one's nor that of one through a pipe."""
    return text not in sample_names() and not (text == PIPE and piped_folder() is not None)
