"""Everything that etcd has ever stored, revision by revision, through its own HTTP gateway."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from assetlock.kube.lines import Lines
from tests.chaos.cluster import Cluster
from tests.chaos.proxy import LOOPBACK

_IDLE = 30.0


@dataclass(frozen=True, slots=True)
class Revision:
    """One change: what is stored under a key from this revision on; nothing if it was deleted."""

    number: int
    key: str
    obj: dict[str, Any] | None


async def revisions(cluster: Cluster, prefix: str) -> list[Revision]:
    """All changes under a prefix, from the first to the one that is the last now. Raises if some were compacted."""
    pki = cluster.folder / "pki"
    tls = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
    tls.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
    url = f"https://{LOOPBACK}:{cluster.ports['etcd']}"
    limits = aiohttp.ClientTimeout(total=None, sock_read=_IDLE)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls), timeout=limits, base_url=url
    ) as session:
        last = await _last_change(session, prefix)
        found: list[Revision] = []
        async for revision in _watched(session, prefix):
            found.append(revision)
            if revision.number >= last:
                return found
    raise RuntimeError(f"etcd ended the watch before revision {last}")


async def _last_change(session: aiohttp.ClientSession, prefix: str) -> int:
    """The last revision that surely shows up: that of a key written for the purpose."""
    body = {"key": _encoded(f"{prefix}~"), "value": _encoded("null")}
    async with session.post("/v3/kv/put", json=body) as answer:
        return int((await answer.json())["header"]["revision"])


async def _watched(session: aiohttp.ClientSession, prefix: str) -> AsyncIterator[Revision]:
    request = {"key": _encoded(prefix), "range_end": _encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
    lines = Lines()
    async with session.post(
        "/v3/watch", json={"create_request": {**request, "start_revision": "1"}}
    ) as answer:
        async for chunk in answer.content.iter_any():
            for line in lines.feed(chunk):
                result = json.loads(line)["result"]
                if result.get("canceled"):
                    raise RuntimeError(f"etcd does not give its history: {result}")
                for event in result.get("events", ()):
                    yield _revision(event)


def _revision(event: dict[str, Any]) -> Revision:
    stored = event["kv"]
    value = base64.b64decode(stored["value"]) if "value" in stored else b"null"
    key = base64.b64decode(stored["key"]).decode()
    return Revision(int(stored["mod_revision"]), key, json.loads(value))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
