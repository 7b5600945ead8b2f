"""Our own certificates: a CA, and a serving certificate signed by it. Pure but for the randomness of keys.

The CA is renewed long before its end, and the one before stays trusted beside it, so that replicas with old
and new certificates serve side by side. The serving certificate is renewed when a third of its life is left.
"""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFE = datetime.timedelta(days=3650)
CA_RENEWED_BEFORE = datetime.timedelta(days=365)
SERVING_LIFE = datetime.timedelta(days=90)
SERVING_RENEWED_BEFORE = datetime.timedelta(days=30)
BACKDATED = datetime.timedelta(hours=1)
"""For clocks that are behind ours."""


@dataclasses.dataclass(frozen=True, slots=True)
class Bundle:
    """Everything as PEM. ``trusted`` is what the API server has to trust: the CA, and the one before."""

    trusted: str
    ca_key: str = dataclasses.field(repr=False)
    certificate: str
    key: str = dataclasses.field(repr=False)


def issue(names: Iterable[str], now: datetime.datetime) -> Bundle:
    """A new CA, and a serving certificate for the names."""
    return _with_serving(_new_ca(now, previous=""), names, now)


def renewed(bundle: Bundle, names: Iterable[str], now: datetime.datetime) -> Bundle | None:
    """The bundle with what is due renewed; ``None`` if nothing is.

    Raises ValueError if the bundle can't be read.
    """
    ca = _first(bundle.trusted)
    serving = _first(bundle.certificate)
    wanted = set(names)
    if ca.not_valid_after_utc - now < CA_RENEWED_BEFORE:
        return _with_serving(_new_ca(now, previous=_pem(ca)), wanted, now)
    is_due = serving.not_valid_after_utc - now < SERVING_RENEWED_BEFORE
    if is_due or serving.issuer != ca.subject or not wanted <= _names_of(serving):
        return _with_serving(bundle, wanted | _names_of(serving), now)
    return None


def expires(bundle: Bundle) -> datetime.datetime:
    """When the serving certificate ends."""
    return _first(bundle.certificate).not_valid_after_utc


def _new_ca(now: datetime.datetime, *, previous: str) -> Bundle:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"assetlock admission CA {now:%Y-%m-%d %H:%M}")]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Bundle(_pem(certificate) + previous, _key_pem(key), "", "")


def _with_serving(bundle: Bundle, names: Iterable[str], now: datetime.datetime) -> Bundle:
    ca = _first(bundle.trusted)
    ca_key = serialization.load_pem_private_key(bundle.ca_key.encode(), None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the CA's key is not one of ours")
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "assetlock-admission")]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(min(now + SERVING_LIFE, ca.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general(n) for n in sorted(set(names))]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .add_extension(_usage(signs=False), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    return dataclasses.replace(bundle, certificate=_pem(certificate), key=_key_pem(key))


def _first(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def _names_of(certificate: x509.Certificate) -> set[str]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode("ascii")
