"""Who we are to the API server, and how that is kept fresh.

A credential may end while we run: ServiceAccount tokens are rotated in their file, plugins hand out tokens
and certificates for minutes. Each source is asked before every request and told when the server refused
what it gave (401), so that a new one is tried once. A source that has nothing to give raises `Unreachable`:
nothing was sent.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assetlock.kube.errors import Unreachable

#: How long a token that was read from a file is used before the file is looked at again.
TOKEN_FILE_PERIOD: float = 10.0


@dataclass(frozen=True, slots=True)
class Credential:
    """What proves our identity: a header, or a client certificate, or neither."""

    authorization: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return f"<Credential{' header' if self.authorization else ''}{' certificate' if self.key else ''}>"


class CredentialSource(Protocol):
    """Gives out credentials."""

    async def current(self) -> Credential:
        """The credential to use now."""
        ...

    def refused(self, credential: Credential) -> bool:
        """Take note that the server refused this one; whether asking again may give another."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """One credential for ever."""

    credential: Credential = Credential()

    async def current(self) -> Credential:
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
        self._path = path
        self._clock = clock
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def current(self) -> Credential:
        """The token, as the file had it a few seconds ago at most."""
        now = self._clock()
        if self._credential is None or now - self._read_at >= TOKEN_FILE_PERIOD:
            self._credential = self._read()
            self._read_at = now
        return self._credential

    def refused(self, credential: Credential) -> bool:
        """Read the file again; another try is worth it only if it has another token."""
        if credential == self._credential:
            self._credential = None
        try:
            return self._read() != credential
        except Unreachable:
            return False

    def _read(self) -> Credential:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unreachable(f"can't read the token file {self._path}: {error}") from error
        if not token or any(character.isspace() for character in token):
            raise Unreachable(f"the token file {self._path} holds no token")
        return bearer(token)
