"""Decides whose store a global master speaks from: local masters keep the last claim and refuse others.

A store has an identity, made once; each start of it is an incarnation, and has a name of its own, its life. A global
master claims ahead of all else on each connection. It says up to which serial number it has reserved jobs, and which
attempt it requested last; it writes both down before it says them, and gives a number only when a local master has
written it down too. So the store in use is never behind what a local master knows, and each incarnation begins behind
all that was reserved: no number is given twice, from whatever store.

A store that is behind, or another, is refused. Its global master notes what is known of the one in use, and ends.
`adopt` lets the store take over as a new identity, ahead of all that is known. What it believes of open tasks is of
long ago, so local masters end all that was begun from the former one, and heed it when that is over. Nothing is placed,
and no job taken, until it is in every cluster.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, msgpack, structs

from subak.errors import InputError
from subak.federation.megha.local_master.state import ATTEMPT_HELD, ATTEMPT_KILLING, ATTEMPT_RUNNING, ATTEMPT_STARTING
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import LOCAL_MASTER, NOBODY
from subak.live.role.base import Drop, Put, Write
from subak.live.role.facts import JOB, SHAPE, Fact
from subak.live.role.frames import Claim, Claimed, FrameError
from subak.live.role.global_master.base import GlobalRoleBase
from subak.live.role.layout import Peer, cluster_of_local, number_of_job, owner_of_job, serial_of_job
from subak.live.role.local_role_base import LocalRoleBase
from subak.live.role.written_for import refuse_shorter

# numbers on disk of a global master: of incarnations and of jobs, which are used once; for whom numbers of jobs were
# given; what this file keeps; and when it was stopped
(INCARNATION_KEY, LATEST_JOB_KEY, WRITTEN_FOR_KEY, IDENTITY_KEY, RESERVED_KEY, ATTEMPTS_KEY, SUPERSEDES_KEY,
 REFUSED_KEY, BEHIND_KEY, STOPPED_KEY) = range(10)
RESERVE_FIRST, RESERVE_MOST = 64, 4096  # numbers of jobs: twice as many each time
HOLD_S = 1.0  # that every cluster has to say what it knows, before anything is placed
JOBS_TOLD = 100  # that a refusal names at most
HOLDING = (ATTEMPT_HELD, ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING)  # states of attempts with amounts
Numbers = Mapping[Any, bytes]  # the table of these on disk


class StoreRefused(NamedTuple):
    """An effect: this local master knows of a later store, and nothing may be done from this one; what helps."""

    local: int
    words: str


class TookOver(NamedTuple):
    """An effect: a store that takes over from another has heard all clusters."""


class Refusal(Struct, frozen=True, array_like=True):
    """What local masters know of the store in use, as the disk of one that was refused keeps it."""

    by: tuple[int, ...]  # numbers of local masters
    identities: tuple[str, ...]
    incarnation: int  # the latest
    reserved: int  # up to which serial number
    jobs: tuple[int, ...]  # that run there, and are not in the store that was refused


# -- the global master -------------------------------------------------------------------------------------------------


class Claims:
    """The claim of a global master, and what local masters said to it."""

    def __init__(self, role: GlobalRoleBase, life: str) -> None:
        """*life*: a name that no other start has, of this store or of a copy of it."""
        self.role, self.problem = role, ""
        numbers: Numbers = role.disk.get("incarnation", {})
        latest = serial_of_job(role.admission.latest)
        began = max(_number(numbers, RESERVED_KEY), latest)
        identity = numbers.get(IDENTITY_KEY, life.encode()).decode()
        fence, supersedes = msgpack.decode(
            numbers.get(SUPERSEDES_KEY, msgpack.encode((0, ()))), type=tuple[int, tuple[str, ...]])
        incarnation, self.is_behind = _number(numbers, INCARNATION_KEY) + 1, BEHIND_KEY in numbers
        reserved = began + RESERVE_FIRST
        self.claim = Claim(identity, incarnation, life, latest, began, reserved, 0, supersedes, fence, self.is_behind)
        self.heard: set[int] = set()  # local masters that have answered this claim
        # clusters that have answered none
        self.unheard = {cluster for cluster in range(role.layout.clusters) if role.layout.has(cluster)}
        self.until = 0.0  # when those are waited for no longer
        # one that says nothing of attempts, or has taken over, is ahead of all that its former incarnations requested
        before = numbers.get(ATTEMPTS_KEY)
        self.attempts = [incarnation << INCARNATION_BITS] * role.layout.clusters
        if before is not None:
            known = msgpack.decode(before, type=list[int])  # of fewer clusters, where some are new
            refuse_shorter("cluster", len(known), role.layout.clusters)
            self.attempts[: len(known)] = known
        self.requested = [0] * role.layout.clusters  # of this incarnation, by cluster, that are written
        refused = numbers.get(REFUSED_KEY)
        self.refusal = msgpack.decode(refused, type=Refusal) if refused is not None else None
        self.granted = began
        role.admission.latest = number_of_job(role.number, began)
        role.writes += [Put("incarnation", [IDENTITY_KEY], [identity.encode()]), self._write_reserved(),
                        self._write_attempts()]

    def _write_reserved(self) -> Write:
        return Put("incarnation", [RESERVED_KEY], [self.claim.reserved.to_bytes(8, "big")])

    def _write_attempts(self) -> Write:
        first = self.claim.incarnation << INCARNATION_BITS
        return Put("incarnation", [ATTEMPTS_KEY], [msgpack.encode([first + each for each in self.requested])])

    def to(self, local: int) -> Claim:
        """Return the claim as a local master is told it."""
        return structs.replace(self.claim, attempt=self.attempts[cluster_of_local(local)])

    def note_requests(self) -> None:
        """Write down which attempts were requested last, before they are."""
        now = self.role.master.cluster["numbers"].tolist()
        if now != self.requested:
            self.requested = now
            self.role.writes.append(self._write_attempts())

    def holds(self, now: float) -> bool:
        """Whether nothing may be placed: it may run already, as other local masters know, or have yet to say."""
        self.until = self.until or now + HOLD_S
        return self.is_behind or bool(self.problem) or (bool(self.unheard) and now < self.until)

    def catch_up(self) -> None:
        """Note when a store that took over has heard all clusters.

        They are asked twice: what was begun before is over when all have told their state; then no more is learnt there
        of shapes that the former store has numbered.
        """
        if not self.is_behind or not self.role.master.cluster["known"].all():
            return
        if self.claim.behind:
            self._claim(structs.replace(self.claim, behind=False))
        elif self.heard.issuperset(self.role.speakers()):
            self.is_behind = False
            self.role.writes.append(Drop("incarnation", [BEHIND_KEY]))
            self.role.effects.append(TookOver())

    def _claim(self, claim: Claim) -> None:
        """Claim something else from now on."""
        self.claim = claim
        self.heard.clear()
        for peer in self.role.links:
            if peer[0] == LOCAL_MASTER:
                self.role.frame_to(peer, self.to(peer[1]))

    @property
    def left(self) -> int:
        """How many jobs may be given a number now."""
        return 0 if self.problem or self.is_behind else self.granted - serial_of_job(self.role.admission.latest)

    def reserve(self) -> None:
        """Reserve more numbers when half of the last ones are given."""
        size = self.claim.reserved - self.claim.began
        if self.claim.reserved == self.granted and self.left <= min(size, RESERVE_MOST) // 2:
            self._claim(structs.replace(self.claim, reserved=self.granted + min(size, RESERVE_MOST)))
            self.role.writes.append(self._write_reserved())

    def answered(self, peer: Peer, answer: Claimed) -> None:
        """Take in what a local master says; one that refuses the store ends this life."""
        self.unheard.discard(cluster_of_local(peer[1]))
        if answer.known is None:
            self.granted = max(self.granted, min(answer.reserved, self.claim.reserved))
            if answer.behind == self.claim.behind:
                self.heard.add(peer[1])
            for shape in answer.shapes:
                self.role.learn(shape)
            return
        words = _words(self.role.name, self.claim, answer)
        self.problem = self.problem or f"a local master {words}"
        self.refusal = _together(self.refusal, peer[1], answer)
        self.role.writes.append(Put("incarnation", [REFUSED_KEY], [msgpack.encode(self.refusal)]))
        self.role.effects.append(StoreRefused(peer[1], words))


def _number(numbers: Numbers, key: int) -> int:
    return int.from_bytes(numbers.get(key, b""), "big")


def _together(before: Refusal | None, local: int, answer: Claimed) -> Refusal:
    """Return what is known of the store in use by one local master more."""
    assert answer.known is not None
    known = Refusal((local,), (answer.known.identity,), answer.known.incarnation, answer.known.reserved, answer.jobs)
    if before is None:
        return known
    return Refusal(
        tuple(sorted({*before.by, *known.by})), tuple(sorted({*before.identities, *known.identities})),
        max(before.incarnation, known.incarnation), max(before.reserved, known.reserved),
        tuple(sorted({*before.jobs, *known.jobs})))


def _words(name: str, own: Claim, answer: Claimed) -> str:
    """Return why the store may not be used, and what helps."""
    assert answer.known is not None
    known = answer.known
    what = "another store" if known.identity != own.identity else "a later state of this store"
    return (f"knows {what} of {name}: incarnation {known.incarnation}, jobs up to {name}-{known.reserved}; here: "
            f"incarnation {own.incarnation}, jobs up to {name}-{own.latest}. Start {name} on the folder that was in "
            "use last; if that is lost, run `subak store adopt` on this one")


def adopt(numbers: Numbers, life: str) -> tuple[Refusal, list[Write]]:
    """Return what is known of the store in use, and the writes by which another takes over from it.

    *numbers*: the table on disk of the store that was refused; *life*: its identity from now on. Raises InputError for
    a store that was not refused.
    """
    body = numbers.get(REFUSED_KEY)
    if body is None:
        raise InputError("no local master has refused this store, so there is nothing to take over from: start its "
                         "global master on it")
    refusal = msgpack.decode(body, type=Refusal)
    incarnation = max(refusal.incarnation, _number(numbers, INCARNATION_KEY))
    reserved = max(refusal.reserved, _number(numbers, RESERVED_KEY))
    earlier = numbers.get(IDENTITY_KEY, b"").decode()
    bodies = {
        IDENTITY_KEY: life.encode(), INCARNATION_KEY: incarnation.to_bytes(8, "big"),
        RESERVED_KEY: reserved.to_bytes(8, "big"), BEHIND_KEY: b"",
        SUPERSEDES_KEY: msgpack.encode((incarnation, sorted({earlier, *refusal.identities} - {""})))}
    return refusal, [Put("incarnation", list(bodies), list(bodies.values())),
                     Drop("incarnation", [REFUSED_KEY, ATTEMPTS_KEY])]


# -- the local master --------------------------------------------------------------------------------------------------


class Known:
    """The last claim of each global master that a local master has written down."""

    def __init__(self, role: LocalRoleBase, claims: Numbers) -> None:
        self.role = role
        self.claims = {int(number): msgpack.decode(body, type=Claim) for number, body in claims.items()}
        refuse_shorter("global_master", max(self.claims, default=NOBODY) + 1, role.layout.global_masters)
        self.requested: dict[int, int] = {}  # by global master: the last attempt that it has requested here, its number

    def see(self, owner: int, attempts: np.ndarray) -> None:
        """Note attempts, int64[row], that a global master speaks of."""
        self.requested[owner] = max(self.requested.get(owner, 0), int(attempts.max(initial=0)))

    def take(self, peer: Peer, claim: Claim) -> None:
        """Take in the claim of a global master, and answer: it may speak, or is told what is known."""
        link, owner = self.role.links[peer], peer[1]
        known = self.claims.get(owner)
        link.has_claimed = True
        if known is not None and is_behind(claim, known, self._last_attempt(owner, claim.incarnation)):
            link.is_deaf = True
            self.role.frame_to(peer, Claimed(known.reserved, claim.behind, (), known, self._jobs(owner, claim.latest)))
            return
        if claim != known:
            self.claims[owner] = claim
            self.role.writes.append(Put("claim", [owner], [msgpack.encode(claim)]))
        if known is not None and known.identity != claim.identity:
            self.requested.pop(owner, None)
            self.role.end_fenced()
        self.role.frame_to(peer, Claimed(claim.reserved, claim.behind, self._shapes(owner) if claim.fence else ()))

    @property
    def fenced(self) -> list[int]:
        """Global masters whose former stores' attempts are to end."""
        return [owner for owner, claim in self.claims.items() if claim.behind]

    def left(self, owner: int) -> list[int]:
        """Return the rows of attempts with amounts that a global master has requested from a former store."""
        rows, held = self.role.local.rows.row, self.role.held(owner)
        is_former = rows["attempt"][held] >> INCARNATION_BITS <= self.claims[owner].fence
        return held[is_former & np.isin(rows["state"][held], HOLDING)].tolist()

    def _last_attempt(self, owner: int, incarnation: int) -> int:
        """Return the last attempt of a global master that is known here, requested or running, but for an incarnation.

        Of the one that claims workers may have told before it did: it was heard by the partner.
        """
        attempts = [self.requested.get(owner, 0), *self.role.local.rows.row["attempt"][self.role.held(owner)].tolist()]
        return max((each for each in attempts if each >> INCARNATION_BITS != incarnation), default=0)

    def _jobs(self, owner: int, latest: int) -> tuple[int, ...]:
        """Return jobs of a global master that were heard of here, and that it does not know."""
        return tuple(sorted(number for kind, number in self.role.facts.known
                            if kind == JOB and owner_of_job(number) == owner and serial_of_job(number) > latest
                            )[:JOBS_TOLD])

    def _shapes(self, owner: int) -> tuple[Fact, ...]:
        """Return the shapes whose numbers a global master has given."""
        own = self.role.layout.shapes_of(owner)
        return tuple(fact for (kind, number), fact in self.role.facts.known.items() if kind == SHAPE and number in own)

    def hears(self, peer: Peer) -> bool:
        """Whether what a global master says is heeded. Raises FrameError where it has not said from which store."""
        link = self.role.links[peer]
        if not link.has_claimed:
            raise FrameError("a global master speaks without having said from which store")
        return not link.is_deaf and not (self.claims[peer[1]].behind and self.left(peer[1]))


def is_behind(claim: Claim, known: Claim, attempt: int) -> bool:
    """Whether a claim is of an older state of the store than is known, or of another that does not take over from it.

    *attempt*: the last that is known, its number.
    """
    if claim.identity != known.identity:
        return not (known.identity in claim.supersedes and claim.incarnation > known.incarnation
                    and claim.began >= known.reserved)
    if claim.incarnation == known.incarnation:
        return claim.life != known.life or claim.reserved < known.reserved
    return claim.incarnation < known.incarnation or claim.began < known.reserved or claim.attempt < attempt
