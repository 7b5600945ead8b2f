"""The resources that the in-memory API server serves, and how their strategies differ."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Served:
    """One resource. The flags are what the real server decides per kind.

    `custom`: defined by a CRD (generation counts, items in lists name their kind, `/status` touches nothing else).
    `status`, `scale`: has that subresource (the latter only in discovery).
    `unconditional`: a PUT without resourceVersion is accepted.
    `upsert`: a PUT of a missing object creates it. `counts`: has `metadata.generation`.
    `fields`: selectable besides name and namespace.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    custom: bool = False
    status: bool = False
    scale: bool = False
    unconditional: bool = True
    upsert: bool = False
    counts: bool = False
    fields: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path below which the group and version live."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def custom(group: str, version: str, plural: str, kind: str, *fields: str, namespaced: bool = True) -> Served:
    """A custom resource with a status subresource."""
    return Served(
        group, version, plural, kind, namespaced,
        custom=True, status=True, unconditional=False, counts=True, fields=fields,
    )  # fmt: skip


CONFIGMAPS = Served("", "v1", "configmaps", "ConfigMap")
SECRETS = Served("", "v1", "secrets", "Secret", fields=("type",))
PODS = Served("", "v1", "pods", "Pod", status=True, fields=("spec.nodeName", "status.phase"))
NODES = Served("", "v1", "nodes", "Node", namespaced=False, status=True)
JOBS = Served("batch", "v1", "jobs", "Job", status=True, counts=True)
NAMESPACES = Served(
    "", "v1", "namespaces", "Namespace", namespaced=False, status=True, fields=("status.phase",)
)
DEPLOYMENTS = Served("apps", "v1", "deployments", "Deployment", status=True, scale=True, counts=True)
LEASES = Served("coordination.k8s.io", "v1", "leases", "Lease", unconditional=False, upsert=True)
EVENTS = Served("events.k8s.io", "v1", "events", "Event", upsert=True)
ASSETS = custom("assetlock.dev", "v1alpha1", "assets", "Asset", "status.lockState", "spec.type")
MAINTENANCE_WINDOWS = custom(
    "assetlock.dev", "v1alpha1", "maintenancewindows", "MaintenanceWindow", "spec.kind", "status.active"
)
ASSETLOCKS = custom("assetlock.dev", "v1alpha1", "assetlocks", "AssetLock", "spec.assetName", "status.state")
POLICIES = Served(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
POLICY_BINDINGS = Served(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)

DEFAULT = (
    CONFIGMAPS,
    SECRETS,
    PODS,
    JOBS,
    NODES,
    NAMESPACES,
    DEPLOYMENTS,
    LEASES,
    EVENTS,
    ASSETS,
    ASSETLOCKS,
    POLICIES,
    POLICY_BINDINGS,
    MAINTENANCE_WINDOWS,
)
