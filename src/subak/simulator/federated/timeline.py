"""Counts the messages of each interval for the timeline."""
import numpy as np

from subak.federation.messages import REFUSED, REPARTITION
from subak.marks import inlined, noinline
from subak.simulator.engine.recorder import close_until
from subak.simulator.engine.state import (
    TIMELINE_MESSAGES,
    TIMELINE_REFUSALS,
    TIMELINE_REPARTITIONS,
    Simulation,
)
from subak.simulator.federated.network import Network, next_arrival


@noinline
def turn_interval(sim: Simulation, net: Network) -> None:
    """Close the intervals that have ended; what is said when all has ended makes none of its own."""
    if sim.counts.waiting_now + sim.counts.running_now > 0 or next_arrival(sim, net) < np.inf:
        record_messages(sim, net)
        close_until(sim, sim.clock.now)


@noinline
def record_messages(sim: Simulation, net: Network) -> None:
    """Count the messages that were handled since this was last done in the interval that is open."""
    handled = 0
    for kind in range(net.handled.size):
        handled += net.handled[kind]
    record(sim, net, TIMELINE_MESSAGES, handled)
    record(sim, net, TIMELINE_REFUSALS, net.handled[REFUSED])
    record(sim, net, TIMELINE_REPARTITIONS, net.handled[REPARTITION])


@inlined
def record(sim: Simulation, net: Network, column: int, handled: int) -> None:
    """Count what is new of so many messages in a column of the timeline."""
    sim.record.current[column] += handled - net.recorded[column]
    net.recorded[column] = handled
