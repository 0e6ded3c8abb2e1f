"""Small workloads whose tasks' inputs lie on machines, and machines in racks."""
import polars as pl

from subak.fleet.table import make_fleet
from subak.workload.table import make_workload


def placed(workload, inputs, rack_local=1.0, off_rack=1.0):
    """A workload whose tasks' inputs lie on the machines named, with factors of maps."""
    is_map = pl.col("name") == "map"
    stages = workload.stages.with_columns(
        *(pl.col(each.name) * each.unit for each in workload.resources),
        rack_local=pl.when(is_map).then(rack_local).otherwise(1.0),
        off_rack=pl.when(is_map).then(off_rack).otherwise(1.0)).drop("speed_group")
    tasks = workload.tasks.with_columns(inputs=pl.Series(inputs, dtype=pl.List(pl.String)))
    return make_workload(workload.jobs, stages, tasks, workload.resources)


def racked(fleet, racks):
    rows = [(row, "rack", rack) for row, rack in enumerate(racks) if rack is not None]
    attributes = pl.DataFrame(rows, {"machine": pl.UInt32, "attribute": pl.String, "value": pl.String}, orient="row")
    amounts = {each.name: pl.col(each.name) * each.unit for each in fleet.resources}
    return make_fleet(fleet.machines.with_columns(**amounts), fleet.resources, attributes, fleet.changes.with_columns(
        *(pl.col(each.name) * each.unit for each in fleet.resources)))
