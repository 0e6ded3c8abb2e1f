"""The interface through which parts of a global master's role see the whole."""
from collections.abc import Mapping

import numpy as np

from subak.federation.megha.admission import Admission
from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.jobs import Jobs
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.submitter import Submitter
from subak.live.role.global_master.book import Book, Job
from subak.live.role.global_master.walks import Walks
from subak.live.role.master import MasterRole

Disk = Mapping[str, Mapping[int | str, bytes]]  # table, key, body


class GlobalRoleBase(MasterRole):
    """The tables of a global master and its submitter, and what its parts ask of it."""

    name: str
    disk: Disk
    admission: Admission
    book: Book
    jobs: Jobs
    master: GlobalMaster
    submitter: Submitter
    tasks: OpenTasks
    walks: Walks

    def open_job(self, job: Job) -> None:
        """Note a job, and what those who run it must know."""
        raise NotImplementedError

    def arrive(self, numbers: np.ndarray) -> None:
        """Let tasks arrive."""
        raise NotImplementedError

    def cancel_tasks(self, numbers: np.ndarray) -> None:
        """Cancel tasks."""
        raise NotImplementedError

    def touch(self, numbers: np.ndarray) -> None:
        """Look at tasks again, and write what has changed of them."""
        raise NotImplementedError

    def speakers(self) -> set[int]:
        """Return the local masters that speak for their clusters, as far as is known."""
        raise NotImplementedError
