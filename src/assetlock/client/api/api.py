"""JSON requests to the API server. `Api` is thread-safe and blocks; nothing in it needs an event loop.

What is sent twice, and what never: a 401 is tried again once with a new credential, a 429 after the pause that it
asks for, and a read whose kept-alive connection broke on a new one; in the first two the server did nothing. A write
whose answer was lost is never sent again: `AnswerLost` says so, and the caller reads before it decides.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from assetlock.client.api.config import Config
from assetlock.client.api.connections import Connection, Connections
from assetlock.client.api.credentials import Credential
from assetlock.client.api.errors import AnswerLost, ApiError, Unauthorized, Unreachable, error_from

Object: TypeAlias = dict[str, Any]
Params: TypeAlias = Mapping[str, str]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
SHORTEST_PAUSE: float = 0.1
"""Seconds between two tries of what the server had no time for, if it does not say how long."""


class Api:
    """The API server of a configuration. ``timeout``: how many seconds a request may take, unless it says."""

    def __init__(self, config: Config, *, timeout: float = 30.0, user_agent: str = "assetlock") -> None:
        self.config = config
        self._timeout = timeout
        self._headers = {"Accept": JSON, "User-Agent": user_agent}
        self._connections = Connections(config)

    def get(self, path: str, params: Params | None = None, *, timeout: float | None = None) -> Object:
        """Read an object or a list."""
        return self._request("GET", path, params, timeout=timeout)

    def create(
        self, path: str, body: Object, *, params: Params | None = None, timeout: float | None = None
    ) -> Object:
        """Create an object in a collection, or make a request such as a review."""
        return self._request("POST", path, params, body=body, timeout=timeout)

    def patch(
        self, path: str, body: Object, *, params: Params | None = None, timeout: float | None = None
    ) -> Object:
        """Merge the body into an object. With a resourceVersion in it, only into that version."""
        return self._request("PATCH", path, params, body=body, content_type=MERGE_PATCH, timeout=timeout)

    def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Delete the object with this uid and version, and no other of that name."""
        given = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {name: value for name, value in given.items() if value is not None}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        return self._request("DELETE", path, body=body, timeout=timeout)

    def list_pages(self, path: str, params: Params | None = None, *, limit: int = 500) -> Iterator[Object]:
        """The pages of a list, in order. `Gone` if the list became too old on the way: begin again."""
        after: dict[str, str] = {"limit": str(limit)}
        while True:
            page = self.get(path, {**(params or {}), **after})
            yield page
            token = page.get("metadata", {}).get("continue")
            if not token:
                return
            after["continue"] = token

    def watch(self, path: str, params: Params | None = None, *, seconds: int = 300) -> Watch:
        """Watch a collection for so many seconds, on a connection of its own."""
        wanted = {**(params or {}), "watch": "true", "timeoutSeconds": str(seconds)}
        target = f"{path}?{urllib.parse.urlencode(wanted)}"
        connection, response = self._answered("GET", target, {}, None, self._timeout, fresh=True)
        connection.set_timeout(seconds + self._timeout)
        return Watch(connection, response)

    def close(self) -> None:
        """Close the idle connections."""
        self._connections.close()

    def _request(
        self,
        method: str,
        path: str,
        params: Params | None = None,
        *,
        body: Object | None = None,
        content_type: str = JSON,
        timeout: float | None = None,
    ) -> Object:
        target = f"{path}?{urllib.parse.urlencode(params)}" if params else path
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {} if data is None else {"Content-Type": content_type}
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        while True:
            try:
                connection, response = self._answered(
                    method, target, headers, data, deadline - time.monotonic()
                )
                return self._object(method, path, connection, response, deadline)
            except ApiError as error:
                pause = error.retry_after_seconds or SHORTEST_PAUSE
                if error.status != http.HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)

    def _answered(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        *,
        fresh: bool = False,
    ) -> tuple[Connection, http.client.HTTPResponse]:
        """The connection on which a successful answer comes, and its head."""
        credential = self._credential()
        try:
            return self._once(method, target, headers, body, timeout, credential, fresh=fresh)
        except Unauthorized:
            if not self.config.credentials.refused(credential):
                raise
        return self._once(method, target, headers, body, timeout, self._credential(), fresh=fresh)

    def _credential(self) -> Credential:
        return self.config.credentials.current()

    def _once(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        credential: Credential,
        *,
        fresh: bool,
    ) -> tuple[Connection, http.client.HTTPResponse]:
        connection = self._connections.get(credential, timeout, fresh=fresh)
        more = dict(self._headers, **headers)
        if credential.authorization:
            more["Authorization"] = credential.authorization
        try:
            connection.send(method, target, more, self.config.headers, body)
            response = connection.raw.getresponse()
        except (OSError, http.client.HTTPException) as error:
            reused = connection.used
            connection.close()
            if method == "GET" and reused and not isinstance(error, TimeoutError):
                return self._once(method, target, headers, body, timeout, credential, fresh=True)
            raise _lost(method, target, error) from error
        if response.status >= http.HTTPStatus.MULTIPLE_CHOICES:
            raise self._failure(method, target, connection, response, timeout)
        return connection, response

    def _failure(
        self,
        method: str,
        target: str,
        connection: Connection,
        response: http.client.HTTPResponse,
        timeout: float,
    ) -> ApiError:
        body = self._read(method, target, connection, response, time.monotonic() + timeout)
        return error_from(response.status, body, response.headers.get("Retry-After"))

    def _object(
        self,
        method: str,
        path: str,
        connection: Connection,
        response: http.client.HTTPResponse,
        deadline: float,
    ) -> Object:
        body = self._read(method, path, connection, response, deadline)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise AnswerLost(f"{method} {path}: the answer is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise AnswerLost(f"{method} {path}: the answer is not a JSON object")
        return found

    def _read(
        self,
        method: str,
        path: str,
        connection: Connection,
        response: http.client.HTTPResponse,
        deadline: float,
    ) -> bytes:
        parts = []
        try:
            while part := response.read1(1 << 20):
                parts.append(part)
                connection.set_timeout(deadline - time.monotonic())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _lost(method, path, error) from error
        response.close()  # `read1` leaves it open, and the connection would take no further request
        if response.will_close:
            connection.close()
        else:
            self._connections.put(connection)
        return b"".join(parts)


class Watch:
    """The events of a watch, one after the other, until it ends. `interrupt` ends it from another thread."""

    def __init__(self, connection: Connection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        """Type and object of each event. Raises an `ApiError` if the server sends one, `AnswerLost` if it breaks."""
        try:
            while line := self._response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise error_from(int(status.get("code") or 500), status)
                yield event["type"], event["object"]
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            raise AnswerLost(f"the watch broke: {error}") from error
        finally:
            self._connection.close()

    def interrupt(self) -> None:
        """End it; the iterator stops, or raises `AnswerLost`."""
        self._connection.interrupt()


def _lost(method: str, path: str, error: Exception) -> ConnectionError:
    why = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    if method == "GET":
        return Unreachable(f"{path.partition('?')[0]}: {why}")
    return AnswerLost(f"{method} {path}: whether it was done is not known: {why}")
