"""Lists: whole or in pages of one consistent snapshot, now or at an older revision."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.sim import failures
from tests.sim.store import Json, Store, Version
from tests.sim.watch import Scope


def version_number(text: str) -> int:
    """A resourceVersion as a number; nonsense is a bad request."""
    if not text.isdecimal():
        raise failures.bad_request(f"Invalid value: {text!r}: strconv.ParseUint: invalid syntax")
    return int(text)


def page(store: Store, scope: Scope, params: Mapping[str, str]) -> Json:
    """Answer a list request."""
    limit = int(params.get("limit") or 0)
    token = params.get("continue", "")
    revision, after = _resume(store, token) if token else (_revision(store, params), "")
    found = [
        (f"{key.namespace}/{key.name}", version)
        for key, version in store.select(scope.served, scope.namespace, at=revision)
        if scope.selects(version.obj)
    ]
    remaining = [item for item in found if item[0] > after]
    return _shown(
        scope, remaining, limit, revision, selective="labelSelector" in params or "fieldSelector" in params
    )


def _shown(
    scope: Scope, found: list[tuple[str, Version]], limit: int, revision: int, *, selective: bool
) -> Json:
    shown = found[:limit] if limit else found
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if len(shown) < len(found):
        metadata["continue"] = _token(revision, shown[-1][0])
        if not selective:
            metadata["remainingItemCount"] = len(found) - len(shown)
    return scope.view.many([version.obj for _, version in shown], metadata)


def _revision(store: Store, params: Mapping[str, str]) -> int:
    wanted = version_number(params.get("resourceVersion") or "0")
    if wanted > store.revision:
        raise failures.from_the_future(wanted, store.revision)
    if params.get("resourceVersionMatch") != "Exact":
        return store.revision
    if wanted < store.compacted:
        raise failures.expired("The resourceVersion for the provided list is too old.")
    return wanted


def _token(revision: int, after: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([revision, after]).encode()).decode()


def _resume(store: Store, token: str) -> tuple[int, str]:
    try:
        revision, after = json.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise failures.bad_request("continue key is not valid") from error
    if revision < store.compacted:
        raise failures.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a "
            "new list without the continue parameter.",
            continue_token=_token(store.revision, after),
        )
    return revision, after
