"""An API server in memory: requests in, replies out, in virtual time. One truth for any number of clients.

It keeps what the real one promises and simulated code may rely on (see the modules beside it: `store`, `strategy`,
`writes`, `reads`, `watch`), and is held against the real one by `test_conformance`. It does not validate schemas,
collect garbage, or know apply and strategic merge patches (415, where the real one knows them).
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assetlock.kube.transport import Reply
from tests.sim import failures, kinds, reads, selection, watch
from tests.sim.admission import Plugin, User
from tests.sim.kinds import Served
from tests.sim.paths import Routes, Target
from tests.sim.render import View
from tests.sim.store import Json, Store, Version, encode
from tests.sim.virtual import Clock
from tests.sim.watch import Scope
from tests.sim.writes import Call, Writer

Authorize = Callable[[User, Mapping[str, str]], bool]
_JSON = {"content-type": "application/json"}
_REVIEWS = "/apis/authorization.k8s.io/v1/"


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request whose sender is authenticated."""

    user: User
    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | None = None

    def json(self) -> Any:
        """The body, or 400."""
        try:
            return json.loads(self.body or b"null")
        except ValueError as error:
            raise failures.bad_request(f"the body is no JSON: {error}") from error

    def header(self, name: str) -> str:
        """A header, however its name is written."""
        return next((value for key, value in self.headers.items() if key.lower() == name), "")


def allow_all(_user: User, _attributes: Mapping[str, str]) -> bool:
    """The authorizer of a cluster in which everybody may do everything."""
    return True


