"""Identities: who holds a token, in which role, over which queues, and until when.

A role says what a person may do; a submitter also has subtrees of queues. Of a token only its hash is kept. Each token
is a record of its own: two tokens of one name are the same person, whose own jobs are those that either has submitted.
"""
import re
from collections.abc import Iterable
from typing import Literal, get_args

from msgspec import Struct, msgpack

from subak.live.tokens import TokenHash, hash_of

Role = Literal["admin", "operator", "submitter", "reader"]
ADMIN, OPERATOR, SUBMITTER, READER = ROLES = get_args(Role)
FIRST = "admin"  # the name of whoever holds the token that the first start of a master makes
PERSON_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
PERSON = re.compile(PERSON_PATTERN, re.ASCII)
IDENTITIES_MAX = 100_000  # that a federation keeps
KEPT_S = 30 * 86_400.0  # that a token which has expired or was revoked stays in the list
ON_HOST = "host"
EVERYWHERE = "/"  # how a person writes the subtree of all queues


class Identity(Struct, frozen=True, array_like=True):
    """A token, and who holds it."""

    id: str  # such as t4f1c02a97b3e: names the token, and is no part of it
    name: str  # of the person
    role: str
    queues: tuple[str, ...] = ()  # to which it may submit, each with all below it; "/" is all
    all_jobs: bool = False  # whether it may change and read all jobs of these, not only its own
    hash: str = ""  # sha256:HEX of the token, or ON_HOST:HEX: none, it is a user of a master's host
    made: float = 0.0  # Unix time, as all below
    made_by: str = ""
    expires: float = 0.0  # 0: never
    revoked: float = 0.0  # 0: it is not

    @property
    def number(self) -> int:
        """The number under which it is kept and told to others: 60 bits of the hash."""
        return int(self.hash.partition(":")[2][:15] or "0", 16)

    @property
    def version(self) -> int:
        """How often it has changed: it can only be revoked."""
        return int(self.revoked > 0)

    @property
    def is_on_host(self) -> bool:
        """Whether it is a user of a master's host, of whom the kernel says who asks, in place of a token."""
        return self.hash.startswith(ON_HOST)

    def covers(self, queue: str) -> bool:
        """Whether a queue is in its subtrees."""
        return any(path == EVERYWHERE or f"{queue}/".startswith(f"{path}/") for path in self.queues)

    def has_a_right_to(self, queue: str, owner: str) -> bool:
        """Whether a job of a queue, which *owner* has submitted, is its own, or one of all that it may change."""
        is_own = bool(owner) and owner == self.name
        return self.role == ADMIN or (bool(self.queues) and (is_own or (self.all_jobs and self.covers(queue))))

    def is_over(self, now: float) -> bool:
        """Whether it expired, or was revoked, so long ago that it is to be forgotten."""
        ends = [each for each in (self.expires, self.revoked) if each]
        return bool(ends) and min(ends) + KEPT_S < now

    def state(self, now: float) -> Literal["valid", "expired", "revoked"]:
        """Return how the token stands."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= now else "valid"


def id_of(kept: TokenHash) -> str:
    """Return what a token is called: a part of its hash, from which nobody finds the token."""
    return f"t{kept.text.partition(':')[2][:12]}"


encoded_identity = msgpack.Encoder().encode
read_identity = msgpack.Decoder(Identity).decode


class People:
    """All tokens of a federation, by hash: checking one takes the same time, however many there are."""

    def __init__(self, first: TokenHash | None = None) -> None:
        self.of_hash: dict[str, Identity] = {}
        self.of_user: dict[str, Identity] = {}  # by name, of users of masters' hosts: the one that was made last
        self.first = ""
        if first is not None:
            self.begin_with(first)

    def begin_with(self, first: TokenHash) -> None:
        """Let the token that the first start of a master makes be an admin's; it is never in the list."""
        self.first = first.text
        self.of_hash[first.text] = Identity(id_of(first), FIRST, ADMIN, hash=first.text)

    def note(self, identity: Identity) -> None:
        """Keep a token as it stands."""
        if identity.hash == self.first:
            return
        self.of_hash[identity.hash] = identity
        if identity.is_on_host and identity.made >= self.of_user.get(identity.name, identity).made:
            self.of_user[identity.name] = identity

    def forget(self, identity: Identity) -> None:
        """Keep a token no more."""
        if identity.hash != self.first:
            self.of_hash.pop(identity.hash, None)
        if self.of_user.get(identity.name) == identity:
            del self.of_user[identity.name]

    def holder(self, token: str) -> Identity | None:
        """Return who holds a token, None where nobody does."""
        return self.of_hash.get(hash_of(token).text)

    def listed(self) -> list[Identity]:
        """Return all tokens but the first one, by name, the earliest first."""
        return sorted((each for each in self.of_hash.values() if each.hash != self.first),
                      key=lambda each: (each.name, each.made, each.id))

    def named(self, name: str) -> list[Identity]:
        """Return the tokens of a person, or the one of an id."""
        return [each for each in self.listed() if name in (each.name, each.id)]

    def over(self, now: float) -> Iterable[Identity]:
        """Return those that are to be forgotten."""
        return [each for each in self.of_hash.values() if each.is_over(now)]
