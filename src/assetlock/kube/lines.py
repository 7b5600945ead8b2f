"""Cutting a stream of chunks into lines. Pure."""

from __future__ import annotations

#: No object is larger than etcd takes (1.5 MiB by default); JSON escapes may double that, and then some.
LONGEST_LINE: int = 32 * 1024 * 1024


class LineTooLongError(Exception):
    """The stream goes on without end of line; it is no stream of events."""


class Lines:
    """Gathers chunks and gives back the complete lines; what comes after the last line end stays."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete with this chunk, blank ones left out."""
        head, newline, rest = chunk.partition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        lines = [b"".join([*self._parts, head])]
        self._parts, self._size = [], 0
        *more, tail = rest.split(b"\n")
        self._keep(tail)
        return [line for line in (*lines, *more) if line.strip()]

    def _keep(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._size += len(part)
        if self._size > self._longest:
            raise LineTooLongError(f"a line of more than {self._longest} bytes")
