"""Certificates and tokens that expire, and are replaced by whoever has to see to that."""

from __future__ import annotations

import asyncio
import base64
import datetime
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from assetlock.admission.upkeep import certificates, tls
from assetlock.core import names
from assetlock.dev import pki
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import SECRETS
from tests.chaos.cluster import Cluster
from tests.chaos.proxy import LOOPBACK


@asynccontextmanager
async def of_webhooks(cluster: Cluster) -> AsyncIterator[None]:
    """The webhooks' certificate ran out while their process was down; it has to see to that by itself."""
    long_ago = datetime.datetime.now(datetime.UTC) - certificates.SERVING_LIFE - datetime.timedelta(days=1)
    await cluster.kill("admission")
    api = Api(HttpTransport(load_config(cluster.access.kubeconfig)))
    try:
        present = await api.get(SECRETS, names.OPERATOR_NAMESPACE, tls.SECRET)
        expired = certificates.issue([LOOPBACK], long_ago)
        contents = {
            "ca.crt": expired.trusted,
            "ca.key": expired.ca_key,
            "tls.crt": expired.certificate,
            "tls.key": expired.key,
        }
        present["data"] |= {key: base64.b64encode(pem.encode()).decode() for key, pem in contents.items()}
        await api.replace(SECRETS, names.OPERATOR_NAMESPACE, tls.SECRET, present)
    finally:
        await api.close()
    yield
    await cluster.start_if_it_can("admission")


@asynccontextmanager
async def of_apiserver(cluster: Cluster) -> AsyncIterator[None]:
    """Nobody trusts the API server, until an administrator has renewed its certificate and restarted it."""
    with _Expired(cluster, "apiserver", "ca") as certificate:
        await cluster.kill("kube-apiserver")
        await cluster.start_if_it_can("kube-apiserver")
        yield
        certificate.renew()
        await cluster.kill("kube-apiserver")
        await cluster.start_if_it_can("kube-apiserver")


@asynccontextmanager
async def of_etcd(cluster: Cluster) -> AsyncIterator[None]:
    """The API server does not trust etcd, which reads its certificate anew for each connection."""
    with _Expired(cluster, "etcd", "etcd-ca"):
        cluster.proxies["kube-apiserver to etcd"].cut()
        cluster.proxies["kube-apiserver to etcd"].mend()
        yield


def of_token(part: str) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    """The file holds a token that is not accepted any more, until the kubelet writes a fresh one."""

    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        file = cluster.token_file(part)
        fresh = file.read_text()
        file.write_text(
            await asyncio.to_thread(_refused_token, cluster, f"assetlock-{part.partition('-')[0]}")
        )
        try:
            yield
        finally:
            file.write_text(fresh)

    return make


def _refused_token(cluster: Cluster, account: str) -> str:
    """One that was bound to a Secret which is gone: tokens live ten minutes at least, so none expires in time."""
    kubectl, secret = cluster.access.kubectl, f"gone-{secrets.token_hex(4)}"
    place = f"--namespace={names.OPERATOR_NAMESPACE}"
    kubectl("create", "secret", "generic", secret, place)
    bound = ("--bound-object-kind=Secret", f"--bound-object-name={secret}")
    token = kubectl("create", "token", account, place, *bound).stdout.strip()
    kubectl("delete", "secret", secret, place)
    return token


class _Expired:
    """A certificate of the control plane that ended long ago, with the key, the names and uses that it has."""

    def __init__(self, cluster: Cluster, name: str, authority: str) -> None:
        self._folder = cluster.folder / "pki"
        self._path = self._folder / f"{name}.crt"
        self._good = self._path.read_bytes()
        self._authority = authority

    def __enter__(self) -> _Expired:
        good, authority = (
            x509.load_pem_x509_certificate(self._good),
            pki.Authority.load(self._folder, self._authority),
        )
        long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=30)
        builder = (
            x509.CertificateBuilder()
            .subject_name(good.subject)
            .issuer_name(good.issuer)
            .public_key(good.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(long_ago)
            .not_valid_after(long_ago + datetime.timedelta(days=1))
        )
        for extension in good.extensions:
            builder = builder.add_extension(extension.value, extension.critical)
        expired = builder.sign(authority.key, hashes.SHA256())
        pki.write_private(self._path, expired.public_bytes(serialization.Encoding.PEM))
        return self

    def renew(self) -> None:
        """Put the good one back."""
        pki.write_private(self._path, self._good)

    def __exit__(self, *_: object) -> None:
        self.renew()
