"""The federations that can be simulated, by name."""
from subak.simulator.federated_run import Architecture
from subak.simulator.megha_setup import CENTRAL, MEGHA
from subak.simulator.pigeon import PIGEON
from subak.simulator.sampled import EAGLE, HAWK, SPARROW

ARCHITECTURES: dict[str, Architecture] = {
    "megha": MEGHA,
    "central": CENTRAL,
    "sparrow": SPARROW,
    "hawk": HAWK,
    "eagle": EAGLE,
    "pigeon": PIGEON,
}
