"""The keys and certificates of one local control plane, made anew for each and never shared.

Three authorities, so that none vouches for more than it should: `ca` for the API server and its users, `etcd-ca`
for etcd and its one client, `front-proxy-ca` for the aggregation layer. Keys are ECDSA P-256 and readable by
their owner alone. A name in a certificate may have 64 characters (X.509's upper bound).
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LONGEST_NAME = 64
ADMIN = "kubernetes-admin"
ADMIN_GROUP = "system:masters"
_LIFETIME = datetime.timedelta(days=365)
_LOOPBACK = ("localhost", "kubernetes.default.svc", "127.0.0.1", "::1")


def write_private(path: pathlib.Path, content: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    partial.rename(path)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def save(self, folder: pathlib.Path, name: str) -> None:
        """Write `<name>.crt` and `<name>.key`."""
        write_private(folder / f"{name}.crt", self.certificate)
        write_private(folder / f"{name}.key", self.key)

    @classmethod
    def load(cls, folder: pathlib.Path, name: str) -> Pair:
        """Read what `save` wrote."""
        return cls((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, name: str) -> Authority:
        """A self-signed authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = _usage(digital_signature=True, key_cert_sign=True, crl_sign=True)
        certificate = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load(cls, folder: pathlib.Path, name: str) -> Authority:
        """Read what `Pair.save` wrote."""
        certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{name}.key is not an elliptic-curve key")
        return cls(certificate, key)

    def pair(self) -> Pair:
        """The authority itself, PEM."""
        return _pem(self.certificate, self.key)

    def client(self, name: str, groups: Iterable[str] = ()) -> Pair:
        """A certificate that authenticates as `name`, a member of `groups`."""
        return self._issue(name, groups, (), (ExtendedKeyUsageOID.CLIENT_AUTH,))

    def server(self, name: str, extra_hosts: Iterable[str] = ()) -> Pair:
        """A certificate to serve with on the loopback addresses, good as a client's too."""
        usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return self._issue(name, (), (*_LOOPBACK, *extra_hosts), usages)

    def _issue(
        self,
        name: str,
        groups: Iterable[str],
        hosts: Iterable[str],
        usages: Iterable[x509.ObjectIdentifier],
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _builder(subject, self.certificate.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(list(usages)), critical=False)
        )
        if alternatives := [_general_name(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return _pem(builder.sign(self.key, hashes.SHA256()), key)


def create(folder: pathlib.Path) -> None:
    """Write everything that a control plane starts with into `folder`."""
    folder.mkdir(mode=0o700)
    ca, etcd, front_proxy = (Authority.new(name) for name in ("local", "local-etcd", "local-front-proxy"))
    for name, authority in (("ca", ca), ("etcd-ca", etcd), ("front-proxy-ca", front_proxy)):
        authority.pair().save(folder, name)
    ca.server("kube-apiserver", ("10.0.0.1", "kubernetes", "kubernetes.default")).save(folder, "apiserver")
    ca.client(ADMIN, [ADMIN_GROUP]).save(folder, "admin")
    ca.client("system:kube-controller-manager").save(folder, "controller-manager")
    etcd.server("etcd").save(folder, "etcd")
    etcd.client("kube-apiserver").save(folder, "etcd-client")
    front_proxy.client("front-proxy").save(folder, "front-proxy")
    tokens = ec.generate_private_key(ec.SECP256R1())
    write_private(folder / "service-accounts.key", _private_pem(tokens))
    public = tokens.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_private(folder / "service-accounts.pub", public)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
