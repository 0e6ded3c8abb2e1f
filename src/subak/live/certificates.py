"""Makes, issues and reads certificates whose names say the federation, the role and the name of a process.

A certificate speaks for one process: its URI is `subak://FEDERATION/ROLE/NAME`. Who has a worker's certificate can
speak for that worker and for nobody else. Any authority will do that issues certificates with such URIs; `subak ca` is
a small one for those who have none.
"""
import datetime
import ipaddress
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from subak.errors import InputError
from subak.live.identities import GLOBAL_MASTER, NAME, ROLES, Identity, identity_in
from subak.live.private_files import read_private, write_private

AUTHORITY, KEY, REVOKED = "ca.crt", "ca.key", "ca.crl"  # in the folder of an authority
ISSUED = "issued"  # copies of what was issued, so that it can be revoked when nobody has it any more
EARLIER = datetime.timedelta(hours=2)  # by which a certificate begins: clocks of hosts differ
AUTHORITY_DAYS, DAYS, COUNTS_DAYS_MAX = 3650, 365, 3650
REVOKED_DAYS = 3650  # that a list of revoked certificates counts
PUBLIC = 0o644


class Pair(NamedTuple):
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes


class Shown(NamedTuple):
    """What a certificate says; *identity* is None where its names are none of a process."""

    identity: Identity | None
    hosts: list[str]
    begin: datetime.datetime
    end: datetime.datetime
    serial: int
    is_authority: bool


class Authority:
    """An authority in a folder: its certificate, its key and the list of what it has revoked."""

    def __init__(self, folder: Path) -> None:
        """Read it. Raises InputError where there is none, or it can't be read."""
        self.folder = folder
        self.certificate = read_certificate(folder / AUTHORITY)
        text = read_private(folder / KEY)
        if text is None:
            raise InputError(f"{folder / KEY}: no such file; subak ca init {folder} makes an authority")
        self.key = _key_of(folder / KEY, text)
        if self.certificate.public_key() != self.key.public_key():
            raise InputError(f"{folder / KEY}: is not the key of {folder / AUTHORITY}")
        self.federation = str(self.certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value)

    def issue(self, role: str, name: str, hosts: Sequence[str] = (), days: int = DAYS) -> Pair:
        """Return a certificate for a process with its key. Raises InputError for a name or a time that can't be."""
        if role not in ROLES:
            raise InputError(f"ROLE: must be one of {', '.join(ROLES)}, not {role!r}")
        check_days(days)
        if role == GLOBAL_MASTER and not hosts:
            raise InputError("--host: a global master's certificate must name the hosts at which people reach it")
        identity = Identity(self.federation, role, name)
        if identity_in([identity.uri]) != identity:
            raise InputError(f"NAME: must be the name of a process, of letters, digits, '.', '_' and '-', not {name!r}")
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(identity.uri), *map(_host, hosts)]
        certificate = (
            _begun(key, self.certificate.subject, f"{role} {name}"[:64], self.federation, days)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(of_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                           critical=False)
            .add_extension(_issuer(self.certificate), critical=False)
            .sign(self.key, hashes.SHA256()))
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        write_private(self.folder / ISSUED / f"{stem_of(role, name)}-{certificate.serial_number:x}.crt", pem.decode(),
                      mode=PUBLIC)
        return Pair(pem, _pem(key))

    def issued(self, stem: str) -> list[Path]:
        """Return copies of all certificates that were issued to a process, called as `stem_of` does."""
        return sorted(file for file in (self.folder / ISSUED).glob("*.crt") if file.stem.rpartition("-")[0] == stem)

    def revoke(self, certificate: x509.Certificate) -> None:
        """Put a certificate on the list of those that nobody may use any more. Raises InputError for another's."""
        if certificate.issuer != self.certificate.subject:
            raise InputError(f"{self.folder}: the certificate was issued by another authority")
        self.list_revoked({*read_revoked(self.folder / REVOKED), certificate.serial_number})

    def list_revoked(self, serials: Collection[int]) -> None:
        """Write the list of what nobody may use any more, by serial numbers."""
        now = _now()
        listed = (x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject).last_update(now)
                  .next_update(now + datetime.timedelta(days=REVOKED_DAYS)))
        for serial in sorted(serials):
            listed = listed.add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build())
        pem = listed.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        write_private(self.folder / REVOKED, pem.decode(), mode=PUBLIC)


