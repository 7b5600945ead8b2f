"""Create, update, patch and delete: the read-modify-write loop around the store, with admission inside it."""

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sim import admission, failures, patch, strategy
from tests.sim.admission import Attributes, Plugin, User
from tests.sim.kinds import NAMESPACES, Served
from tests.sim.store import Json, Key, Moved, Store, Version
from tests.sim.virtual import Clock

Build = Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has found its resource."""

    served: Served
    namespace: str
    name: str
    subresource: str
    user: User
    dry_run: bool = False

    @property
    def key(self) -> Key:
        """Where its object lives."""
        return Key(self.served.group, self.served.plural, self.namespace, self.name)

    def attributes(self, operation: str, old: Json | None, new: Json | None) -> Attributes:
        """What admission is told."""
        return Attributes(
            operation,
            self.served,
            self.namespace,
            self.name,
            self.subresource,
            old,
            new,
            self.user,
            self.dry_run,
        )

    def not_found(self) -> failures.Refusal:
        """The answer when there is no such object."""
        return failures.not_found(self.served.group, self.served.plural, self.name)

    def conflict(self, why: str = "") -> failures.Refusal:
        """The answer when a precondition fails."""
        return failures.conflict(self.served.group, self.served.plural, self.name, why)


@dataclass
class Writer:
    """Executes writes. `before_commit` may pause any of them between its admission and its commit."""

    store: Store
    clock: Clock
    plugins: list[Plugin] = field(default_factory=list)
    before_commit: Callable[[Attributes], Awaitable[None]] | None = None
    strict_namespaces: bool = False

    async def create(self, call: Call, body: Any) -> Version:
        """POST."""
        if call.subresource:
            raise failures.no_such_path()
        return await self._create(call, strategy.received(call.served, body, call.namespace))

    async def _create(self, call: Call, obj: Json) -> Version:
        self._require_namespace(call)
        call = dataclasses.replace(call, name=obj["metadata"].get("name", ""))
        obj = await self._mutate(call, "CREATE", None, obj)
        served = call.served
        uid, suffix = self.store.new_uid(), self.store.new_suffix()
        obj = strategy.before_create(served, obj, uid=uid, suffix=suffix, now=self.clock.now())
        call = dataclasses.replace(call, name=obj["metadata"]["name"])
        await self._admitted(call, "CREATE", None, obj)
        if self.store.get(call.key) is not None:
            raise failures.already_exists(served.group, served.plural, call.name)
        return self._commit(call, None, obj)

    def _require_namespace(self, call: Call) -> None:
        if not (self.strict_namespaces and call.served.namespaced):
            return
        namespace = self.store.get(Key("", "namespaces", "", call.namespace))
        if namespace is None:
            raise failures.not_found("", NAMESPACES.plural, call.namespace)
        if "deletionTimestamp" in namespace.obj["metadata"]:
            why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
            raise failures.forbidden(call.served.group, call.served.plural, call.name, why)

    async def replace(self, call: Call, body: Any) -> tuple[Version, bool]:
        """PUT. Also says whether that created the object."""
        obj = strategy.received(call.served, body, call.namespace)
        found = obj["metadata"].setdefault("name", call.name)
        if found != call.name:
            raise failures.bad_request(
                f"the name of the object ({found}) does not match the name on the URL ({call.name})"
            )
        self._check_subresource(call)
        if self.store.get(call.key) is None and call.served.upsert:
            if obj["metadata"].get("uid"):
                raise call.conflict(f"Precondition failed: UID in precondition: {obj['metadata']['uid']}")
            obj["metadata"].pop("resourceVersion", None)
            return await self._create(call, obj), True
        return await self._update(call, lambda _old: obj, uid=obj["metadata"].get("uid")), False

    async def merge_patch(self, call: Call, body: Any) -> Version:
        """PATCH with a merge patch."""
        if not isinstance(body, dict):
            raise failures.bad_request("a merge patch is an object")
        return await self._update(call, lambda old: patch.merge(old, body))

    async def json_patch(self, call: Call, body: Any) -> Version:
        """PATCH with a list of JSON patch operations."""
        if not isinstance(body, list):
            raise failures.bad_request("a JSON patch is a list")
        return await self._update(call, lambda old: patch.apply(old, body))

    def _check_subresource(self, call: Call) -> None:
        if call.subresource and not (call.subresource == "status" and call.served.status):
            raise failures.no_such_path()

    async def _update(self, call: Call, build: Build, *, uid: str | None = None) -> Version:
        self._check_subresource(call)
        while True:
            old = self.store.get(call.key)
            if old is None:
                raise call.not_found()
            try:
                return await self._attempt(call, old, build, uid)
            except Moved:
                continue

    async def _attempt(self, call: Call, old: Version, build: Build, uid: str | None) -> Version:
        current = old.obj["metadata"]["uid"]
        if uid and uid != current:
            raise call.conflict(
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"
            )
        new = strategy.normalised(call.served, build(old.obj))
        if new["metadata"].get("name") != call.name or new["metadata"].get("namespace", "") != call.namespace:
            raise failures.bad_request("the name of the object does not match the name on the URL")
        new = await self._mutate(call, "UPDATE", old, new)
        self._check_version(call, new, old)
        new = strategy.before_update(call.served, new, old.obj, call.subresource)
        await self._admitted(call, "UPDATE", old, new)
        if strategy.unchanged(new, old.obj):
            return old
        if strategy.emptied(new):
            self._commit(call, old, None)
            return Version(new, old.revision)
        return self._commit(call, old, new)

    def _check_version(self, call: Call, new: Json, old: Version) -> None:
        wanted = new["metadata"].get("resourceVersion")
        if not wanted:
            if not call.served.unconditional:
                why = "Invalid value: 0: must be specified for an update"
                served = call.served
                raise failures.invalid(
                    served.group, served.plural, call.name, "metadata.resourceVersion", why
                )
            new["metadata"]["resourceVersion"] = str(old.revision)
        elif wanted != str(old.revision):
            raise call.conflict()

    async def delete(self, call: Call, options: Json | None) -> Version | None:
        """DELETE. None when the object is gone, else the object that waits for its finalizers."""
        preconditions = (options or {}).get("preconditions") or {}
        while True:
            old = self.store.get(call.key)
            if old is None:
                raise call.not_found()
            self._check_preconditions(call, old, preconditions)
            await self._admitted(call, "DELETE", old, None, mutating=True)
            try:
                return self._delete_now(call, old)
            except Moved:
                continue

    def _check_preconditions(self, call: Call, old: Version, preconditions: Json) -> None:
        metadata = old.obj["metadata"]
        for key, field_name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted = preconditions.get(key)
            if wanted is not None and wanted != metadata[key]:
                what = f"the {field_name} in the precondition ({wanted})"
                why = f"{what} does not match the {field_name} in record ({metadata[key]})"
                # The real server names the kind here, where elsewhere it names the resource.
                raise failures.conflict(call.served.group, call.served.kind, call.name, why)

    def _delete_now(self, call: Call, old: Version) -> Version | None:
        if not old.obj["metadata"].get("finalizers"):
            self._commit(call, old, None)
            return None
        if "deletionTimestamp" in old.obj["metadata"]:
            return old
        return self._commit(call, old, strategy.terminating(old.obj, self.clock.now()))

    async def _mutate(self, call: Call, operation: str, old: Version | None, new: Json) -> Json:
        if not self.plugins:
            return new
        attributes = call.attributes(operation, old.obj if old else None, new)
        changed = await admission.mutate(self.plugins, attributes)
        assert changed is not None
        return changed

    async def _admitted(
        self, call: Call, operation: str, old: Version | None, new: Json | None, *, mutating: bool = False
    ) -> None:
        attributes = call.attributes(operation, old.obj if old else None, new)
        if mutating and self.plugins:
            await admission.mutate(self.plugins, attributes)
        await admission.validate(self.plugins, attributes)
        if self.before_commit is not None:
            await self.before_commit(attributes)

    def _commit(self, call: Call, old: Version | None, new: Json | None) -> Version:
        if call.dry_run:
            if new is None:
                assert old is not None
                return old
            return Version(new, old.revision if old else 0)
        return self.store.commit(
            call.served, call.key, old, new, user=call.user.name, subresource=call.subresource
        )
