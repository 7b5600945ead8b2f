"""JSON of any depth. The API server stores values nested ten thousand deep, and Python's decoder gives up at a tenth.

What nobody here looks at lies deep down (`spec.metadata` of an Asset, a custom resource's content, the managed fields
of both), so of such a text everything below `DEEPEST` is left out. It is told, so that nobody writes it back.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 200
"""Levels that are kept of a text that is too deep; labels, annotations and Leases have five at most."""

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENING = b"[{"


def decode(text: bytes) -> Any:
    """What the text says, without what is too deep. Raises ValueError, and nothing else, for what is not JSON."""
    return decode_telling(text)[0]


def decode_telling(text: bytes) -> tuple[Any, bool]:
    """What the text says, and whether that is all of it. Raises ValueError for what is not JSON."""
    try:
        return json.loads(text), True
    except RecursionError:
        pass
    try:
        return json.loads(shallow(text)), False
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def shallow(text: bytes) -> bytes:
    """The same JSON with ``null`` in place of each value that is nested deeper than `DEEPEST`."""
    kept: list[bytes] = []
    depth = done = cut_at = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        first = text[token.start()]
        if first == ord('"'):
            continue
        if first in _OPENING:
            depth += 1
            if depth == DEEPEST + 1:
                cut_at = token.start()
            continue
        if depth == DEEPEST + 1:
            kept += (text[done:cut_at], b"null")
            done = token.end()
        depth -= 1
    return b"".join((*kept, text[done:]))
