"""Requests and answers of the API server as bytes, headers and parameters. Pure."""

from __future__ import annotations

import json
from typing import cast

from assetlock.kube.decoding import decode
from assetlock.kube.errors import ApiError, KubeError, OutcomeUnknown, TransportError, error_from_reply
from assetlock.kube.resources import Object, Resource
from assetlock.kube.transport import Reply

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PARTIAL = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
PARTIAL_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"


def require_version(body: Object) -> None:
    """Refuse a write that does not say which version of the object it was decided on."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
        raise ValueError("a write needs the metadata.resourceVersion it was decided on")


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """The query parameters of the selectors that are given."""
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in given.items() if value}


def headers_for(accept: str, content_type: str) -> dict[str, str]:
    """The headers of a request with a body."""
    return {"accept": accept, "content-type": content_type}


def encoded(body: Object) -> bytes:
    """The object as compact JSON."""
    return json.dumps(body, separators=(",", ":")).encode()


def decoded(reply: Reply) -> Object:
    """The object that a reply carries; `TransportError` if it carries none."""
    try:
        body = decode(reply.body)
    except ValueError as error:
        raise TransportError(f"the answer is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise TransportError("the answer is not a JSON object")
    return cast(Object, body)


def resources_in(api_version: str, found: Object) -> dict[str, Resource]:
    """The resources of a group and version by kind, from what the server says about it."""
    group, _, version = api_version.rpartition("/")
    entries = [entry for entry in found.get("resources") or [] if entry.get("kind") and entry.get("name")]
    subresources: dict[str, set[str]] = {}
    for entry in entries:
        plural, _, subresource = str(entry["name"]).partition("/")
        subresources.setdefault(plural, set()).add(subresource)
    return {
        str(entry["kind"]): Resource(
            group,
            version,
            plural,
            str(entry["kind"]),
            bool(entry.get("namespaced")),
            frozenset(subresources[plural] - {""}),
        )
        for entry in entries
        if "/" not in (plural := str(entry["name"]))
    }


def error_of(reply: Reply) -> ApiError:
    """The exception for a reply that is a failure."""
    return error_from_reply(reply.status, reply.headers, reply.body)


def outcome_unknown(method: str, path: str, error: KubeError) -> OutcomeUnknown:
    """The exception for a write that may have been done, with what is known of the failure."""
    known = error if isinstance(error, ApiError) else ApiError(0)
    message = f"{method} {path}: whether it was done is not known: {error}"
    return OutcomeUnknown(known.status, known.reason, message, known.details, known.retry_after)
