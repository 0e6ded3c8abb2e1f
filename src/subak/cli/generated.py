"""Turns the options of `subak generate` and `generate-mapreduce` into what the generators take."""
from typing import Literal, NamedTuple

Number = float | None
Mix = Literal["single", "hybrid"]
Sharing = Literal["none", "machines", "slots"]


class Numbers(NamedTuple):
    """What stands in the place of single parameters; None leaves them as they are."""

    dynamism: Number
    gap_shape: Number
    type: Number
    task_mass: Number
    task_disparity: Number
    service_mass: Number
    service_disparity: Number
    users: int | None
    diurnal: Number
    constraints: Number
    google_classes: bool


class Batch(NamedTuple):
    """The batch that was asked for."""

    workload: Mix
    jobs: int
    cluster: int | None
    map_machines: int
    reduce_machines: int
    slow_share: float | None
    slots: int
    sharing: Sharing
    gap: float
    map_output: float
    copy_rate: float
