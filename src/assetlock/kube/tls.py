"""How the connection to the API server is secured: whom we trust, and the certificate we show.

Certificates may stand in files or in the configuration itself. Files are looked at again now and then: a
new CA or a new client certificate is used for the next connection, without a restart.
"""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from assetlock.kube.credentials import Credential
from assetlock.kube.errors import Unreachable

_FILE_PERIOD: float = 10.0


@dataclass(frozen=True, slots=True)
class Tls:
    """What to trust and to show. Data is PEM text, and goes before a file."""

    ca_file: Path | None = None
    ca_data: str | None = None
    certificate_file: Path | None = None
    certificate_data: str | None = None
    key_file: Path | None = None
    key_data: str | None = field(default=None, repr=False)
    server_name: str | None = None
    insecure: bool = False

    def files(self) -> tuple[Path, ...]:
        """The files that matter."""
        return tuple(path for path in (self.ca_file, self.certificate_file, self.key_file) if path)


class TlsContexts:
    """The current SSL context, made anew when a file or the credential's certificate has changed."""

    def __init__(self, tls: Tls, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tls = tls
        self._clock = clock
        self._looked_at = float("-inf")
        self._stamps: tuple[int, ...] = ()
        self._key: object = None
        self._context: ssl.SSLContext | None = None

    def context_for(self, credential: Credential) -> ssl.SSLContext:
        """The context for a connection that shows this credential's certificate, or the configured one."""
        now = self._clock()
        if now - self._looked_at >= _FILE_PERIOD:
            self._stamps = _stamps(self._tls)
            self._looked_at = now
        key = (self._stamps, credential.certificate, credential.key)
        if self._context is None or key != self._key:
            self._context, self._key = _context(self._tls, credential), key
        return self._context


def _stamps(tls: Tls) -> tuple[int, ...]:
    try:
        return tuple(path.stat().st_mtime_ns for path in tls.files())
    except OSError as error:
        raise Unreachable(f"can't read {error.filename}: {error.strerror}") from error


def _context(tls: Tls, credential: Credential) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=None if tls.ca_data or tls.ca_file is None else str(tls.ca_file), cadata=tls.ca_data
        )
        if tls.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _show_certificate(context, tls, credential)
    except (OSError, ValueError) as error:
        raise Unreachable(f"the certificates for the API server can't be used: {error}") from error
    return context


def _show_certificate(context: ssl.SSLContext, tls: Tls, credential: Credential) -> None:
    if credential.certificate and credential.key:
        _load_pem(context, credential.certificate, credential.key)
        return
    if not (tls.certificate_data or tls.certificate_file):
        return
    certificate = tls.certificate_data or _text(tls.certificate_file)
    key = tls.key_data or _text(tls.key_file)
    _load_pem(context, certificate, key)


def _text(path: Path | None) -> str:
    return path.read_text(encoding="ascii") if path else ""


def _load_pem(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a certificate and key: `ssl` takes them only from files, so one that only we can read."""
    with tempfile.NamedTemporaryFile("w", prefix="assetlock-", suffix=".pem", encoding="ascii") as file:
        file.write(f"{certificate.strip()}\n{key.strip()}\n")
        file.flush()
        context.load_cert_chain(file.name, password=_no_password)


def _no_password() -> str:
    raise ValueError("the client key is encrypted, and there is nobody to ask for the password")
