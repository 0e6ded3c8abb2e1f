"""Makes, lists and revokes tokens: the same for every service, which says how a change becomes known."""
import os
import time
from collections.abc import Callable

from msgspec import structs

from subak.live.api.errors import InvalidError, NotFoundError, RefusedError
from subak.live.api.models import MadeToken, NewPerson, Page, TokenView
from subak.live.people.identity import FIRST, IDENTITIES_MAX, ON_HOST, OPERATOR, SUBMITTER, Identity, People, id_of
from subak.live.tokens import PEOPLE, TokenHash, hash_of, new_token


def token_view(identity: Identity, now: float) -> TokenView:
    """Return a token as people see it."""
    return TokenView(
        id=identity.id, name=identity.name, role=identity.role,  # type: ignore[arg-type]
        queues=identity.queues, all_jobs=identity.all_jobs, on_host=identity.is_on_host,
        state=identity.state(now), made=identity.made or None,
        made_by=identity.made_by, expires=identity.expires or None, revoked=identity.revoked or None)


def tokens_of(people: People, cursor: str, limit: int) -> Page[TokenView]:
    """Return a page of all tokens; the cursor is how many came before."""
    first, now, found = int(cursor) if cursor.isdecimal() else 0, time.time(), people.listed()
    items = tuple(token_view(each, now) for each in found[first : first + limit])
    return Page(items=items, cursor=str(first + limit) if len(found) > first + limit else "")


def made(people: People, asked: NewPerson, by: str, note: Callable[[Identity], None]) -> MadeToken:
    """Make a token. Raises InvalidError for what goes with no role, RefusedError where there are too many."""
    _check(asked)
    if len(people.of_hash) > IDENTITIES_MAX:
        raise RefusedError(f"there are {IDENTITIES_MAX:,} tokens, and may be no more: those that were revoked, or have "
                           "expired, are forgotten after 30 days")
    token, now = "" if asked.on_host else new_token(PEOPLE), time.time()
    kept = hash_of(token) if token else TokenHash(f"{ON_HOST}:{os.urandom(32).hex()}")
    identity = Identity(id_of(kept), asked.name, asked.role, tuple(path.rstrip("/") or "/" for path in asked.queues),
                        asked.all_jobs, kept.text, now, by, now + asked.valid_s if asked.valid_s else 0.0)
    note(identity)
    return MadeToken(token=token, holder=token_view(identity, now))


def _check(asked: NewPerson) -> None:
    if asked.name == FIRST:
        raise InvalidError(f"name: {FIRST} is the holder of the token of the first start; take another name",
                           field="name")
    if any(not path for path in asked.queues):
        raise InvalidError("queues: a path must not be empty; / is all queues", field="queues")
    if asked.role == SUBMITTER and not asked.queues:
        raise InvalidError("queues: a submitter needs one at least, such as research; / is all queues", field="queues")
    if asked.queues and asked.role not in (SUBMITTER, OPERATOR):
        raise InvalidError(f"queues: go with a submitter or an operator, not with a role such as {asked.role}",
                           field="queues")
    if asked.all_jobs and not asked.queues:
        raise InvalidError("all_jobs: goes with queues", field="all_jobs")


def revoked(people: People, name: str, note: Callable[[Identity], None]) -> Page[TokenView]:
    """Revoke a token, or all of a person. Raises NotFoundError where there is none, RefusedError for the first."""
    found, now = people.named(name), time.time()
    if not found and name in {FIRST, *(each.id for each in people.of_hash.values())}:
        raise RefusedError(f"{name}: is the token of the first start, which is not revoked here: remove people.token, "
                           "and people.hash of each global master, and restart these")
    if not found:
        raise NotFoundError(f"there is no token of {name}")
    over = [structs.replace(each, revoked=now) if each.state(now) == "valid" else each for each in found]
    for identity in over:
        if identity not in found:
            note(identity)
    return Page(items=tuple(token_view(each, now) for each in over))