class Server:
    """The server. `plugins`, `before_commit` and the store's `on_commit` may be set at any time."""

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int | str = 0,
        served: Sequence[Served] = kinds.DEFAULT,
        plugins: Sequence[Plugin] = (),
        authorize: Authorize = allow_all,
        strict_namespaces: bool = False,
    ) -> None:
        self.clock = clock
        self.store = Store(seed=seed, time=clock.monotonic)
        self.writer = Writer(self.store, clock, list(plugins), strict_namespaces=strict_namespaces)
        self.authorize = authorize
        self._routes = Routes(served)
        self._random = random.Random(f"server/{seed}")

    async def handle(self, request: Request) -> Reply:
        """Answer a request that is no watch."""
        try:
            code, body = await self._route(request)
        except failures.Refusal as refusal:
            return Reply(refusal.code, refusal.headers(), refusal.body())
        return Reply(code, _JSON, body)

    def open_watch(self, request: Request) -> watch.Feed:
        """Answer a watch: who tells the lines to come, or at once a `Refusal`."""
        target = self._routes.parse(request.path)
        self._authorize(request, target, "watch")
        params = request.params
        wanted = params.get("resourceVersion") or "0"
        start = reads.version_number(wanted)
        seconds = float(params.get("timeoutSeconds") or self._random.uniform(1800, 3600))
        return watch.Feed(
            self.store,
            self._scope(request, target),
            start or None,
            bookmarks=params.get("allowWatchBookmarks") in ("true", "1"),
            seconds=seconds,
        )

    async def _route(self, request: Request) -> tuple[int, bytes]:
        if request.method == "POST" and request.path.startswith(_REVIEWS):
            return 201, encode(self._review(request))
        found = self._routes.discovery(request.path)
        if found is not None:
            return 200, encode(found)
        target = self._routes.parse(request.path)
        self._authorize(request, target, _verb(request.method, target))
        view = View.accepted(target.served, request.header("accept"))
        call = Call(
            target.served, target.namespace, target.name, target.subresource,
            request.user, dry_run=request.params.get("dryRun") == "All",
        )  # fmt: skip
        if not target.name:
            return await self._on_collection(request, call, view)
        return await self._on_object(request, call, view)

    async def _on_collection(self, request: Request, call: Call, view: View) -> tuple[int, bytes]:
        scope = self._scope(request, Target(call.served, call.namespace, "", ""))
        match request.method:
            case "GET":
                return 200, encode(reads.page(self.store, scope, request.params))
            case "POST" if call.namespace or not call.served.namespaced:
                return 201, view.body(await self.writer.create(call, request.json()))
            case "DELETE" if call.namespace or not call.served.namespaced:
                return 200, encode(await self._delete_collection(request, call, scope))
        raise _no_method()

    async def _on_object(self, request: Request, call: Call, view: View) -> tuple[int, bytes]:
        match request.method:
            case "GET":
                return 200, view.body(self._get(call))
            case "PUT":
                version, created = await self.writer.replace(call, request.json())
                return 201 if created else 200, view.body(version)
            case "PATCH":
                return 200, view.body(await self._patch(request, call))
            case "DELETE" if not call.subresource:
                return 200, await self._delete(request, call, view)
        raise _no_method()

    def _get(self, call: Call) -> Version:
        if call.subresource and not (call.subresource == "status" and call.served.status):
            raise failures.no_such_path()
        version = self.store.get(call.key)
        if version is None:
            raise call.not_found()
        return version

    async def _patch(self, request: Request, call: Call) -> Version:
        match request.header("content-type").partition(";")[0]:
            case "application/merge-patch+json":
                return await self.writer.merge_patch(call, request.json())
            case "application/json-patch+json":
                return await self.writer.json_patch(call, request.json())
        raise failures.Refusal(
            415, "UnsupportedMediaType", "the body of the request was in an unknown format"
        )

    async def _delete(self, request: Request, call: Call, view: View) -> bytes:
        before = self.store.get(call.key)
        left = await self.writer.delete(call, request.json())
        if left is not None:
            return view.body(left)
        assert before is not None
        details = {"name": call.name, "group": call.served.group, "kind": call.served.plural}
        details["uid"] = before.obj["metadata"]["uid"]
        return encode(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": {key: value for key, value in details.items() if value},
            }
        )

    async def _delete_collection(self, request: Request, call: Call, scope: Scope) -> Json:
        deleted: list[Json] = []
        options = request.json()
        for key, version in self.store.select(call.served, call.namespace):
            if not scope.selects(version.obj):
                continue
            one = Call(call.served, key.namespace, key.name, "", request.user, call.dry_run)
            try:
                await self.writer.delete(one, options)
            except failures.Refusal as refusal:
                if refusal.code != 404:
                    raise
            else:
                deleted.append(version.obj)
        return scope.view.many(deleted, {"resourceVersion": str(self.store.revision)})

    def _scope(self, request: Request, target: Target) -> Scope:
        by_label = selection.labels(request.params.get("labelSelector", ""))
        by_field = selection.fields(request.params.get("fieldSelector", ""), target.served.fields)
        return Scope(
            target.served,
            target.namespace,
            lambda obj: by_label(obj) and by_field(obj) and target.name in ("", obj["metadata"]["name"]),
            View.accepted(target.served, request.header("accept")),
        )

    def _authorize(self, request: Request, target: Target, verb: str) -> None:
        served = target.served
        attributes = {
            "verb": verb,
            "group": served.group,
            "resource": served.plural,
            "subresource": target.subresource,
            "namespace": target.namespace,
            "name": target.name,
        }
        if not self.authorize(request.user, attributes):
            where = f'in API group "{served.group}" in the namespace "{target.namespace}"'
            why = f'User "{request.user.name}" cannot {verb} resource "{served.plural}" {where}'
            raise failures.forbidden(served.group, served.plural, target.name, why)

    def _review(self, request: Request) -> Json:
        review = request.json()
        spec = review.get("spec") or {}
        user = request.user
        if request.path == f"{_REVIEWS}subjectaccessreviews":
            user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
        elif request.path != f"{_REVIEWS}selfsubjectaccessreviews":
            raise failures.no_such_path()
        allowed = self.authorize(user, spec.get("resourceAttributes") or {})
        return {**review, "status": {"allowed": allowed}}


def _verb(method: str, target: Target) -> str:
    collection = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
    single = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    return (single if target.name else collection).get(method, method.lower())


def _no_method() -> failures.Refusal:
    message = "the server does not allow this method on the requested resource"
    return failures.Refusal(405, "MethodNotAllowed", message, details={})
