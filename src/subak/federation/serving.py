"""What one function works on that serves all roles of a federation whose roles share their tables."""
from typing import Any, NamedTuple

import numpy as np

from subak.federation.messages import Outbox
from subak.workload.tasks import Tasks


class SharedTables(NamedTuple):
    """The tables of all roles, the tasks, and where messages come from and go to."""

    roles: Any  # a NamedTuple of the federation's
    tasks: Tasks
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox
