"""Makes and checks tokens: the server keeps a token's hash, whoever started it keeps the token in a file.

There are two, for two audiences: people's, and the one with which masters and workers join. A token is 256 random
bits, so its hash needs no salt and no slow function.
"""
import hashlib
import hmac
import os
import re
from pathlib import Path

from msgspec import Struct

from subak.errors import InputError
from subak.live.private_files import read_private, write_private

PEOPLE, JOIN = "people", "join"  # for whom a token is
PREFIXES = {PEOPLE: "subak-people-", JOIN: "subak-join-"}  # so that one given for the other is seen to be
RANDOM_BYTES = 32
TOKEN = re.compile(r"subak-(people|join)-[0-9a-f]{64}", re.ASCII)
HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


class TokenHash(Struct, frozen=True):
    """What is kept of a token: enough to know it again, too little to use it."""

    text: str  # sha256:HEX

    def matches(self, token: str) -> bool:
        """Whether this is the hash of *token*; takes as long for one that is nearly right as for any other."""
        return hmac.compare_digest(self.text.encode(), hash_of(token).text.encode())


def new_token(audience: str) -> str:
    """Return a token that nobody has seen, for people or for joining."""
    return PREFIXES[audience] + os.urandom(RANDOM_BYTES).hex()


def hash_of(token: str) -> TokenHash:
    """Return what is kept of a token; any text has a hash."""
    return TokenHash("sha256:" + hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest())


def kept_hash(hash_file: Path, token_file: Path, audience: str) -> TokenHash:
    """Return the hash in *hash_file*, made on the first start, when a new token is written to *token_file*.

    A token that is already there is taken, such as that of another master, or of a first start that was cut short.
    Both files are private. Raises InputError for a file that holds something else, or that others may read.
    """
    found = read_private(hash_file)
    if found is not None:
        if not HASH.fullmatch(found):
            raise InputError(f"{hash_file}: must hold a line such as sha256:HEX; remove it to take a new token")
        return TokenHash(found)
    make_token(token_file, audience)
    kept = hash_of(read_token(token_file, audience))
    write_private(hash_file, kept.text)
    return kept


def make_token(file: Path, audience: str) -> None:
    """Write a new token to a private file where there is none; of several who do so at once, one makes it."""
    if read_private(file) is None:
        write_private(file, new_token(audience), once=True)


def read_token(file: Path, audience: str = PEOPLE) -> str:
    """Return the token in a file. Raises InputError where there is none, it is for others, or others may read it."""
    found = read_private(file)
    if found is None:
        raise InputError(f"{file}: no such file; a token is made when a master first starts")
    return checked_token(found, audience, str(file))


def write_token(file: Path, token: str, audience: str) -> None:
    """Write a token to a new private file. Raises InputError where there is one, or it cannot be written."""
    if read_private(file) is not None:
        raise InputError(f"{file}: exists already; a token is written to a new file")
    write_private(file, checked_token(token, audience, str(file)), once=True)


def checked_token(token: str, audience: str, where: str) -> str:
    """Return *token*. Raises InputError for what cannot be one for *audience*; never says the token itself."""
    shape = TOKEN.fullmatch(token)
    if not shape:
        raise InputError(f"{where}: holds no token, which is {PREFIXES[audience]} and {2 * RANDOM_BYTES} digits")
    if shape[1] != audience:
        raise InputError(f"{where}: is a token for {shape[1]}, and one for {audience} is needed")
    return token
