"""From a URL path to the resource, object and subresource that it means."""

import urllib.parse
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.sim import failures
from tests.sim.kinds import Served


class Target(NamedTuple):
    """What a path names; `name` is empty for a collection, `namespace` for all of them."""

    served: Served
    namespace: str
    name: str
    subresource: str


class Routes:
    """All resources of a server, by where they live."""

    def __init__(self, kinds: Iterable[Served]) -> None:
        self._groups: dict[str, dict[str, Served]] = {}
        self._parsed: dict[str, Target] = {}
        for served in kinds:
            self._groups.setdefault(served.root, {})[served.plural] = served

    def parse(self, path: str) -> Target:
        """Find the resource, or answer 404."""
        known = self._parsed.get(path)
        if known is None:
            known = self._parsed[path] = self._parse(path)
        return known

    def _parse(self, path: str) -> Target:
        parts = path.split("/")
        depth = 3 if path.startswith("/api/") else 4
        group = self._groups.get("/".join(parts[:depth]))
        found = _match(group, [urllib.parse.unquote(part) for part in parts[depth:]]) if group else None
        if found is None:
            raise failures.no_such_path()
        return found

    def discovery(self, path: str) -> dict[str, object] | None:
        """The list of resources of a group and version, if the path asks for one."""
        group = self._groups.get(path)
        if group is None:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": next(iter(group.values())).api_version,
            "resources": [entry for served in group.values() for entry in _entries(served)],
        }


def _match(group: dict[str, Served], parts: list[str]) -> Target | None:
    namespace = ""
    if len(parts) >= 3 and parts[0] == "namespaces" and parts[2] != "status":
        namespace, parts = parts[1], parts[2:]
    served = group.get(parts[0]) if 0 < len(parts) <= 3 else None
    if served is None or (bool(namespace) is not served.namespaced and (namespace or len(parts) > 1)):
        return None
    name, subresource = [*parts[1:], "", ""][:2]
    return Target(served, namespace, name, subresource)


def _entries(served: Served) -> Iterator[dict[str, object]]:
    verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    shared = {"namespaced": served.namespaced, "kind": served.kind}
    yield {"name": served.plural, "singularName": served.kind.lower(), **shared, "verbs": verbs}
    for subresource, is_there in (("status", served.status), ("scale", served.scale)):
        if is_there:
            yield {
                "name": f"{served.plural}/{subresource}",
                "singularName": "",
                **shared,
                "verbs": ["get", "patch", "update"],
            }
