"""The federations that can be simulated, by name."""
from subak.simulator.federated.megha_setup import CENTRAL, MEGHA
from subak.simulator.federated.pigeon import PIGEON
from subak.simulator.federated.sampling import DODOOR, EAGLE, HAWK, SPARROW
from subak.simulator.federated.simulate import Architecture

ARCHITECTURES: dict[str, Architecture] = {
    "megha": MEGHA,
    "central": CENTRAL,
    "sparrow": SPARROW,
    "hawk": HAWK,
    "eagle": EAGLE,
    "dodoor": DODOOR,
    "pigeon": PIGEON,
}
