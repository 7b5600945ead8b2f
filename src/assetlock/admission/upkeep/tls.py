"""The certificate that the webhooks are served with: kept fresh, and swapped under the open listener.

Either files that somebody else keeps (read again when they change), or our own, in a Secret that all replicas
share: whoever finds it missing or due makes the next one, by compare-and-swap, and tells the API server to trust
it before anybody serves it. A new certificate counts from the next handshake on; no connection is dropped.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
import logging
import pathlib
import ssl
import tempfile
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from assetlock.admission.review import Object, mapping, text
from assetlock.admission.upkeep import certificates
from assetlock.admission.upkeep.certificates import Bundle
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from assetlock.kube.resources import MUTATING_WEBHOOKS, SECRETS

SECRET = "assetlock-admission-tls"  # noqa: S105
CONFIGURATION = "assetlock"
SERVICE = "assetlock-admission"
PERIOD = 10.0
TRIES = 5

log = logging.getLogger(__name__)


def own_names(namespace: str = names.OPERATOR_NAMESPACE) -> tuple[str, ...]:
    """The names that every certificate of ours is for: the Service's, and this machine's own."""
    service = f"{SERVICE}.{namespace}.svc"
    return ("localhost", "127.0.0.1", "::1", service, f"{service}.cluster.local")


class Source(Protocol):
    """Where the certificate comes from."""

    async def current(self) -> tuple[str, str]:
        """Certificate and key as PEM, renewed if that was due."""
        ...


class GivenFiles:
    """A certificate that somebody else keeps fresh."""

    def __init__(self, certificate: pathlib.Path, key: pathlib.Path) -> None:
        self._certificate = certificate
        self._key = key

    async def current(self) -> tuple[str, str]:
        """What the files hold now."""
        return self._certificate.read_text("ascii"), self._key.read_text("ascii")


class SharedSecret:
    """Our own certificates, in a Secret. Also sees to it that the API server trusts them."""

    def __init__(
        self,
        api: Api,
        further_names: tuple[str, ...] = (),
        *,
        namespace: str = names.OPERATOR_NAMESPACE,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._names = (*own_names(namespace), *further_names)
        self._now = now

    async def current(self) -> tuple[str, str]:
        """The certificate in the Secret, made or renewed by us if need be, and trusted."""
        bundle = await self._bundle()
        await self._have_trusted(bundle.trusted)
        return bundle.certificate, bundle.key

    async def _bundle(self) -> Bundle:
        for _ in range(TRIES):
            try:
                return await self._looked_after()
            except (Conflict, AlreadyExists):
                continue
        raise KubeError(f"Secret {SECRET} is changed by others all the time")

    async def _looked_after(self) -> Bundle:
        try:
            secret = await self._api.get(SECRETS, self._namespace, SECRET)
        except NotFound:
            made = certificates.issue(self._names, self._now())
            await self._api.create(SECRETS, self._namespace, _secret(made, self._namespace))
            return made
        present, due = self._judged(secret)
        if due is None:
            return present
        await self._have_trusted(due.trusted)
        body = {**_secret(due, self._namespace), "metadata": secret["metadata"]}
        await self._api.replace(SECRETS, self._namespace, SECRET, body)
        return due

    def _judged(self, secret: Object) -> tuple[Bundle, Bundle | None]:
        """The Secret's bundle, and the one to put in its place if that is due."""
        try:
            present = _bundle(secret)
            return present, certificates.renewed(present, self._names, self._now())
        except (ValueError, TypeError) as error:
            log.warning("Secret %s can't be used and is recreated: %s", SECRET, error)
            fresh = certificates.issue(self._names, self._now())
            return fresh, fresh

    async def _have_trusted(self, trusted: str) -> None:
        """Write the CA into the webhook configuration. Without one there is nobody to trust us (yet)."""
        wanted = base64.b64encode(trusted.encode()).decode("ascii")
        for _ in range(TRIES):
            try:
                present = await self._api.get(MUTATING_WEBHOOKS, None, CONFIGURATION)
            except NotFound:
                log.warning("MutatingWebhookConfiguration %s is not installed", CONFIGURATION)
                return
            webhooks: list[dict[str, Any]] = present.get("webhooks") or []
            if all(webhook["clientConfig"].get("caBundle") == wanted for webhook in webhooks):
                return
            for webhook in webhooks:
                webhook["clientConfig"]["caBundle"] = wanted
            try:
                await self._api.replace(MUTATING_WEBHOOKS, None, CONFIGURATION, present)
            except Conflict:
                continue
            return


class ServingContext:
    """The SSL context of the listener, and the certificate that is in it."""

    def __init__(self, source: Source, *, period: float = PERIOD) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._source = source
        self._period = period
        self._loaded: tuple[str, str] | None = None

    async def refresh(self) -> bool:
        """Load the present certificate; says whether it is another one than before."""
        pair = await self._source.current()
        if pair == self._loaded:
            return False
        _load(self.context, *pair)
        self._loaded = pair
        return True

    async def run(self) -> NoReturn:
        """Refresh now and then, until cancelled. What can't be refreshed goes on being served."""
        while True:
            await asyncio.sleep(self._period)
            try:
                if await self.refresh():
                    log.info("serving with a new certificate")
            except (KubeError, OSError, ValueError) as error:
                log.warning("the serving certificate could not be looked after: %s", error)


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Put a certificate into the context: ``ssl`` reads files only, so a private one, for a moment.

    A pair that does not belong together is refused by a context of its own, before it replaces one that does.
    """
    with tempfile.NamedTemporaryFile("w", prefix="assetlock-", suffix=".pem", encoding="ascii") as file:
        file.write(f"{certificate.strip()}\n{key.strip()}\n")
        file.flush()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file.name)
        context.load_cert_chain(file.name)


def _bundle(secret: Object) -> Bundle:
    data = mapping(secret.get("data"))
    try:
        parts = {key: base64.b64decode(text(value)).decode("ascii") for key, value in data.items()}
        return Bundle(parts["ca.crt"], parts["ca.key"], parts["tls.crt"], parts["tls.key"])
    except (KeyError, binascii.Error) as error:
        raise ValueError(f"incomplete or unreadable ({error})") from error


def _secret(bundle: Bundle, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {
            "name": SECRET,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "assetlock"},
        },
        "stringData": {
            "ca.crt": bundle.trusted,
            "ca.key": bundle.ca_key,
            "tls.crt": bundle.certificate,
            "tls.key": bundle.key,
        },
    }
