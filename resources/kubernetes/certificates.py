"""The certificate of a webhook: an authority of our own, what it issues, and when both are renewed.

The authority is trusted by what an API server is configured with (``caBundle``), so that a renewal
must not come before the configuration has it: a new authority is published first, beside the former
one, and issues only after that. So it is where the Secret is deleted, damaged or replaced
by a backup while servers present what it had. Pure: the time comes from outside, keys from the
system's source.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME: Final = dt.timedelta(days=3650)
AUTHORITY_RENEWAL: Final = dt.timedelta(days=365)
"""Before its end."""
LIFETIME: Final = dt.timedelta(days=90)
RENEWAL: Final = dt.timedelta(days=30)
"""Before its end."""
LEEWAY: Final = dt.timedelta(days=2)
"""How far a clock may be behind that of the issuer."""
_AUTHORITY: Final = "waggle-webhook-authority-"
"""The common name of an authority, before its number."""

FIELDS: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")
"""Keys of the Secret, in the order of the fields of `Certificates`."""


class Certificates(msgspec.Struct, frozen=True):
    """The contents of the Secret, as PEM; the keys are never shown."""

    authorities: str
    """The present authority, and after it the former one while there is one."""
    authority_key: str
    certificate: str
    key: str

    def __repr__(self) -> str:
        """Return what may be shown: nothing of it."""
        return "Certificates(...)"

    @property
    def data(self) -> dict[str, str]:
        """The ``data`` of the Secret with the webhook's certificates."""
        values = (self.authorities, self.authority_key, self.certificate, self.key)
        return {
            field: base64.b64encode(value.encode()).decode()
            for field, value in zip(FIELDS, values, strict=True)
        }

    @property
    def bundle(self) -> str:
        """The ``caBundle`` of a webhook: the certificates of the authorities, in base64."""
        return base64.b64encode(self.authorities.encode()).decode()

    @property
    def end(self) -> dt.datetime:
        """When the webhook's certificate ends."""
        return _certificate(self.certificate).not_valid_after_utc

    @property
    def end_of_authority(self) -> dt.datetime:
        """When the authority ends that issued the webhook's certificate."""
        return _issuer(self).not_valid_after_utc


def from_secret(data: Mapping[str, Any] | None) -> Certificates | None:
    """Return the certificates of a webhook's Secret; None where a server cannot present them.

    It is not complete, cannot be read, or its parts do not belong together.
    """
    try:
        values = [base64.b64decode(str((data or {})[field])).decode() for field in FIELDS]
        certificates = Certificates(*values)
        certificate = _certificate(certificates.certificate)
        pairs = (
            (_authorities(certificates)[0], certificates.authority_key),
            (certificate, certificates.key),
        )
        if any(pair.public_key() != _key(key).public_key() for pair, key in pairs):
            return None
        certificate.verify_directly_issued_by(_issuer(certificates))
        _names(certificate)
    except (KeyError, ValueError, TypeError, IndexError, StopIteration):
        return None
    except (InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return None
    return certificates


def due(
    stored: Certificates | None,
    now: dt.datetime,
    names: Iterable[str],
    *,
    published: bool,
    presented: Certificates | None = None,
    trusted: str = "",
) -> Certificates | None:
    """Return the certificates to store in place of present ones; None where no renewal is due.

    ``names`` are the DNS names and addresses of the server. ``published``: the API server is
    configured with the present authorities. ``presented`` is what this server has in memory, and
    ``trusted`` the ``caBundle`` of the API server: both are used where nothing is stored, or what
    another authority has issued, since other servers present what was.
    """
    wanted = tuple(names)
    if presented is not None and now > presented.end:
        presented = None
    if stored is None:
        fresh, fresh_key = _new_authority(now)
        if presented is None:
            return _issued(_pem(fresh) + _former(trusted), fresh_key, now, wanted)
        return _beside_former(fresh, _key_pem(fresh_key), presented)
    authority = _authorities(stored)[0]
    if presented is not None and _issuer(presented) not in _authorities(stored):
        return _beside_former(authority, stored.authority_key, presented)
    former = _former(trusted) if presented is None else ""
    bridged = stored
    if former and former not in stored.authorities:
        bridged = msgspec.structs.replace(stored, authorities=_pem(authority) + former)
    renewed = _renewed(bridged, now, wanted, published=published)
    return bridged if renewed is None and bridged is not stored else renewed


def _beside_former(
    authority: x509.Certificate, authority_key: str, presented: Certificates
) -> Certificates:
    """Return a certificate with the authority that is to issue the next one, beside its own."""
    both = _pem(authority) + _pem(_issuer(presented))
    return msgspec.structs.replace(presented, authorities=both, authority_key=authority_key)


def _renewed(
    stored: Certificates, now: dt.datetime, wanted: tuple[str, ...], *, published: bool
) -> Certificates | None:
    """Return what follows on a certificate or an authority that is old, or that has other names."""
    authority = _authorities(stored)[0]
    if now > authority.not_valid_after_utc - AUTHORITY_RENEWAL:
        fresh, fresh_key = _new_authority(now)
        both = _pem(fresh) + _pem(authority)
        return msgspec.structs.replace(stored, authorities=both, authority_key=_key_pem(fresh_key))
    present = _certificate(stored.certificate)
    is_former = present.issuer != authority.subject
    is_old = now > present.not_valid_after_utc - RENEWAL
    other_names = _names(present) != frozenset(wanted)
    if (is_former and published) or (not is_former and (is_old or other_names)):
        # The former authority stays: another server may present its certificate for a while.
        return _issued(stored.authorities, _key(stored.authority_key), now, wanted)
    return None


def is_trusted(certificates: Certificates, bundle: str) -> bool:
    """True if an API server with a ``caBundle`` trusts a webhook's certificate."""
    try:
        trusted = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except ValueError:
        return False
    return _issuer(certificates) in trusted


def _new_authority(
    now: dt.datetime,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    # Different for each authority, so that a certificate shows which one issued it.
    name = _name(f"{_AUTHORITY}{x509.random_serial_number():x}"[:64])
    authority = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return authority, key


def _issued(
    authorities: str,
    authority_key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    names: tuple[str, ...],
) -> Certificates:
    issuer = x509.load_pem_x509_certificates(authorities.encode())[0].subject
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name("waggle-webhook"), issuer, key.public_key(), now, LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Certificates(authorities, _key_pem(authority_key), _pem(certificate), _key_pem(key))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    lifetime: dt.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LEEWAY)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names(certificate: x509.Certificate) -> frozenset[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return frozenset(str(name.value) for name in names)


def _authorities(stored: Certificates) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(stored.authorities.encode())


def _issuer(stored: Certificates) -> x509.Certificate:
    """Return the authority of the certificate. Raises StopIteration if it is not among them."""
    issuer = _certificate(stored.certificate).issuer
    return next(authority for authority in _authorities(stored) if authority.subject == issuer)


def _former(bundle: str) -> str:
    """Return the first authority of a ``caBundle`` as PEM; empty if it is none of ours."""
    try:
        certificate = x509.load_pem_x509_certificates(base64.b64decode(bundle))[0]
    except (ValueError, IndexError):
        return ""
    return _pem(certificate) if f"CN={_AUTHORITY}" in certificate.subject.rfc4514_string() else ""


def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def _key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != ec.SECP256R1.name:
        raise TypeError("is not a key of ours")
    return key


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
