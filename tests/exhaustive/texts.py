"""Objects as texts: equal texts are equal objects, so a whole state is a small tuple that hashes.

What is left out is what no decision is made from: versions, times, and fields that only show things.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

Json = dict[str, Any]

_SHOWN = frozenset(
    {
        "conditions",
        "queue",
        "queueLength",
        "queuePosition",
        "lockState",
        "acquireTime",
        "expireTime",
        "finishTime",
        "observedGeneration",
    }
)
_TIMES = frozenset({"acquireTime", "renewTime", "leaseTransitions"})
_IDENTITY = frozenset({"name", "uid", "labels", "annotations"})
_TOKEN = re.compile(r'(?<="fencingToken":)\d+|(?<="assetlock\.dev/token":")\d+|(?<=\\n)\d+(?= )')

_ACQUISITION = re.compile(r"(?:lock|read|care|job|window)-\w\.\d+\.")
_ID = re.compile(r"(?:lock|read|care|job|window)-\w(?:\.\d+\.)?")


def text_of(raw: Json) -> str:
    """The object as a text."""
    kept: Json = {
        "metadata": {key: value for key, value in raw["metadata"].items() if key in _IDENTITY and value}
    }
    if "spec" in raw:
        kept["spec"] = {key: value for key, value in raw["spec"].items() if key not in _TIMES}
    if "status" in raw:
        kept["status"] = _without_shown(raw["status"])
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def _without_shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_shown(item) for key, item in value.items() if key not in _SHOWN}
    if isinstance(value, list):
        return [_without_shown(item) for item in value]
    return value


@functools.cache
def parsed(text: str) -> Json:
    """The object again; not to be changed."""
    found: Json = json.loads(text)
    return found


@functools.cache
def tokens_in(text: str) -> frozenset[int]:
    """The fencing tokens that stand in it."""
    return frozenset(int(match.group()) for match in _TOKEN.finditer(text))


@functools.cache
def acquisitions_in(text: str) -> frozenset[str]:
    """The ids of acquisitions that stand in it."""
    return frozenset(_ACQUISITION.findall(text))


@functools.cache
def renamed(text: str, tokens: tuple[int, ...], ids: tuple[tuple[str, str], ...]) -> str:
    """The object with each token replaced by its place in ``tokens``, and clients and acquisitions by new names."""
    text = _TOKEN.sub(lambda match: str(tokens.index(int(match.group()))), text)
    new = dict(ids)
    return _ID.sub(lambda match: new.get(match.group(), match.group()), text)
