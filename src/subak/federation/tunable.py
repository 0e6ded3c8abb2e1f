"""Declares the tunable parameters of federations."""
from subak.federation.choices import PLACEMENTS
from subak.federation.settings import supported_by
from subak.placement.schedulers import LOTES, Scheduler
from subak.placement.tunable import LOTES_PARAMETERS, Parameter

OF_LOTES, OF_FEDERATION, OF_POLICY = "lotes", "federation", "parameters"  # fields of a scenario
FEDERATION_PARAMETERS = (  # what a scheduler decides by; not what a network costs, or what is asked of it
    Parameter("global_masters", 1, 40), Parameter("heartbeat", 0.5, 60.0, log=True),
    Parameter("updates", words=("changes", "full")), Parameter("placement", words=PLACEMENTS),
    Parameter("probe_ratio", 1.0, 8.0), Parameter("probes_min", 1, 40, log=True),
    Parameter("sampling", words=("batch", "task")), Parameter("cutoff", 1.0, 100_000.0, log=True),
    Parameter("short_share", 0.005, 0.5, log=True), Parameter("steal_attempts", 0, 40),
    Parameter("push_ratio", 0.05, 20.0, log=True), Parameter("report_tasks", 1, 100, log=True),
    Parameter("duration_weight", 0.0, 1.0), Parameter("starvation_limit", 0, 20),
    Parameter("fair_weight", 1, 100, log=True),
)


def declared(scheduler: Scheduler) -> dict[str, tuple[Parameter, ...]]:
    """Return the parameters that a scheduler declares, by the field of a scenario that holds them."""
    if scheduler.planned == LOTES:
        return {OF_LOTES: LOTES_PARAMETERS}
    if scheduler.architecture:
        supported = supported_by(scheduler)
        return {OF_FEDERATION: tuple(each for each in FEDERATION_PARAMETERS if each.name in supported)}
    return {OF_POLICY: scheduler.parameters} if scheduler.parameters else {}
