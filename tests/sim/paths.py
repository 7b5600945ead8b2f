"""From a URL path to the resource, object and subresource that it means."""

import urllib.parse
from collections.abc import Iterable
from typing import NamedTuple

from tests.sim import failures
from tests.sim.kinds import Served


class Target(NamedTuple):
    """What a path names; `name` is empty for a collection, `namespace` for all of them."""

    served: Served
    namespace: str
    name: str
    subresource: str


def parse(path: str, kinds: Iterable[Served]) -> Target:
    """Find the resource, or answer 404."""
    for served in kinds:
        if path.startswith(served.root + "/"):
            parts = [urllib.parse.unquote(part) for part in path[len(served.root) + 1 :].split("/")]
            found = _match(served, parts)
            if found is not None:
                return found
    raise failures.no_such_path()


def _match(served: Served, parts: list[str]) -> Target | None:
    namespace = ""
    if served.namespaced and parts[0] == "namespaces" and len(parts) >= 3:
        namespace, parts = parts[1], parts[2:]
    if parts[0] != served.plural or len(parts) > 3 or (served.namespaced and not namespace and len(parts) > 1):
        return None
    name, subresource = [*parts[1:], "", ""][:2]
    return Target(served, namespace, name, subresource)


def discovery(path: str, kinds: Iterable[Served]) -> dict[str, object] | None:
    """The list of resources of a group and version, if the path asks for one."""
    served_here = [served for served in kinds if served.root == path]
    if not served_here:
        return None
    resources: list[dict[str, object]] = []
    for served in served_here:
        entry = {"name": served.plural, "singularName": served.kind.lower(), "namespaced": served.namespaced}
        verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        resources.append({**entry, "kind": served.kind, "verbs": verbs})
        if served.status:
            status = {**entry, "name": f"{served.plural}/status", "singularName": ""}
            resources.append({**status, "kind": served.kind, "verbs": ["get", "patch", "update"]})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served_here[0].api_version,
        "resources": resources,
    }
