"""How processes know each other: by certificates over TLS, or by a join token, which is never said itself.

A certificate names one process (`identities.py`), and its owner speaks for that one alone. Files are looked at every
`REFRESH_S`: a new certificate serves from then on, and connections of one that was revoked, or has expired, end.
"""
import hashlib
import hmac
import ipaddress
import ssl
import time
from asyncio import BaseTransport
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from subak.errors import InputError
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER
from subak.live import identities
from subak.live.config import TlsEntry, split_address
from subak.live.identities import Identity, identity_in
from subak.live.private_files import read_private
from subak.live.role.layout import STANDBYS, Peer
from subak.live.tokens import TokenHash

REFRESH_S = 2.0
SOON_S = 14 * 86400.0  # before a certificate expires, that it is said
OWN = ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")


class Trust(Protocol):
    """How a process proves who it is, and checks who others are."""

    @property
    def server(self) -> ssl.SSLContext | None:
        """Of connections that other processes make; None: they are in clear."""

    @property
    def client(self) -> ssl.SSLContext | None:
        """Of connections that this process makes."""

    @property
    def people(self) -> ssl.SSLContext | None:
        """Of connections that people make."""

    def proof(self, side: str, nonce: bytes, me: Peer) -> bytes:
        """Return what only *me* can say about a nonce."""

    def problem(self, side: str, nonce: bytes, peer: Peer, proof: bytes, transport: BaseTransport) -> str:
        """Return why the other end is not the peer that it says it is, or nothing."""

    def name_of(self, transport: BaseTransport) -> str:
        """Return the name that a connection's certificate proves, or nothing where there is none."""

    def refresh(self) -> str:
        """Take in files that have changed; return what is to be said of it."""

    def is_over(self, transport: BaseTransport) -> bool:
        """Whether a connection is to end, because what proves its other end counts no more."""


class TokenTrust:
    """Who knows the join token is trusted with any role."""

    server = client = people = None

    def __init__(self, token: TokenHash) -> None:
        self.token = token

    def proof(self, side: str, nonce: bytes, me: Peer) -> bytes:
        """Return what only who knows the join token can say about a nonce."""
        return hmac.digest(self.token.text.encode(), repr((side, nonce, *me)).encode(), hashlib.sha256)

    def problem(self, side: str, nonce: bytes, peer: Peer, proof: bytes, transport: BaseTransport) -> str:
        """Return why the other end is not trusted, or nothing."""
        return "" if hmac.compare_digest(self.proof(side, nonce, peer), proof) else \
            "its join token is not that of this federation"

    def name_of(self, transport: BaseTransport) -> str:
        """Nothing is proven but that it knows the token."""
        return ""

    def refresh(self) -> str:
        """There is nothing to take in."""
        return ""

    def is_over(self, transport: BaseTransport) -> bool:
        """Never end one: a token is for good."""
        return False


