"""JSON merge patch (RFC 7396) and JSON patch (RFC 6902) on plain JSON values. Arguments are never changed."""

import copy
from typing import Any

from tests.sim import failures


def merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch: null removes, objects are merged, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def apply(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Apply JSON patch operations in order; all of them or, by an exception, none."""
    result = copy.deepcopy(document)
    for operation in operations:
        result = _apply_one(result, operation)
    return result


def _apply_one(document: Any, operation: dict[str, Any]) -> Any:
    path = _tokens(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "remove":
            _take(document, path)
        case "replace":
            _look(document, path)
            return _put(document, path, copy.deepcopy(operation["value"]))
        case "test":
            _test(document, path, operation.get("value"))
        case "copy":
            return _add(document, path, copy.deepcopy(_look(document, _tokens(operation["from"]))))
        case "move":
            return _add(document, path, _take(document, _tokens(operation["from"])))
        case other:
            raise _unprocessable(f"Unexpected kind: {other}")
    return document


def _tokens(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _unprocessable(message: str) -> failures.Refusal:
    return failures.Refusal(422, "Invalid", message, details={})


def _look(document: Any, path: list[str]) -> Any:
    for token in path:
        try:
            document = document[int(token)] if isinstance(document, list) else document[token]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise _unprocessable(f"path does not exist: {'/'.join(path)}") from error
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _look(document, path[:-1])
    if isinstance(parent, list):
        position = len(parent) if path[-1] == "-" else int(path[-1])
        if not 0 <= position <= len(parent):
            raise _unprocessable("index out of bounds")
        parent.insert(position, value)
    else:
        _put(document, path, value)
    return document


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _look(document, path[:-1])
    if isinstance(parent, list):
        parent[int(path[-1])] = value
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise _unprocessable(f"no container at: {'/'.join(path[:-1])}")
    return document


def _take(document: Any, path: list[str]) -> Any:
    value = _look(document, path)
    parent = _look(document, path[:-1])
    if isinstance(parent, list):
        return parent.pop(int(path[-1]))
    del parent[path[-1]]
    return value


def _test(document: Any, path: list[str], expected: Any) -> None:
    try:
        found = _look(document, path)
    except failures.Refusal:
        found = None
    if found != expected:
        raise _unprocessable(f"testing value /{'/'.join(path)} failed: test failed")
