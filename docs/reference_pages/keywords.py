"""The keyword arguments of `subak.run` and `subak.compare`, from what the settings of a scenario declare."""
from typing import get_origin, get_type_hints

import msgspec

from subak.experiment.scenario import Scenario
from subak.settings import WHEN, declared, kind_of

WORDS = {float: "float", int: "int", str: "str", bool: "bool"}
HEAD = '''"""The keyword arguments of `subak.run` and `subak.compare`. Written by `make docs`."""
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from subak.federation.settings import Federation
from subak.placement.lotes.settings import LotesSettings


class Settings(TypedDict, total=False):
    """Keyword arguments of `run` and `compare`; docs/reference/scenario-file.md says what each means."""

'''


def keywords_module() -> str:
    """Return the module that declares the keywords for type checkers, who cannot run the program."""
    rows = [f"    {name}: {_kind(name)}\n" for name, setting in declared(Scenario).items() if setting.keyword]
    return HEAD + "".join(rows)


def _kind(name: str) -> str:
    kind = kind_of(Scenario, name)
    if declared(Scenario)[name].is_path:
        return "str | Path"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"{kind.__name__} | Mapping[str, Any]"
    if get_origin(kind) is list:
        return "Sequence[str]"
    if get_origin(kind) is dict:
        return "Mapping[str, float]"
    optional = type(None) in getattr(get_type_hints(Scenario)[name], "__args__", ())
    if declared(Scenario)[name].form == WHEN:
        return f"float | str | date{' | None' * optional}"
    return WORDS[kind] + " | None" * optional  # type: ignore[index]
