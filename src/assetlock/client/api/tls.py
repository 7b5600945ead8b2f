"""How the connection to the API server is secured: whom to trust, and the certificate to show.

Certificates may be in files or in the configuration itself. Files are read again when they have changed: a new CA or
client certificate is used for the next connection, without a restart.
"""

from __future__ import annotations

import ssl
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from assetlock.client.api.credentials import Credential
from assetlock.client.api.errors import Unreachable


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
    """The current SSL context; a new one when a file or the credential's certificate has changed."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._lock = threading.Lock()
        self._key: object = None
        self._context: ssl.SSLContext | None = None

    def context_for(self, credential: Credential) -> ssl.SSLContext:
        """The context for a new connection that shows this credential's certificate, or the configured one."""
        with self._lock:
            key = (_changed_at(self._tls), credential.certificate, credential.key)
            if self._context is None or key != self._key:
                self._context, self._key = _context(self._tls, credential), key
            return self._context


def _changed_at(tls: Tls) -> tuple[int, ...]:
    try:
        return tuple(path.stat().st_mtime_ns for path in tls.files())
    except OSError as error:
        raise Unreachable(f"can't read {error.filename}: {error.strerror}") from error


def _context(tls: Tls, credential: Credential) -> ssl.SSLContext:
    ca_file = str(tls.ca_file) if tls.ca_file and not tls.ca_data else None
    try:
        context = ssl.create_default_context(cafile=ca_file, cadata=tls.ca_data)
        if tls.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if credential.certificate and credential.key:
            _load_pem(context, credential.certificate, credential.key)
        elif tls.certificate_data or tls.certificate_file:
            certificate = tls.certificate_data or _text(tls.certificate_file)
            _load_pem(context, certificate, tls.key_data or _text(tls.key_file))
    except (OSError, ValueError) as error:
        raise Unreachable(f"the certificates for the API server can't be used: {error}") from error
    return context


def _text(path: Path | None) -> str:
    return path.read_text(encoding="ascii") if path else ""


def _load_pem(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """`ssl` takes certificate and key only from files: one that nobody else can read, gone at once."""
    with tempfile.NamedTemporaryFile("w", prefix="assetlock-", suffix=".pem", encoding="ascii") as file:
        file.write(f"{certificate.strip()}\n{key.strip()}\n")
        file.flush()
        context.load_cert_chain(file.name, password=_no_password)


def _no_password() -> str:
    raise ValueError("the client key is encrypted, and there is nobody to ask for the password")
