"""Who may call the webhooks: the API server, since it alone knows the path.

A review carries no credentials, and most API servers show webhooks no certificate. So the path of each webhook begins
with a secret. It stands in a Secret that all replicas share and in the webhooks' configuration, beside the CA:
whoever may read either may call us in the API server's name. The one before stays good when it is changed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import datetime
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Any, NoReturn

from assetlock.admission.review import Object, mapping, text
from assetlock.admission.upkeep.tls import CONFIGURATION, PERIOD, TRIES
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from assetlock.kube.resources import MUTATING_WEBHOOKS, SECRETS
from assetlock.model.times import format_time

SECRET = "assetlock-admission-path"  # noqa: S105
LIFE = datetime.timedelta(days=60)
PREFIX = "caller-"
_PATH = re.compile(rf"(?:/{PREFIX}[\w-]*)?/\w+$")
_LOOKS_AGAIN_AFTER = 1.0
"""Seconds: a path that is not known may be one that another replica has just made."""

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class PathSecret:
    """What the paths begin with now, what they began with before, and since when that is so."""

    present: str
    former: str
    since: str

    def admits(self, given: str) -> bool:
        """Whether a path that begins like this is one of ours."""
        known = (each for each in (self.present, self.former) if each)
        return any(hmac.compare_digest(given.encode(errors="replace"), each.encode()) for each in known)

    def renewed(self, now: datetime.datetime) -> PathSecret:
        """The next one: a Service's path takes small letters, digits and dashes only."""
        return PathSecret(f"{PREFIX}{secrets.token_hex(32)}", self.present, format_time(now))

    def is_due(self, now: datetime.datetime) -> bool:
        """Whether it is time for the next one."""
        try:
            return now - datetime.datetime.fromisoformat(self.since) > LIFE
        except ValueError:
            return True


NONE = PathSecret("", "", "")


class Callers:
    """Knows the path, keeps it in the Secret, and has the API server call it."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str = names.OPERATOR_NAMESPACE,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._now = now
        self._clock = clock
        self._known = NONE
        self._looked_at = float("-inf")
        self._looking = asyncio.Lock()
        self._woken = asyncio.Event()

    async def are_admitted(self, given: str) -> bool:
        """Whether whoever calls a path that begins like this is the API server."""
        if not self._known.admits(given):
            self._woken.set()  # The configuration may have been applied again, and know no secret.
            await self._look_again(given)
        return self._known.admits(given)

    async def refresh(self) -> None:
        """Make a secret if there is none or the next is due, and have the API server use it."""
        self._known = await self._kept()
        await self._publish(self._known.present)

    async def run(self) -> NoReturn:
        """Refresh now and then, and when somebody calls who does not know the path; until cancelled."""
        while True:
            try:
                async with asyncio.timeout(PERIOD):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            try:
                await self.refresh()
            except KubeError as error:
                log.warning("the path of the webhooks could not be looked after: %s", error)
            await asyncio.sleep(_LOOKS_AGAIN_AFTER)

    async def _look_again(self, given: str) -> None:
        """Read the Secret, however many ask, once in a second."""
        async with self._looking:
            if self._known.admits(given) or self._clock() - self._looked_at < _LOOKS_AGAIN_AFTER:
                return
            self._looked_at = self._clock()
            try:
                self._known = _read(await self._api.get(SECRETS, self._namespace, SECRET))
            except KubeError as error:
                log.warning("Secret %s could not be read: %s", SECRET, error)

    async def _kept(self) -> PathSecret:
        for _ in range(TRIES):
            try:
                return await self._looked_after()
            except (Conflict, AlreadyExists):
                continue
        raise KubeError(f"Secret {SECRET} is changed by others all the time")

    async def _looked_after(self) -> PathSecret:
        try:
            present = await self._api.get(SECRETS, self._namespace, SECRET)
        except NotFound:
            made = NONE.renewed(self._now())
            await self._api.create(SECRETS, self._namespace, _body(made, {"namespace": self._namespace}))
            return made
        known = _read(present)
        if known.present and not known.is_due(self._now()):
            return known
        made = known.renewed(self._now())
        await self._api.replace(SECRETS, self._namespace, SECRET, _body(made, present["metadata"]))
        return made

    async def _publish(self, secret: str) -> None:
        """Write the path into the webhook configuration. Without one there is nobody to call us (yet)."""
        for _ in range(TRIES):
            try:
                present = await self._api.get(MUTATING_WEBHOOKS, None, CONFIGURATION)
            except NotFound:
                return
            if sum(_lead_to(webhook, secret) for webhook in present.get("webhooks") or []) == 0:
                return
            try:
                await self._api.replace(MUTATING_WEBHOOKS, None, CONFIGURATION, present)
            except Conflict:
                continue
            return


def _lead_to(webhook: dict[str, Any], secret: str) -> bool:
    """Put the secret into a webhook's path or URL; says whether that changed it.

    Installers declare no path of a Service: they would take it back with each upgrade.
    """
    config = webhook["clientConfig"]
    holder, field = (config, "url") if "url" in config else (config["service"], "path")
    before = str(holder.get(field) or "")
    path = f"/{secret}/{names.webhook_path(webhook['name'])}"
    holder[field] = _PATH.sub(path, before) if "url" in config else path
    return bool(holder[field] != before)


def _read(secret: Object) -> PathSecret:
    """What a Secret holds; nothing of what can't be read."""
    data = mapping(secret.get("data"))
    try:
        parts = [base64.b64decode(text(data.get(key))).decode() for key in ("path", "former", "since")]
    except (binascii.Error, UnicodeDecodeError):
        return NONE
    return PathSecret(*parts)


def _body(secret: PathSecret, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "name": SECRET, "labels": {"app.kubernetes.io/name": "assetlock"}},
        "stringData": {"path": secret.present, "former": secret.former, "since": secret.since},
    }
