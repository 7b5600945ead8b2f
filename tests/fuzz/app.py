"""The webhook app as a real server, and the API server that it asks: down, or answering in one way."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import ClientSession, web

from assetlock.admission.access import Access
from assetlock.admission.app import application
from assetlock.admission.asset_cache import AssetCache
from assetlock.admission.ended_stamps import EndedStamps
from assetlock.admission.settings import AdmissionSettings
from assetlock.admission.upkeep.activity import ActivityRecorder
from assetlock.admission.upkeep.evidence import MadeWrites
from assetlock.admission.webhooks import Webhooks
from assetlock.kube.api import Api
from assetlock.kube.errors import KubeError
from assetlock.kube.recorder import EventRecorder
from assetlock.kube.transport import Reply, Unreachable

CONFIG_MAPS = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True}


class Answering:
    """A transport to an API server that grants rights or not; `None`: that is down."""

    def __init__(self) -> None:
        self.allows: bool | None = None

    async def request(self, method: str, path: str, **_: Any) -> Reply:
        if self.allows is None:
            raise Unreachable("down")
        if method == "POST":
            return Reply(201, {}, json.dumps({"status": {"allowed": self.allows}}).encode())
        found = path == "/api/v1"
        return Reply(200 if found else 404, {}, json.dumps({"resources": [CONFIG_MAPS]}).encode())

    async def stream(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        raise Unreachable("down")
        yield b""

    async def close(self) -> None:
        return


class Crashes(logging.Handler):
    """Keeps the exceptions that the app answered 500 to, but for those of an API server that is down."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, KubeError):
            self.found.append(error)


class App:
    """The app behind a socket, with a loop of its own: each example is one HTTP request."""

    def __init__(self) -> None:
        self.api_server = Answering()
        self.crashes = Crashes()
        self._loop = asyncio.new_event_loop()
        self._logger = logging.getLogger("assetlock.admission.app")
        self._logger.addHandler(self.crashes)
        self._url = self._loop.run_until_complete(self._start())

    def post(self, path: str, data: bytes) -> tuple[int, str]:
        """Ask, and read the whole answer."""
        return self._loop.run_until_complete(self._post(path, data))

    def close(self) -> None:
        """Stop serving."""
        self._logger.removeHandler(self.crashes)
        self._loop.run_until_complete(self._stop())
        self._loop.close()

    async def _start(self) -> str:
        api = Api(self.api_server, sleep=_at_once)
        ours = Webhooks(
            AdmissionSettings(),
            AssetCache(api),
            Access(api),
            ActivityRecorder(api),
            MadeWrites(api),
            EndedStamps(api),
            EventRecorder(api, "t"),
        )
        self._runner = web.AppRunner(application(ours, _everybody), access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._session = ClientSession()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _post(self, path: str, data: bytes) -> tuple[int, str]:
        async with self._session.post(f"{self._url}/caller{path}", data=data) as answer:
            return answer.status, await answer.text()

    async def _stop(self) -> None:
        await self._session.close()
        await self._runner.cleanup()


async def _everybody(_: str) -> bool:
    return True


async def _at_once(_: float) -> None:
    await asyncio.sleep(0)
