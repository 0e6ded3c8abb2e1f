"""The keyword arguments of `subak.run` and `subak.compare`. Written by `make docs`."""
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from subak.federation.settings import Federation
from subak.placement.lotes.settings import LotesSettings


class Settings(TypedDict, total=False):
    """Keyword arguments of `run` and `compare`; docs/reference/scenario-file.md says what each means."""

    interval: float | None
    until: float | str | date
    slow_start: float
    locality_wait: float
    search_seconds: float
    search_moves: int | None
    reclaims_per_hour: float
    hold_back_after: float
    lotes: LotesSettings | Mapping[str, Any]
    request_error: float
    usage_swing: float
    interference: float
    estimates: str
    load: float
    resample: str
    measure_from: float | str | date | None
    measure_until: float | str | date | None
    objectives: Sequence[str]
    energy: str | Path
    gangs: str
    federation: Federation | Mapping[str, Any]
    faults: str | Path
    failures: str | Path
    queues: str | Path
    check_policy: bool
    answer_timeout: float
    parameters: Mapping[str, float]
