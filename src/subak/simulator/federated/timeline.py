"""The messages of an interval, in the timeline of a federated run."""
import numpy as np

from subak.federation.messages import REFUSED, REPARTITION
from subak.marks import noinline
from subak.simulator.engine.recorder import close_until
from subak.simulator.engine.state import (
    NOW,
    RUNNING_NOW,
    TIMELINE_MESSAGES,
    TIMELINE_REFUSALS,
    TIMELINE_REPARTITIONS,
    WAITING_NOW,
    Simulation,
)
from subak.simulator.federated.network import Network, next_arrival


@noinline
def turn_interval(sim: Simulation, net: Network) -> None:
    """Close the intervals that have ended; what is said when all has ended makes none of its own."""
    if sim.counts[WAITING_NOW] + sim.counts[RUNNING_NOW] > 0 or next_arrival(sim, net) < np.inf:
        record_messages(sim, net)
        close_until(sim, sim.clock[NOW])


@noinline
def record_messages(sim: Simulation, net: Network) -> None:
    """Count the messages that were handled since this was last done in the interval that is open."""
    current = sim.record.current
    for kind in range(net.handled.size):
        count = net.handled[kind] - net.recorded[kind]
        net.recorded[kind] = net.handled[kind]
        current[TIMELINE_MESSAGES] += count
        if kind == REFUSED:
            current[TIMELINE_REFUSALS] += count
        elif kind == REPARTITION:
            current[TIMELINE_REPARTITIONS] += count
