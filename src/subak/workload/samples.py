"""Samples: the workloads that the package ships."""
from importlib.resources import files
from pathlib import Path

from subak.errors import InputError

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
    """Return the folder of a shipped workload by its name, else the folder of that name (a ``./`` before it tells)."""
    return sample_folder(text) if text in sample_names() else Path(text)