def check_days(days: int) -> None:
    """Raise InputError for a time that no certificate counts."""
    if not 1 <= days <= COUNTS_DAYS_MAX:
        raise InputError(f"--days: must be from 1 to {COUNTS_DAYS_MAX}, not {days}")


def make_authority(folder: Path, federation: str) -> Authority:
    """Make an authority in a folder, with an empty list of what it has revoked.

    Raises InputError for a name that no federation can have, and where there is an authority.
    """
    if not NAME.fullmatch(federation):
        raise InputError(f"--name: must match {NAME.pattern}, and {federation!r} does not")
    for name in (KEY, AUTHORITY):
        if (folder / name).exists():
            raise InputError(f"{folder / name}: is there already; a new authority would make all its certificates "
                             "worthless, so take another folder")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, federation),
                         x509.NameAttribute(NameOID.COMMON_NAME, f"subak {federation}")])
    certificate = (
        _begun(key, subject, f"subak {federation}", federation, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(of_authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256()))
    write_private(folder / KEY, _pem(key).decode())
    write_private(folder / AUTHORITY, certificate.public_bytes(serialization.Encoding.PEM).decode(), mode=PUBLIC)
    made = Authority(folder)
    made.list_revoked(())
    return made


def read_certificate(file: Path) -> x509.Certificate:
    """Return the first certificate of a file. Raises InputError."""
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{file}: holds no certificate in PEM") from None


def read_revoked(file: Path) -> frozenset[int]:
    """Return the serial numbers on a list of revoked certificates (a CRL in PEM). Raises InputError."""
    try:
        return frozenset(each.serial_number for each in x509.load_pem_x509_crl(file.read_bytes()))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{file}: holds no list of revoked certificates (a CRL in PEM)") from None


def shown(certificate: x509.Certificate) -> Shown:
    """Return what a certificate says."""
    names = x509.SubjectAlternativeName([])
    with suppress(x509.ExtensionNotFound):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    is_authority = False
    with suppress(x509.ExtensionNotFound):
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    return Shown(identity_in(names.get_values_for_type(x509.UniformResourceIdentifier)), hosts,
                 certificate.not_valid_before_utc, certificate.not_valid_after_utc, certificate.serial_number,
                 is_authority)


def stem_of(role: str, name: str) -> str:
    """Return how the files of a process's certificate are called."""
    return f"{role}-{name}"


def write_pair(folder: Path, stem: str, pair: Pair) -> None:
    """Write a certificate and, privately, its key; the key first, so that a certificate always has one."""
    write_private(folder / f"{stem}.key", pair.key.decode())
    write_private(folder / f"{stem}.crt", pair.certificate.decode(), mode=PUBLIC)


def _begun(key: ec.EllipticCurvePrivateKey, issuer: x509.Name, name: str, federation: str,
           days: int) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, federation),
                         x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = _now()
    return (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - EARLIER)
            .not_valid_after(now + datetime.timedelta(days=days)))


def _usage(of_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not of_authority, key_cert_sign=of_authority, crl_sign=of_authority, key_encipherment=False,
        content_commitment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False)


def _issuer(certificate: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    found = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found)


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})", text):
        raise InputError(f"--host: must be an address or a name of a host, not {text!r}")
    return x509.DNSName(text)


def _key_of(file: Path, text: str) -> ec.EllipticCurvePrivateKey:
    try:
        key: PrivateKeyTypes = serialization.load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError):
        raise InputError(f"{file}: holds no private key in PEM without a passphrase") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"{file}: must hold a key of an elliptic curve")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
