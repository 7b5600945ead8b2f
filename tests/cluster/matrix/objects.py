"""The objects that writes are tried on, and how each is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tests.cluster.matrix.cells import Object

from assetlock.core import names
from assetlock.kube.resources import (
    ASSETLOCKS,
    ASSETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    Resource,
)

NAMESPACE = "matrix"
ASSET = "vm"
WARNING = "quiet"
HANDMADE = "job"
LOCK = "patching"
FINALIZER = "example.test/keep"

STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
WIDGETS_OLD = Resource("example.test", "v1alpha1", "widgets", "Widget")
WIDGETS = Resource("example.test", "v1", "widgets", "Widget")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Thing:
    """An object in its row of the matrix. ``path`` and ``value`` are the change of content that is tried on it."""

    title: str
    resource: Resource
    path: tuple[str, ...]
    value: Any
    content: Object | None = None
    """What it is made from; none if it comes into being by itself."""
    name: str = "app"
    asset: str = ASSET
    """Which asset it is a target of, if it is one."""

    @property
    def namespace(self) -> str | None:
        """Where it lives."""
        return NAMESPACE if self.resource.namespaced else None

    def manifest(self, name: str | None = None, **metadata: Any) -> Object:
        """The object as its maker writes it."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": name or self.name, **metadata},
            **(self.content or {}),
        }

    def __str__(self) -> str:
        return self.title


_LABELS = {"app": "app"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
_CONTAINER = {
    "name": "c",
    "image": "none",
    "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}},
}
_VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/none"},
    "persistentVolumeReclaimPolicy": "Retain",
    "storageClassName": "none",
}

CONFIG_MAP = Thing("ConfigMap", CONFIG_MAPS, ("data", "colour"), "blue", {"data": {"colour": "red"}})
SECRET = Thing("Secret", SECRETS, ("data", "colour"), "Ymx1ZQ==", {"data": {"colour": "cmVk"}})
DEPLOYMENT = Thing(
    "Deployment",
    DEPLOYMENTS,
    ("spec", "minReadySeconds"),
    5,
    {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
)
STATEFUL_SET = Thing(
    "StatefulSet",
    STATEFUL_SETS,
    ("spec", "minReadySeconds"),
    5,
    {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE, "serviceName": "app"}},
)
JOB = Thing(
    "Job",
    JOBS,
    ("spec", "parallelism"),
    2,
    {"spec": {"template": {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}}},
)
POD = Thing("Pod", PODS, ("spec", "activeDeadlineSeconds"), 60, {"spec": {"containers": [_CONTAINER]}})
SERVICE = Thing(
    "Service",
    SERVICES,
    ("spec", "sessionAffinity"),
    "ClientIP",
    {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}},
)
SERVICE_ACCOUNT = Thing(
    "ServiceAccount", SERVICE_ACCOUNTS, ("automountServiceAccountToken",), False, {}, name="worker"
)
WIDGET = Thing("custom resource", WIDGETS, ("spec", "size"), 2, {"spec": {"size": 1, "replicas": 1}})
OLD_WIDGET = dataclasses.replace(
    WIDGET, title="custom resource (other version)", resource=WIDGETS_OLD, content=None
)
VOLUME = Thing(
    "PersistentVolume (cluster-scoped)",
    VOLUMES,
    ("spec", "persistentVolumeReclaimPolicy"),
    "Delete",
    {"spec": _VOLUME},
)
WARNED = dataclasses.replace(
    CONFIG_MAP, title="ConfigMap of an asset with onConflict: Warn", name="warned", asset=WARNING
)
TERMINATING = dataclasses.replace(CONFIG_MAP, title="terminating ConfigMap", name="going")
THE_NAMESPACE = Thing(
    "namespace of the asset",
    NAMESPACES,
    ("metadata", "labels", "colour"),
    "blue",
    name=NAMESPACE,
)
THE_ASSET = Thing("Asset", ASSETS, ("spec", "description"), "changed", name=ASSET)
THE_LOCK = Thing("AssetLock", ASSETLOCKS, ("spec", "reason"), "changed", name=LOCK)
LOCKS_LEASE = Thing(
    "Lease of an AssetLock",
    LEASES,
    ("spec", "leaseDurationSeconds"),
    90,
    name=names.lease_name(ASSET),
)
HANDMADE_LEASE = dataclasses.replace(LOCKS_LEASE, title="Lease made by hand", name=names.lease_name(HANDMADE))
SLICE = Thing(
    "EndpointSlice of the Service (no target)",
    SLICES,
    ("metadata", "labels", "colour"),
    "blue",
    name="",
)
UNLOCKED = dataclasses.replace(CONFIG_MAP, title="unlocked ConfigMap", name="free")

TARGETS = (
    CONFIG_MAP,
    SECRET,
    DEPLOYMENT,
    STATEFUL_SET,
    JOB,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    WIDGET,
    OLD_WIDGET,
    VOLUME,
    TERMINATING,
)
STAMPED = (*TARGETS, WARNED)
OURS = (THE_ASSET, THE_LOCK, LOCKS_LEASE, HANDMADE_LEASE)
OTHERS = (THE_NAMESPACE, SLICE, UNLOCKED)
THINGS = STAMPED + OURS + OTHERS

ABSENT = "gone"
"""The name under which each kind of target is locked without there being one: its holder deleted it."""


def absent() -> Iterator[Thing]:
    """The targets that an object may be made anew for."""
    return (thing for thing in TARGETS if thing.content is not None and thing is not TERMINATING)


def widget_definition() -> Object:
    """A custom resource with two served versions, a status and a scale."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"served": True, "schema": schema, "subresources": {"status": {}, "scale": scale}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{WIDGETS.plural}.{WIDGETS.group}"},
        "spec": {
            "group": WIDGETS.group,
            "scope": "Namespaced",
            "names": {"kind": WIDGETS.kind, "plural": WIDGETS.plural, "singular": "widget"},
            "versions": [
                {"name": WIDGETS.version, "storage": True, **version},
                {"name": WIDGETS_OLD.version, "storage": False, **version},
            ],
        },
    }