class CertificateTrust:
    """Who has a certificate of the authority is trusted with what it names; *names*: what a peer must be called.

    What *names* says nothing of (a machine that has yet to join) is up to who is asked to let it in.
    """

    def __init__(self, entry: TlsEntry, folder: Path, role: str = "", name: str = "",
                 names: Callable[[Peer], str] = lambda peer: "", federation: str = "") -> None:
        """*role*, *name*, *federation*: whose certificate it must be. Raises InputError for files that are not such."""
        self.ca, self.certificate, self.key = (folder / each for each in (entry.ca, entry.certificate, entry.key))
        self.list = folder / entry.revoked if entry.revoked else None
        self.names = names
        self.me = self._checked(role, name)
        if federation not in ("", self.me.federation):
            raise InputError(f"{self.certificate}: is of federation {self.me.federation}, and this is {federation}")
        self.server = _context(ssl.PROTOCOL_TLS_SERVER)
        self.client = _context(ssl.PROTOCOL_TLS_CLIENT)
        self.people = _context(ssl.PROTOCOL_TLS_SERVER, asks=False)  # who show a token, not a certificate
        self.revoked: frozenset[int] = frozenset()
        self.seen, self.said = self._state(), ""
        self._load()

    def _checked(self, role: str, name: str) -> Identity:
        """Return whose the certificate is. Raises InputError where it is another's, or has expired."""
        from subak.live.certificates import read_certificate, shown  # noqa: PLC0415  (who has none does without)

        found = shown(read_certificate(self.certificate))
        if found.identity is None:
            raise InputError(f"{self.certificate}: names no process; its URI must be subak://FEDERATION/ROLE/NAME")
        if role and (found.identity.role, found.identity.name) != (role, name):
            raise InputError(f"{self.certificate}: is of {found.identity}, and one of {role} {name} is needed")
        if found.end.timestamp() <= time.time():
            raise InputError(f"{self.certificate}: has expired on {found.end:%Y-%m-%d}; issue another")
        self.end, self.serial = found.end.timestamp(), found.serial
        return found.identity

    def _load(self) -> None:
        from subak.live.certificates import read_revoked  # noqa: PLC0415  (as above)

        if read_private(self.key) is None:  # raises for one that others may read
            raise InputError(f"{self.key}: No such file or directory")
        self.revoked = revoked = read_revoked(self.list) if self.list is not None else frozenset()
        probe = _context(ssl.PROTOCOL_TLS_SERVER)  # a context that refuses a pair is left without its former one
        try:
            for context in (probe, self.server, self.client, self.people):
                context.load_cert_chain(self.certificate, self.key)
                if context.verify_mode == ssl.CERT_REQUIRED:
                    context.load_verify_locations(self.ca)
        except ssl.SSLError as error:
            raise InputError(f"{self._files()}: do not fit: {error.reason or error}") from None
        except OSError as error:
            raise InputError(f"{self._files()}: {error.strerror}") from None
        if self.serial in revoked:
            raise InputError(f"{self.certificate}: was revoked by {self.list}; issue another")

    def _files(self) -> str:
        return f"{self.certificate}, {self.key}, {self.ca}"

    def _state(self) -> list[tuple[int, int]]:
        found = []
        for file in (self.ca, self.certificate, self.key, self.list):
            if file is not None:
                try:
                    status = file.stat()
                    found.append((status.st_mtime_ns, status.st_ino))
                except OSError:
                    found.append((0, 0))
        return found

    def refresh(self) -> str:
        """Take in files that have changed; a bad one leaves what was there in force, and is said once."""
        words, state = "", self._state()
        if state != self.seen:
            self.seen = state
            try:
                self._checked(self.me.role, self.me.name)
                self._load()
            except InputError as error:
                return f"{error}; what was read before stays in force"
            words, self.said = "certificates were read anew", ""
        left = self.end - time.time()
        if left < SOON_S and not self.said:
            self.said = f"{self.certificate}: expires in {max(0.0, left) / 86400:.1f} days; issue another"
            return self.said
        return words

    def proof(self, side: str, nonce: bytes, me: Peer) -> bytes:
        """Say nothing: the certificate is the proof."""
        return b""

    def problem(self, side: str, nonce: bytes, peer: Peer, proof: bytes, transport: BaseTransport) -> str:
        """Return why the other end's certificate is not that of *peer*, or nothing."""
        found = _identity_of(transport)
        if found is None:
            return "its certificate names no process of a federation"
        if found.federation != self.me.federation:
            return f"its certificate is of federation {found.federation}, and this is {self.me.federation}"
        if self.is_over(transport):
            return "its certificate was revoked, or has expired"
        if role_of(peer) != found.role:
            return f"its certificate is of a {found.role}, and it says that it is a {role_of(peer)}"
        wanted = self.names(peer)
        return "" if wanted in ("", found.name) else \
            f"its certificate is of {found.role} {found.name}, and it says that it is {wanted}"

    def name_of(self, transport: BaseTransport) -> str:
        """Return the name in a peer's certificate."""
        found = _identity_of(transport)
        return found.name if found else ""

    def is_over(self, transport: BaseTransport) -> bool:
        """Whether the certificate of a connection was revoked, or has expired."""
        shown = transport.get_extra_info("peercert") or {}
        return int(shown.get("serialNumber", "0"), 16) in self.revoked or \
            ssl.cert_time_to_seconds(shown["notAfter"]) <= time.time()


def _identity_of(transport: BaseTransport) -> Identity | None:
    shown = transport.get_extra_info("peercert") or {}
    return identity_in(value for kind, value in shown.get("subjectAltName", ()) if kind == "URI")


def role_of(peer: Peer) -> str:
    """Return the role that the certificate of a peer names."""
    if peer[0] == GLOBAL_MASTER:
        return identities.GLOBAL_MASTER
    if peer[0] == LOCAL_MASTER:
        return identities.LOCAL_MASTER if peer[1] < STANDBYS else identities.STANDBY
    return identities.WORKER


def is_own(address: str) -> bool:
    """Whether an address, HOST:PORT, is one of this machine that no other can reach."""
    host = split_address("address", address)[0]
    try:
        return any(ipaddress.ip_address(host) in net for net in OWN)
    except ValueError:
        return host == "localhost"


def check_plaintext(what: str, address: str, is_allowed: bool) -> None:
    """Raise InputError where something would leave this machine in clear, and the file does not say that it may.

    *what*: the name of the address in the file.
    """
    if not is_allowed and not is_own(address):
        raise InputError(f"{what}: {address} is reached over a network, and without [tls] all goes there in clear: "
                         "give this process a certificate (subak init, subak ca), or write plaintext = true")


def words_of(error: BaseException) -> str:
    """Return what an error of TLS means for who set it up."""
    reason = str(getattr(error, "reason", "") or "")
    detail = str(getattr(error, "verify_message", "") or "")
    for word, meaning in TLS_WORDS.items():
        if word in reason or word in detail or word in str(error):
            return meaning
    return f"TLS failed: {detail or reason or error}"


TLS_WORDS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS, or another process listens there",
    "HTTP_REQUEST": "a client without TLS called",
    "certificate has expired": "its certificate has expired, or the clock of this host is wrong",
    "certificate is not yet valid": "its certificate is not valid yet: compare the clocks of both hosts",
    "UNKNOWN_CA": "it does not trust the authority of this process's certificate",
    "CERTIFICATE_EXPIRED": "it takes the certificate of this process as expired: compare the clocks of both hosts",
    "CERTIFICATE_REQUIRED": "it wants a certificate, and got none",
    "BAD_CERTIFICATE": "it refuses the certificate of this process",
    "self-signed certificate": "its certificate is of another authority than this federation's",
    "unable to get local issuer": "its certificate is of another authority than this federation's",
    "certificate signature failure": "its certificate is of another authority than this federation's",
}


def _context(protocol: Any, asks: bool = True) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a certificate names a process, wherever that is
    context.verify_mode = ssl.CERT_REQUIRED if asks else ssl.CERT_NONE
    return context
