"""Asking a local server over and over whether it is ready yet."""

from __future__ import annotations

import asyncio
import http.client
import pathlib
import ssl
import time
import urllib.parse

from assetlock.dev.children import Child
from assetlock.dev.errors import StartFailed

_PAUSE = 0.05
_ANSWER_TIMEOUT = 5.0


def trusting(pki: pathlib.Path, client: str | None = None) -> ssl.SSLContext:
    """Verify by the control plane's own authority; be `client` if one is named."""
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    if client:
        context.load_cert_chain(pki / f"{client}.crt", pki / f"{client}.key")
    return context


def trusting_anybody() -> ssl.SSLContext:
    """For a server on this machine that makes its own certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def until_ready(child: Child, url: str, tls: ssl.SSLContext, timeout: float) -> None:
    """Return when `url` answers 200; raise `StartFailed` when the process ends first, or time runs out."""
    deadline = time.monotonic() + timeout
    while not await asyncio.to_thread(_answers, url, tls):
        if not child.running:
            raise StartFailed(
                f"{child.name} ended with {child.process.returncode} before it was ready:\n{child.last_words()}"
            )
        if time.monotonic() > deadline:
            raise StartFailed(f"{child.name} was not ready after {timeout:.0f} s:\n{child.last_words()}")
        await asyncio.sleep(_PAUSE)


def _answers(url: str, tls: ssl.SSLContext) -> bool:
    parts = urllib.parse.urlsplit(url)
    host, path = parts.hostname or "", parts.path or "/"
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=_ANSWER_TIMEOUT, context=tls)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=_ANSWER_TIMEOUT)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
