"""The scene of the matrix: one asset with all the targets, handed over from one holder to the next."""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from tests.cluster.conftest import document, lease, operator_in_a_cluster
from tests.cluster.matrix.cells import Object, Outage, Request
from tests.cluster.matrix.objects import (
    ABSENT,
    ASSET,
    FINALIZER,
    HANDMADE,
    LOCK,
    NAMESPACE,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    SLICE,
    STAMPED,
    TARGETS,
    TERMINATING,
    UNLOCKED,
    WARNED,
    WARNING,
    WIDGETS,
    Thing,
    absent,
    widget_definition,
)
from tests.cluster.matrix.requesters import (
    FORMER,
    HOLDER,
    OTHER_POD,
    POWERFUL_STRANGER,
    REQUESTERS,
    WRITERS,
    Requester,
)

from assetlock.cli.stack import Part
from assetlock.core import names
from assetlock.dev import ControlPlane
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.transport import Reply

KILLED: Mapping[Outage, tuple[Part, ...]] = {
    Outage.NONE: (),
    Outage.WEBHOOK: (Part.ADMISSION,),
    Outage.OPERATOR: (Part.ADMISSION, Part.CONTROLLER),
}
TIMEOUT = 60.0
_TOKEN_PATH = names.TOKEN_ANNOTATION.replace(".", "\\.")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Stage:
    """A cluster in which everything is locked, and its requesters."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._admin = HttpTransport(load_config(cluster.kubeconfig, environ={}))
        self._clients = {
            by: HttpTransport(load_config(kubeconfig(cluster, by), environ={})) for by in REQUESTERS
        }
        self.pod_uids = {by: self._pod_uid(by.pod) for by in REQUESTERS}
        self._slice = self._kubectl_json(
            "get", "endpointslice", f"--selector=kubernetes.io/service-name={SERVICE.name}"
        )["items"][0]

    async def now(self, thing: Thing) -> Object:
        """An object as it is now."""
        name = self._slice["metadata"]["name"] if thing is SLICE else thing.name
        reply = await self._sent(self._admin, Request("GET", thing.resource.path(thing.namespace, name)), {})
        assert reply.status == 200, reply.body
        found: Object = json.loads(reply.body)
        return found

    async def send(self, request: Request, by: Requester, *, dry_run: bool) -> Reply:
        """Try a write."""
        params = {**request.params, **({"dryRun": "All"} if dry_run else {})}
        return await self._sent(self._clients[by], request, params)

    async def close(self) -> None:
        """Close all connections."""
        for client in (self._admin, *self._clients.values()):
            await client.close()

    @staticmethod
    async def _sent(client: HttpTransport, request: Request, params: Mapping[str, str]) -> Reply:
        body = None if request.body is None else json.dumps(request.body).encode()
        headers = {"content-type": request.content_type, "accept": "application/json"}
        return await client.request(
            request.method, request.path, params=params, headers=headers, body=body, timeout=TIMEOUT
        )

    def _pod_uid(self, pod: str | None) -> str | None:
        if pod is None:
            return None
        uid: str = self._kubectl_json("get", "pod", pod)["metadata"]["uid"]
        return uid

    def _kubectl_json(self, *args: str) -> Any:
        return json.loads(self._cluster.kubectl(*args, f"--namespace={NAMESPACE}", "--output=json").stdout)


def kubeconfig(cluster: ControlPlane, by: Requester) -> pathlib.Path:
    """The file by which a requester authenticates."""
    _, _, account = by.username.partition(f"system:serviceaccount:{NAMESPACE}:")
    if account:
        return cluster.kubeconfig_for_service_account(NAMESPACE, account, pod=by.pod)
    if not by.is_impersonated:
        return cluster.kubeconfig_for(by.username, *by.groups)
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"] |= {"as": by.username, "as-groups": list(by.groups)}
    path = cluster.folder / f"{by.username}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


@contextlib.contextmanager
def set_up(outage: Outage) -> Iterator[ControlPlane]:
    """A cluster of its own with everything locked in it, and then what the outage takes away killed."""
    with operator_in_a_cluster() as (cluster, stack):
        _grant_rights(cluster)
        _make_objects(cluster)
        _hand_over(cluster)
        if KILLED[outage]:
            stack.kill(*KILLED[outage])
        yield cluster


def _grant_rights(cluster: ControlPlane) -> None:
    holders = (f"--user={FORMER.username}", f"--user={HOLDER.username}")
    cluster.kubectl("create", "clusterrole", WRITERS, "--verb=" + ",".join(VERBS), "--resource=*.*")
    cluster.kubectl(
        "create", "clusterrolebinding", WRITERS, f"--clusterrole={WRITERS}", f"--group={WRITERS}", holders[1]
    )
    cluster.kubectl("create", "clusterrole", "matrix-locks", "--verb=lock", "--resource=assets.assetlock.dev")
    cluster.kubectl("create", "clusterrolebinding", "matrix-locks", "--clusterrole=matrix-locks", *holders)
    powerful = f"--user={POWERFUL_STRANGER.username}"
    cluster.kubectl("create", "clusterrolebinding", "matrix-power", "--clusterrole=cluster-admin", powerful)


def _make_objects(cluster: ControlPlane) -> None:
    cluster.kubectl("create", "namespace", NAMESPACE)
    _create(cluster, widget_definition())
    cluster.kubectl("wait", f"crd/{WIDGETS.plural}.{WIDGETS.group}", "--for=condition=Established")
    made = [thing for thing in (*STAMPED, UNLOCKED) if thing.content is not None]
    first = sorted(made, key=lambda thing: thing is not SERVICE_ACCOUNT)
    _create(cluster, *(thing.manifest(finalizers=[FINALIZER]) for thing in first))
    _create(cluster, *(thing.manifest(f"{thing.name}-{ABSENT}") for thing in absent()))
    _create(cluster, *(_pod_of_holder(str(by.pod)) for by in (HOLDER, OTHER_POD)))
    named = [(thing, thing.name) for thing in TARGETS if thing.content is not None]
    named += [(thing, f"{thing.name}-{ABSENT}") for thing in absent()]
    targets = [_target(thing, name) for thing, name in named]
    closed = {"guardedSubresources": ["exec", "attach", "portforward"]}
    _create(cluster, document("Asset", ASSET, {"type": "VM", "targets": targets, **closed}))
    quiet = {"type": "VM", "targets": [_target(WARNED, WARNED.name)], "onConflict": "Warn"}
    _create(cluster, document("Asset", WARNING, quiet))
    _create(cluster, document("Asset", HANDMADE, {"type": "VM"}))


def _hand_over(cluster: ControlPlane) -> None:
    """Somebody held the lock before; the holder waited for it, from a pod. A Lease is the holder's own."""
    _create(cluster, document("AssetLock", "earlier", {"assetName": ASSET, "ttl": "24h"}), by=FORMER)
    _wait(cluster, "assetlock/earlier", "condition=Acquired")
    wanted = {"ttl": "24h", "wait": "1h", "bindTo": "Pod"}
    locks = {LOCK: ASSET, WARNING: WARNING}
    for name, asset in locks.items():
        _create(cluster, document("AssetLock", name, {"assetName": asset, **wanted}), by=HOLDER)
    _wait(cluster, f"assetlock/{LOCK}", "jsonpath={.status.state}=Pending")
    _kubectl(cluster, "delete", "assetlock", "earlier", by=FORMER)
    for name in locks:
        _wait(cluster, f"assetlock/{name}", "condition=Acquired")
    _create(cluster, lease(HANDMADE, leaseDurationSeconds=86400), by=HOLDER)
    _wait(cluster, f"lease/{names.lease_name(HANDMADE)}", f"jsonpath={{.metadata.annotations.{_TOKEN_PATH}}}")
    for thing in absent():
        name = f"{thing.name}-{ABSENT}"
        _kubectl(cluster, "delete", thing.resource.plural, name, "--grace-period=0", "--force", by=HOLDER)
    _kubectl(cluster, "delete", "configmap", TERMINATING.name, "--wait=false", by=HOLDER)


def _pod_of_holder(name: str) -> Object:
    return {
        **POD.manifest(name),
        "spec": {**POD.manifest()["spec"], "serviceAccountName": SERVICE_ACCOUNT.name},
    }


def _target(thing: Thing, name: str) -> Object:
    return {"apiVersion": thing.resource.api_version, "kind": thing.resource.kind, "name": name}


def _create(cluster: ControlPlane, *manifests: Object, by: Requester | None = None) -> None:
    _kubectl(cluster, "create", "--filename=-", by=by, stdin=yaml.safe_dump_all(manifests))


def _wait(cluster: ControlPlane, what: str, condition: str) -> None:
    _kubectl(cluster, "wait", what, f"--for={condition}", "--timeout=60s")


def _kubectl(
    cluster: ControlPlane, *args: str, by: Requester | None = None, stdin: str | None = None
) -> None:
    who = () if by is None else (f"--kubeconfig={kubeconfig(cluster, by)}",)
    cluster.kubectl(*args, f"--namespace={NAMESPACE}", *who, stdin=stdin)
