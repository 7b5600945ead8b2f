"""Who the client is to the API server, and how that is kept fresh.

A source is asked before every request, from any thread, and notified when the server refused what it gave (401), so
that a new credential is tried once. A source that has nothing to give raises `Unreachable`: nothing was sent.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from assetlock.client.api.errors import Unreachable

TOKEN_FILE_PERIOD: float = 10.0
"""So many seconds a token that was read from a file is used before the file is read again."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What proves an identity: a header, or a client certificate (PEM), or neither."""

    authorization: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)


class CredentialSource(Protocol):
    """Gives out credentials."""

    def current(self) -> Credential:
        """The credential to use now."""
        ...

    def refused(self, credential: Credential) -> bool:
        """Take note that the server refused this one; whether asking again may give another."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """One credential for ever."""

    credential: Credential = Credential()

    def current(self) -> Credential:
        """The one credential."""
        return self.credential

    def refused(self, credential: Credential) -> bool:  # noqa: ARG002
        """There is no other."""
        return False


def bearer(token: str) -> Credential:
    """The credential that a bearer token is."""
    return Credential(authorization=f"Bearer {token}")


def basic(username: str, password: str) -> Credential:
    """The credential that a username and a password are."""
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return Credential(authorization=f"Basic {encoded}")


class TokenFile:
    """A bearer token in a file that somebody else keeps fresh."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._read_at = 0.0

    def current(self) -> Credential:
        """The token, as the file had it a few seconds ago at most."""
        with self._lock:
            now = self._clock()
            if self._credential is None or now - self._read_at >= TOKEN_FILE_PERIOD:
                self._credential, self._read_at = self._read(), now
            return self._credential

    def refused(self, credential: Credential) -> bool:
        """Read the file again; another try is worth it only if it has another token."""
        with self._lock:
            if credential == self._credential:
                self._credential = None
        try:
            return self._read() != credential
        except Unreachable:
            return False

    def _read(self) -> Credential:
        try:
            token = self.path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unreachable(f"can't read the token file {self.path}: {error}") from error
        if not token or any(character.isspace() for character in token):
            raise Unreachable(f"the token file {self.path} holds no token")
        return bearer(token)
