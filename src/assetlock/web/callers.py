"""Who asks, and what they may see: the API server says both, to the caller's own token.

Writes and reads of single objects are made with the token, so nothing about them is decided here. Only what is
answered from the cache needs a question first, whose answer is remembered for a few seconds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from assetlock.kube import reviews
from assetlock.kube.api import Api
from assetlock.kube.buckets import TokenBuckets
from assetlock.kube.credentials import bearer
from assetlock.kube.errors import Forbidden, TooManyRequests
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import Resource

MOST_REMEMBERED = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """A requester: ``key`` stands for the token without showing it; ``api`` acts with the token."""

    key: str
    username: str
    api: Api


class Callers:
    """Makes a `Caller` of a token, and remembers for a few seconds what it may see."""

    def __init__(
        self,
        transport: HttpTransport,
        *,
        seconds: float,
        rate: TokenBuckets,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._seconds = seconds
        self._rate = rate
        self._clock = clock
        self._answers: OrderedDict[tuple[str, object], tuple[float, Any]] = OrderedDict()

    async def caller(self, token: str) -> Caller:
        """Whom the API server takes the token for.

        Raises `Unauthorized` if it takes it for nobody, `TooManyRequests` when the token is used too often.
        """
        key = hashlib.sha256(token.encode()).hexdigest()
        if not self._rate.take(key):
            raise TooManyRequests(
                429, "TooManyRequests", "too many requests with this token", retry_after=1.0
            )
        api = Api(self._transport.acting_with(bearer(token)))

        async def ask() -> str:
            return (await reviews.myself(api)).username

        return Caller(key, await self._remembered(key, "username", ask), api)

    async def require(self, caller: Caller, verb: str, resource: Resource, namespace: str) -> None:
        """Raises `Forbidden`, with the missing verb, if the caller may not do this to all objects there."""
        action = reviews.Action(verb, resource.group, resource.plural, namespace)

        async def ask() -> bool:
            return await reviews.may_i(caller.api, action)

        if not await self._remembered(caller.key, action, ask):
            where = f" in namespace {namespace}" if namespace else " in all namespaces"
            raise Forbidden(
                403,
                "Forbidden",
                f'{caller.username} needs the verb "{verb}" on {resource.full_name}{where}',
            )

    async def _remembered(self, key: str, question: object, ask: Callable[[], Awaitable[Any]]) -> Any:
        known = self._answers.get((key, question))
        if known is not None and known[0] > self._clock():
            return known[1]
        answer = await ask()
        self._answers[key, question] = (self._clock() + self._seconds, answer)
        self._answers.move_to_end((key, question))
        while len(self._answers) > MOST_REMEMBERED:
            self._answers.popitem(last=False)
        return answer
