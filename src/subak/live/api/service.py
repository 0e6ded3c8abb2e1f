"""The interface that the HTTP server calls and a role implements.

Every method raises the errors of `subak.live.api.errors`: `NotFoundError` for a name that nothing has, `RefusedError`
where it cannot be done as things stand, `InvalidError` where an argument breaks a rule, `NotOwnerError` where another
master keeps the job, and `UnavailableError` where it cannot be done now.
"""
from typing import Protocol

from msgspec import Struct

from subak.live.agent.attempts.wire import OUTPUT_BYTES_MAX
from subak.live.api.gate import Gate
from subak.live.api.models import (
    Event,
    Explanation,
    FederationView,
    Health,
    JobState,
    JobView,
    LogChunk,
    MachineView,
    MadeToken,
    MasterView,
    NewPerson,
    Outcome,
    Page,
    Plan,
    QueueView,
    Stream,
    TaskState,
    TaskView,
    TokenView,
)
from subak.live.jobfile.spec import JobSpec
from subak.live.people.identity import People

PAGE_ITEMS, PAGE_ITEMS_MAX = 100, 1_000
WAIT_S_MAX = 60.0  # that a request is held open at most
LOG_BYTES_MAX = OUTPUT_BYTES_MAX  # of one answer
LOG_LINES_MAX = 1 << 31


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs are wanted: what is empty is not looked at."""

    queue: str = ""  # this queue and all below it
    state: JobState | None = None
    name: str = ""
    ids: tuple[str, ...] = ()  # only these
    user: str = ""  # who submitted it
    ended_since: float = 0.0  # Unix time; 0: those that have not ended, too


class OfJob(Struct, frozen=True):
    """What rights to a job depend on."""

    queue: str
    user: str  # who submitted it


class Service(Protocol):
    """One global master, as people see it: its own jobs and queues, and all machines and masters it knows of.

    Lists are in the order in which their items came to be, or of their names; a cursor is what the last page said.
    """

    people: People  # who may ask
    gate: Gate  # how much each may submit

    async def submit(self, spec: JobSpec, client_id: str, is_strict: bool, user: str = "") -> JobView:
        """Admit a job that *user* submits, and return when it is on disk.

        What no machine is large enough for is warned of; InvalidError, and no job, where *is_strict*.

        A *client_id* that was used before, also before a restart, returns the job it was used for, as it is now;
        RefusedError where that job was submitted with another specification, or by another person.
        """

    def queue_of(self, path: str) -> str:
        """Return the queue of a job whose file names this one."""

    async def belongs(self, id: str) -> OfJob:
        """Return whose a job is, by its id or that of a task."""

    async def job(self, id: str) -> JobView:
        """Return a job."""

    async def specification(self, id: str) -> JobSpec:
        """Return what a job was submitted as, with all that its file left out."""

    async def jobs(self, wanted: JobFilter, cursor: str, limit: int) -> Page[JobView]:
        """Return a page of at most *limit* jobs, the latest first."""

    async def wait(self, id: str, seen: int | None, timeout_s: float) -> JobView:
        """Return a job as soon as it has ended or, with *seen*, has another version than that; else after the time."""

    async def tasks(self, id: str, state: TaskState | None, outcome: Outcome, begun: bool, cursor: str, limit: int,
                    ) -> Page[TaskView]:
        """Return a page of at most *limit* tasks of a job, by index.

        Only those that ended so, where *outcome* says; with *begun* only those of which an attempt has begun.
        """

    async def task(self, id: str) -> TaskView:
        """Return a task."""

    async def logs(
        self, id: str, stream: Stream, attempt: int, offset: int, limit: int, timeout_s: float, tail: int
    ) -> LogChunk:
        """Return what an attempt of a task has written from byte *offset* on, at most *limit* bytes.

        With *tail*, from where its last so many lines begin, whatever the offset.

        *attempt*: the how manieth, 0 for the last; behind its end the next one follows. An offset below zero counts
        from the end. Where there is nothing yet, that is waited for, *timeout_s* at most.
        """

    async def cancel(self, id: str) -> JobView:
        """Cancel a job or a task, and return the job when that is on disk; what has ended stays as it is."""

    async def preempt(self, id: str) -> TaskView:
        """End the attempt of a task that runs, which waits again. RefusedError for a task that does not run."""

    async def explain(self, id: str) -> Explanation:
        """Say why a task stands as it stands."""

    async def history(self, id: str, cursor: str, limit: int) -> Page[Event]:
        """Return a page of what happened to a job and its tasks, or to a task, the earliest first."""

    async def queues(self, cursor: str, limit: int) -> Page[QueueView]:
        """Return the queues of the federation, parents before their children.

        What they use is counted everywhere; jobs and tasks that wait and run are those that this master keeps.
        """

    async def machines(self, cluster: str, cursor: str, limit: int) -> Page[MachineView]:
        """Return machines by name, of one cluster, or of all where *cluster* is empty."""

    async def machine(self, name: str) -> MachineView:
        """Return a machine."""

    async def cordon(self, name: str, on: bool) -> MachineView:
        """Let nothing new start on a machine, or let it again, which ends draining too."""

    async def drain(self, name: str) -> MachineView:
        """Cordon a machine and move what runs there elsewhere: each attempt is ended, and its task waits again."""

    async def remove(self, name: str) -> MachineView:
        """Take a machine out for good that was silent for a lease; its worker is refused from then on."""

    async def plan(self, config: bytes) -> Plan:
        """Return what the configuration in a TOML text would change, and change nothing."""

    async def apply(self, config: bytes, version: int) -> Plan:
        """Apply a configuration; RefusedError where another than *version* is in force by now."""

    async def tokens(self, cursor: str, limit: int) -> Page[TokenView]:
        """Return a page of all tokens that were made, by the names of their holders."""

    async def add_person(self, asked: NewPerson, by: str) -> MadeToken:
        """Make a token, known to all masters within a heartbeat; *by*: who asks. InvalidError for a role without queues
        that needs some, or the other way around.
        """

    async def revoke(self, name: str) -> Page[TokenView]:
        """Revoke a token by its id, or all of a person, and return them; all masters refuse them within a heartbeat."""

    async def masters(self) -> tuple[MasterView, ...]:
        """Return all masters of the federation, with how they seem from here."""

    async def federation(self) -> FederationView:
        """Return what this master knows of the federation as a whole."""

    async def metrics(self) -> bytes:
        """Return metrics in the text format of OpenMetrics."""

    async def health(self) -> Health:
        """Say whether this master serves; never raises."""
