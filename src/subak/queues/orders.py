"""The fair orders by name, without loading the kernels."""
from typing import NamedTuple

DRF, HDRF, HDRF_FAST, MCH, MCH_EXACT, COLLAPSED = range(6)


class FairOrder(NamedTuple):
    """One of the fair orders."""

    code: int
    summary: str
    collapsed: str = ""  # the resource it is collapsed for, by its place or name


FAIR_ORDERS = {
    "drf": FairOrder(DRF, "the job with the least dominant share by its queue's weight (DRF, NSDI 2011)"),
    "hdrf": FairOrder(HDRF, "down the tree to the least share, which is worked out anew after every task (H-DRF)"),
    "hdrf-fast": FairOrder(HDRF_FAST, "the choices of H-DRF, with work only along the path of a change"),
    "mch": FairOrder(MCH, "weights of the flattened tree, then weighted DRF (MCH)"),
    "mch-exact": FairOrder(MCH_EXACT, "the flattened tree, flattened again for what is left after each saturation"),
    "c-ch": FairOrder(COLLAPSED, "the tree collapsed for cpu: flat weights, least share of cpu by weight", "cpu"),
    "m-ch": FairOrder(COLLAPSED, "the tree collapsed for memory: flat weights, least share of memory", "memory"),
}
