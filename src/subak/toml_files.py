"""TOML files: read into a type, with worded errors, and written."""
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from subak.errors import InputError, first_line
from subak.output.workplaces import recover

T = TypeVar("T")


def read_toml(path: Path, kind: type[T]) -> T:
    """Decode one TOML file into *kind*. Raises InputError with the place of the first mistake."""
    recover(path)
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind, strict=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except InputError as error:  # of the struct's own rules
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: values must not be nested that deep") from None
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:  # ValueError: no UTF-8, or no path
        raise InputError(f"{path}: {first_line(error)}") from None


def write_toml(value: Any, path: Path) -> None:
    """Write a struct or a dictionary as TOML."""
    path.write_bytes(msgspec.toml.encode(value))
