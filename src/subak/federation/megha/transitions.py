"""The transition tables of tasks, attempts and machines: what each message does in each state.

The reference draws it, and torture holds the handlers to it: every row is met, a state becomes nothing else than its
row says, and what has no row changes nothing. States are those of the submitter, a global master's phases, a local
master's attempts and machines, and a worker's attempts; "new" is an attempt that is not known (yet, or any more).
"""
from typing import NamedTuple

from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, SUBMITTER, WORKER

ANY, NEW = "any", "new"


class Transition(NamedTuple):
    """What a message does in a state."""

    role: int
    message: str  # a kind; of what an update carries, the kind of entry
    state: str  # that it meets; ANY where it is about no single task or attempt
    becomes: tuple[str, ...]  # one of these
    then: str = ""  # what is posted, and when it becomes which
    aside: bool = False  # befalls others than the task or attempt that the message names


def _of(role: int, *rows: tuple[str, str, str, str], aside: bool = False) -> tuple[Transition, ...]:
    """Return rows of (messages, states, what these become or "" for what they are, then)."""
    return tuple(
        Transition(role, message, state, tuple(becomes.split()) or (state,), then, aside)
        for messages, states, becomes, then in rows for message in messages.split() for state in states.split()
    )


TRANSITIONS: tuple[Transition, ...] = (
    *_of(
        SUBMITTER,
        ("ARRIVE", "NEW", "OPEN BLOCKED ENDED",
         "READY, SUBMIT; BLOCKED where its stage waits for others; ENDED where its gang has failed"),
        ("ARRIVE", "ENDED", "", "cancelled before it arrived: nothing"),
        ("CANCEL", "BLOCKED BACKOFF", "ENDED", "GIVEN_UP"),
        ("CANCEL", "OPEN", "WITHDRAWN", "WITHDRAW, and the others of its gang"),
        ("EXPIRE", "OPEN", "", "WITHDRAW, if it still waits"),
        ("TRY_AGAIN", "BACKOFF", "OPEN", "READY, SUBMIT"),
        ("RESUBMIT", "WITHDRAWN", "", "WITHDRAW again"),
        ("RESUBMIT", "OPEN", "", "SUBMIT again, and what has ended of its gang"),
        ("RESUBMIT", "ENDED", "", "where the present incarnation has not said so: SUBMIT, saying that it ended"),
        ("DONE", "OPEN", "ENDED BACKOFF OPEN",
         "BACKOFF: it failed, and is tried again; OPEN: of a former round. The row of an ENDED task is another's once "
         "the present incarnation has said so"),
        ("DONE", "WITHDRAWN", "ENDED WITHDRAWN", "likewise"),
        ("DONE", "ENDED", "", "likewise"),
        ("HAND_OVER RELEASE", ANY, "", "goes on to SUBMIT"),
        ("REBUILD", ANY, "", "of a new incarnation: SUBMIT all open tasks, saying which have ended"),
        ("REBUILD", "OPEN ENDED", "", "of one that did so before: SUBMIT the task again"),
    ),
    *_of(SUBMITTER, ("DONE", "BLOCKED", "OPEN", "of the last task that its stage awaits: READY, SUBMIT"), aside=True),
    *_of(
        GLOBAL_MASTER,
        ("SUBMIT", "UNKNOWN", "WAITING ENDED UNKNOWN",
         "PLACE; ENDED: before this incarnation; UNKNOWN: handed to a former one, REBUILD"),
        ("SUBMIT", "WAITING", "WAITING ENDED", "ENDED: before this incarnation"),
        ("SUBMIT", "RUNNING", "", "nothing"),
        ("WITHDRAW", "UNKNOWN", "ENDED WAITING UNKNOWN",
         "DONE; WAITING: until it is known what became of its last request; UNKNOWN: as with SUBMIT"),
        ("WITHDRAW", "WAITING", "ENDED WAITING", "likewise"),
        ("WITHDRAW", "FLYING HELD RUNNING", "LEAVING RUNNING FLYING HELD", "ABANDON; not if it waited too long"),
        ("WITHDRAW", "LEAVING", "", "it does not wait again"),
        ("WITHDRAW", "ENDED", "", "DONE again"),
        ("SUBMIT", "ENDED", "", "DONE again"),
        ("PLACE", ANY, "", "a task that waits is requested, or steps behind all others"),
        ("TOOK", "FLYING", "RUNNING HELD LEAVING", "HELD: of a gang; LEAVING: of one that is given up"),
        ("TOOK", "UNKNOWN WAITING", "RUNNING LEAVING", "learnt by a restarted master; LEAVING: held, ABANDON"),
        ("TOOK", "LEAVING", "", "nothing"),
        ("REFUSED", "FLYING", "WAITING FLYING ENDED",
         "still FLYING: a former request of the task was refused; ENDED: it may have begun, and was lost too often"),
        ("REFUSED", "LEAVING", "WAITING LEAVING ENDED", "the same; ENDED: it was withdrawn, DONE"),
        ("REFUSED", "WAITING", "", "nothing"),
        ("GAVE GONE", "RUNNING", "ENDED WAITING RUNNING", "ENDED when it finished, DONE; RUNNING: a former attempt's"),
        ("GAVE", "HELD", "WAITING ENDED", "its gang is given up; ENDED: it was lost too often"),
        ("GAVE GONE", "LEAVING", "ENDED WAITING LEAVING",
         "ENDED when it finished or was withdrawn, DONE; LEAVING: a former attempt's"),
        ("GAVE", "FLYING", "ENDED WAITING", "taken and given in one update"),
        ("GONE", "FLYING", "ENDED WAITING FLYING", "in a whole state: ENDED when it finished, DONE"),
        ("GONE", "WAITING", "ENDED WAITING", "the same"),
        ("GONE", "UNKNOWN", "ENDED UNKNOWN", "the same"),
        ("LAUNCHED", "RUNNING", "", "of a gang's task that is still held: GO again"),
        ("LAUNCHED", "LEAVING", "", "of a gang's task that is still held: ABANDON again"),
        ("LAUNCHED", "FLYING", "", "what it carries is TOOK"),
        ("ENDED", "RUNNING", "", "what it carries is GAVE"),
        ("UPDATE", ANY, "", "NOTED; what it misses is asked for: ASK"),
        ("RETRY", "FLYING", "FLYING LEAVING", "the request again; LEAVING: of a gang, unanswered for a lease: ABANDON"),
        ("RETRY", "LEAVING", "", "the request again"),
        ("RETRY", "RUNNING", "", "nothing"),
        ("CATCH_UP SETTLE", ANY, "", "goes on with an update, or with what a whole state settles"),
        ("REOPEN", ANY, "", "a cluster that had no room is asked again"),
        ("PASSED_OVER", ANY, "", "HOLD_BACK, for what differs from the machines that are to be held back"),
        ("WAKE", ANY, "", "clusters that have not answered a restarted master: ASK again"),
    ),
    *_of(
        GLOBAL_MASTER,
        ("PLACE", "WAITING", "FLYING", "LAUNCH, REPARTITION or PREEMPT"),
        ("TOOK", "HELD", "RUNNING", "of the last of its gang: GO"),
        ("REFUSED", "FLYING HELD RUNNING", "LEAVING", "its gang is given up: ABANDON"),
        ("SIZED", "RUNNING", "WAITING", "the whole state of its machine without it: it was lost"),
        aside=True,
    ),
    *_of(
        LOCAL_MASTER,
        ("LAUNCH REPARTITION", NEW, "STARTING HELD new", "START, LAUNCHED; HELD: of a gang; else REFUSED"),
        ("PREEMPT", NEW, "STARTING PENDING new", "START, LAUNCHED; PENDING: KILL each victim; else REFUSED"),
        ("LAUNCH", "STARTING HELD", "", "LAUNCHED again"),
        ("LAUNCH", "OVER", "", "ENDED again"),
        ("PREEMPT", "PENDING", "", "nothing"),
        ("GO", "HELD", "STARTING HELD", "START; HELD: of a former incarnation"),
        ("GO", f"STARTING {NEW}", "", "nothing"),
        ("ABANDON", "HELD", "OVER new", "ENDED; new: nothing is kept where nothing can be lost"),
        ("ABANDON", "STARTING", "KILLING STARTING", "KILL; STARTING: of a former incarnation"),
        ("ABANDON", "RUNNING", "KILLING RUNNING", "likewise"),
        ("ABANDON", "PENDING", "new", "REFUSED"),
        ("ABANDON", "KILLING", "", "nothing"),
        ("ABANDON", "OVER", "", "ENDED again"),
        ("ABANDON", NEW, "", "REFUSED, and never carried out"),
        ("STARTED", "STARTING", "RUNNING", ""),
        ("STARTED", "RUNNING", "", "nothing"),
        ("OVER", "STARTING", "OVER STARTING new", "ENDED; new: as above; STARTING: of an old epoch"),
        ("OVER", "RUNNING", "OVER RUNNING new", "the same"),
        ("OVER", "KILLING", "OVER KILLING new", "the same"),
        ("OVER", "OVER", "", "nothing"),
        ("OVER", NEW, "", "FORGET"),
        ("HOLD_BACK", "active", "", "a machine is held back for the lane of a global master, or no longer"),
        ("NOTED", "active", "", "ends that were noted are forgotten"),
        ("ASK", "active", "", "UPDATE, the whole state"),
        ("BEAT", "active", "", "UPDATE to every global master"),
        ("CHECK", "active", "", "orders again, REPORT to the silent, PULSE; silent for a lease: lost"),
        ("CHECK", "standby", "", "nothing"),
        ("PULSE", "active", "active standby", "confirmed; of a later epoch: it steps down"),
        ("PULSE", "standby", "", "PULSE back"),
        ("WATCH", "standby", "standby active", "it takes over when no pulse came: REPORT to all workers"),
        ("ALIVE", "LISTED", "LISTED SILENT", "LEASE; of a later epoch: it steps down"),
        ("ALIVE", "SILENT", "SILENT LISTED", "REPORT; LISTED: nothing runs there"),
        ("ALIVE", "LOST", "LOST LISTED", "LISTED: nothing runs there"),
        ("ALIVE", "ABSENT", "", "nothing"),
        ("HOLDS", "SILENT", "SILENT LISTED", "LEASE, LISTED: it was the last attempt of the report"),
        ("HOLDS", "LISTED", "", "nothing"),
        ("CHANGE", "LISTED SILENT LOST ABSENT", "LISTED SILENT LOST ABSENT", "the operator's word"),
    ),
    *_of(
        LOCAL_MASTER,
        ("OVER", "PENDING", "STARTING new", "of the last victim: START, LAUNCHED where it fits, else REFUSED"),
        ("PREEMPT", "STARTING RUNNING", "KILLING", "for a queue below its share: KILL"),
        ("CHECK", "STARTING RUNNING KILLING", "OVER", "its worker was silent for a lease: ENDED"),
        ("CHECK", "HELD", "OVER", "its global master was silent for a heartbeat and a lease: ENDED"),
        ("NOTED", "OVER", NEW, "FORGET"),
        ("HOLDS", NEW, "RUNNING OVER", "at a new local master"),
        aside=True,
    ),
    *_of(
        WORKER,
        ("START", NEW, "RUNNING new", "BEGIN, STARTED; without room, or for a former incarnation: OVER"),
        ("START", "RUNNING", "", "STARTED again"),
        ("START", "ENDED", "", "OVER again"),
        ("KILL", "RUNNING", "ENDED new RUNNING",
         "HALT, OVER; new: nothing is kept where nothing can be lost; RUNNING: of an old epoch, ALIVE"),
        ("KILL", "ENDED", "", "OVER again"),
        ("KILL", NEW, "", "OVER; it never begins"),
        ("EXITED", "RUNNING", "ENDED new", "OVER; new: as above"),
        ("FORGET", "ENDED", NEW, ""),
        ("FORGET", NEW, "", "nothing"),
        ("REPORT", ANY, "", "HOLDS for each attempt, or ALIVE for none, or for one of an old epoch"),
        ("LEASE", ANY, "", "the lease is prolonged"),
        ("TICK", ANY, "", "ALIVE, and OVER again for what has ended"),
    ),
    *_of(WORKER, ("TICK", "RUNNING", "ENDED", "after a lease of silence: HALT, OVER, a new incarnation"), aside=True),
)
