"""Which resource is meant, and the URL path it has.

Pure values: a `Resource` names a group, a version and a plural, and knows the paths of its collection, of one
object and of a subresource. A name with / or % in it is refused: the API server decodes paths before
it reads them, so quoted it would still reach another one.
"""

from __future__ import annotations

import functools
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, as the API server serves it. ``subresources`` are known of those that were discovered."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    subresources: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """Plural and group as kubectl takes them: `deployments.apps`, or `pods` for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of the collection (of one namespace, or of all), of an object, or of its subresource."""
        if subresource is not None and name is None:
            raise ValueError(f"{self.kind}: a subresource needs the name of an object")
        if self.namespaced and name is not None and not namespace:
            raise ValueError(f"{self.kind} {name!r} lives in a namespace; none was given")
        parts = [group_path(self.api_version)]
        if self.namespaced and namespace:
            parts += ["namespaces", _quoted(namespace)]
        parts.append(self.plural)
        parts += [_quoted(part) for part in (name, subresource) if part is not None]
        return "/".join(parts)


@functools.lru_cache(maxsize=256)
def group_of(api_version: str) -> str:
    """The group of an ``apiVersion``; empty for the core's."""
    return api_version.rpartition("/")[0]


def group_path(api_version: str) -> str:
    """The path under which a group and version are served: `/apis/apps/v1`, `/api/v1`."""
    if "/" not in api_version:
        return f"/api/{_quoted(api_version)}"
    group, _, version = api_version.partition("/")
    return f"/apis/{_quoted(group)}/{_quoted(version)}"


@functools.lru_cache(maxsize=4096)
def _quoted(part: str) -> str:
    if part in ("", ".", "..") or "/" in part or "%" in part:
        raise ValueError(f"{part!r} can't be part of an API path")
    return urllib.parse.quote(part, safe=":")


ASSETS = Resource("assetlock.dev", "v1alpha1", "assets", "Asset")
ASSETLOCKS = Resource("assetlock.dev", "v1alpha1", "assetlocks", "AssetLock")
MAINTENANCE_WINDOWS = Resource("assetlock.dev", "v1alpha1", "maintenancewindows", "MaintenanceWindow")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
JOBS = Resource("batch", "v1", "jobs", "Job")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
POLICIES = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
