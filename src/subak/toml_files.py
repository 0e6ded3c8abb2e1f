"""Reads TOML files into a type, with worded errors, and writes them."""
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from subak.errors import InputError, first_line
from subak.json_type import Json
from subak.output.workplaces import recover
from subak.quantities import read_seconds

T = TypeVar("T")


def read_toml(path: Path, kind: type[T], prepared: Callable[[Json], Json] | None = None) -> T:
    """Decode one TOML file into *kind*, its document as *prepared* returns it.

    Raises InputError with the place of the first mistake.
    """
    recover(path)
    try:
        document = msgspec.toml.decode(path.read_bytes())
        return convert(document if prepared is None else prepared(document), kind)
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


def convert(document: Json, kind: type[T]) -> T:
    """Return what a file holds as *kind*; where that has `Seconds`, a text such as 1h30m is a duration.

    Raises InputError or msgspec.ValidationError with the place of the first mistake.
    """
    from msgspec import inspect  # noqa: PLC0415  (only who reads a file waits for it)

    found = _with_seconds(document, inspect.type_info(kind), ())
    return msgspec.convert(found, kind, strict=False, builtin_types=(date, datetime, time), str_keys=True)


def _with_seconds(value: Any, info: Any, path: tuple[str, ...]) -> Any:
    """Return a value with durations read, as the type says (of msgspec.inspect); of another type it stays as it is."""
    if isinstance(value, str):
        return _seconds(value, path) if any(map(_is_seconds, _members(info))) else value
    for member in _members(info):
        if isinstance(value, dict):
            fields = {each.encode_name: each.type for each in getattr(member, "fields", ())}
            of_all = getattr(member, "value_type", None)
            if fields or of_all is not None:
                return {name: _with_seconds(each, fields.get(name, of_all), (*path, str(name)))
                        for name, each in value.items()}
        elif isinstance(value, list):
            of_each = getattr(member, "item_types", None) or (getattr(member, "item_type", None),) * len(value)
            if len(of_each) == len(value) and None not in of_each:
                return [_with_seconds(each, of, path) for each, of in zip(value, of_each, strict=True)]
    return value


def _members(info: Any) -> tuple[Any, ...]:
    """Return the types that a value may have."""
    return tuple(getattr(info, "types", (info,)))


def _is_seconds(info: Any) -> bool:
    return (getattr(info, "extra", None) or {}).get("unit") == "s"


def _seconds(text: str, path: tuple[str, ...]) -> float:
    try:
        return read_seconds(text)
    except InputError as error:
        raise InputError(f"{'.'.join(path)}: {error}") from None


def write_toml(value: object, path: Path) -> None:
    """Write a struct or a dictionary as TOML."""
    path.write_bytes(msgspec.toml.encode(value))
