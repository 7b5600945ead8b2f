"""What `assetlock doctor` looks at. Each check gives what it has found; who may not look is told so by the caller."""

from __future__ import annotations

import base64
import datetime
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assetlock.client.api import ASSETLOCKS, ASSETS, ClientError, Forbidden, NotFound
from assetlock.core import names

if TYPE_CHECKING:
    from assetlock.client.api import Api

OK, UNKNOWN, WRONG = "ok", "unknown", "wrong"

SOON = datetime.timedelta(days=7)
"""A certificate that ends sooner should have been renewed by now."""

MOST_SKEW = datetime.timedelta(seconds=10)
LEADS_WITHIN: float = 20.0

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VERBS = (
    ("assetlocks", ("create", "get", "watch", "patch", "delete")),
    ("assets", ("get", "list", "watch", "lock")),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, and whether it is good, bad, or nobody can tell."""

    state: str
    text: str


def definitions(api: Api, _namespace: str) -> Iterator[Finding]:
    """Whether the resources are there, and have all fields that this version knows."""
    from assetlock.install import manifests

    for wanted in manifests("crds"):
        name = wanted["metadata"]["name"]
        try:
            served = api.get(f"{_DEFINITIONS}/{name}")
        except NotFound:
            yield Finding(WRONG, f"{name} is missing; run assetlock install")
            continue
        lacking = list(_lacking(_schema(wanted), _schema(served)))
        if lacking:
            yield Finding(WRONG, f"{name} is old, it lacks {', '.join(lacking[:5])}; run assetlock install")
        else:
            yield Finding(OK, name)


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _lacking(wanted: Mapping[str, Any], served: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The fields of one schema that another does not have."""
    for name, schema in (wanted.get("properties") or {}).items():
        below = f"{path}.{name}".lstrip(".")
        theirs = (served.get("properties") or {}).get(name)
        if theirs is None:
            yield below
        else:
            yield from _lacking(schema.get("items", schema), theirs.get("items", theirs), below)


def policies(api: Api, _namespace: str) -> Iterator[Finding]:
    """Whether each policy is bound, and does what it is to do: most deny."""
    from assetlock.install import manifests

    for wanted in manifests("manifests"):
        if wanted["kind"] != "ValidatingAdmissionPolicyBinding":
            continue
        name = wanted["metadata"]["name"]
        try:
            bound = api.get(f"{_ADMISSION}/validatingadmissionpolicybindings/{name}")
        except NotFound:
            yield Finding(
                WRONG, f"the binding of {name} is missing: it refuses nothing; run assetlock install"
            )
            continue
        lacking = {*wanted["spec"]["validationActions"]} - {*bound["spec"].get("validationActions", ())}
        if lacking:
            yield Finding(WRONG, f"{name} does not {', '.join(sorted(lacking))}; run assetlock install")
        else:
            yield Finding(OK, name)


def webhooks(api: Api, namespace: str) -> Iterator[Finding]:
    """Whether the API server reaches the webhooks, tried with a lock that is not stored; and the clock beside it."""
    from assetlock.client.session.locks import explained
    from assetlock.client.session.requests import Request, new_name

    body = Request(namespace, ("assetlock-doctor",)).body(new_name(("assetlock-doctor",)))
    before = datetime.datetime.now(datetime.UTC)
    try:
        made = api.create(ASSETLOCKS.path(namespace), body, params={"dryRun": "All"})
    except Forbidden:
        raise
    except ClientError as error:
        yield Finding(WRONG, f"{explained(error)}; see that the admission process runs, and its log")
        return
    yield Finding(OK, "the API server reaches them")
    created = datetime.datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    skew = abs(created - before.replace(microsecond=0))
    if skew > MOST_SKEW:
        yield Finding(
            WRONG, f"your clock and the API server's are {int(skew.total_seconds())} s apart; set yours"
        )


def certificates(api: Api, _namespace: str) -> Iterator[Finding]:
    """Until when the API server trusts the webhooks."""
    from cryptography import x509

    try:
        configuration = api.get(f"{_ADMISSION}/mutatingwebhookconfigurations/assetlock")
    except NotFound:
        yield Finding(WRONG, "the MutatingWebhookConfiguration assetlock is missing; run assetlock install")
        return
    bundles = {hook["clientConfig"].get("caBundle", "") for hook in configuration["webhooks"]}
    if "" in bundles:
        yield Finding(WRONG, "a webhook has no caBundle: the admission process has not started yet")
    for bundle in bundles - {""}:
        ends = max(
            cert.not_valid_after_utc for cert in x509.load_pem_x509_certificates(base64.b64decode(bundle))
        )
        left = ends - datetime.datetime.now(datetime.UTC)
        when = f"the webhooks' CA ends at {ends:%Y-%m-%dT%H:%M:%SZ}"
        yield Finding(OK, when) if left > SOON else Finding(WRONG, f"{when}; restart the admission process")


def controller(api: Api, _namespace: str) -> Iterator[Finding]:
    """Whether a controller leads: its Lease changes while one looks on, so that no clock matters."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{names.OPERATOR_NAMESPACE}/leases/{LEADER_LEASE}"
    try:
        first = api.get(path)
    except NotFound:
        yield Finding(WRONG, "no controller has ever led: none runs; nobody gets a lock")
        return
    deadline = time.monotonic() + LEADS_WITHIN
    while time.monotonic() < deadline:
        seen = api.get(path)
        if seen["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]:
            yield Finding(OK, f"{seen['spec'].get('holderIdentity')} leads")
            return
        time.sleep(0.5)
    yield Finding(WRONG, f"no controller leads: its Lease has not changed for {LEADS_WITHIN:g} s; start one")


def rights(api: Api, namespace: str) -> Iterator[Finding]:
    """What the caller may not do in the namespace that `run` and the others need."""
    missing = [
        f"{verb} {resource}"
        for resource, verbs in _VERBS
        for verb in verbs
        if not _may(api, namespace, resource, verb)
    ]
    if missing:
        yield Finding(
            WRONG, f"in namespace {namespace} you may not {', '.join(missing)}; see docs/examples/rbac.yaml"
        )
    else:
        yield Finding(OK, f"you may lock in namespace {namespace}")


def _may(api: Api, namespace: str, resource: str, verb: str) -> bool:
    attributes = {"group": names.GROUP, "resource": resource, "verb": verb, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(api.create(_REVIEWS, body)["status"]["allowed"])


def stamps(api: Api, _namespace: str) -> Iterator[Finding]:
    """Objects that are fenced although nobody holds the lock; the controller may be about to free them."""
    from assetlock.cli._kinds import targeted

    assets = [asset for page in api.list_pages(ASSETS.path(None)) for asset in page["items"]]
    orphaned = []
    fenced = {"labelSelector": f"{names.FENCED_LABEL}=true"}
    for kind in targeted(api, assets):
        for page in api.list_pages(kind.path(None), fenced):
            for found in page["items"]:
                annotations = found["metadata"].get("annotations") or {}
                claims = filter(None, map(names.claimant, annotations))
                if any(not _is_locked(api, *claim) for claim in claims):
                    orphaned.append(f"{kind.kind} {found['metadata']['name']}")
    if orphaned:
        named = ", ".join(orphaned[:5])
        yield Finding(
            WRONG, f"{named}: fenced, but nobody holds it; assetlock revoke ASSET --offline frees it"
        )
    else:
        yield Finding(OK, "every stamp belongs to a lock")


def _is_locked(api: Api, namespace: str, asset: str) -> bool:
    try:
        seen = api.get(ASSETS.path(namespace, asset))
    except NotFound:
        return False
    return bool((seen.get("status") or {}).get("lockState", "Unlocked") != "Unlocked")


LEADER_LEASE = "assetlock-controller"

CHECKS: Mapping[str, Callable[[Api, str], Iterator[Finding]]] = {
    "resources": definitions,
    "policies": policies,
    "webhooks": webhooks,
    "certificate": certificates,
    "controller": controller,
    "rights": rights,
    "stamps": stamps,
}
