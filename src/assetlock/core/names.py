"""The names that clients, policies and processes of this operator agree on (group, labels, annotations, users)."""

from __future__ import annotations

from assetlock.model.limits import MOST_SLOTS

GROUP = "assetlock.dev"
API_VERSION = f"{GROUP}/v1alpha1"

OPERATOR_NAMESPACE = "assetlock-system"
CONTROLLER_USER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:assetlock-controller"
ADMISSION_USER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:assetlock-admission"
WINDOW_LOCK_PREFIX = "window."
WINDOW_USER_PREFIX = f"{GROUP.removesuffix('.dev')}:window:"
BREAK_GLASS_GROUP = f"{GROUP.removesuffix('.dev')}:break-glass"

ASSET_LABEL = f"{GROUP}/asset"
FENCED_LABEL = f"{GROUP}/fenced"
WINDOW_LABEL = f"{GROUP}/window"
GUARDED_LABEL = f"{GROUP}/guarded"

OWNER_ANNOTATION = f"{GROUP}/owner"
ACQUISITION_ANNOTATION = f"{GROUP}/acquisition"
LOCK_ANNOTATION = f"{GROUP}/lock"
POD_ANNOTATION = f"{GROUP}/pod"
TOKEN_ANNOTATION = f"{GROUP}/token"
SETTER_ANNOTATION = f"{GROUP}/targets-set-by"
KEEP_ANNOTATION = f"{GROUP}/keep"
WITHHELD_ANNOTATION = f"{GROUP}/withheld"
REVOKED_ANNOTATION = f"{GROUP}/revoked-by"
REQUEST_ANNOTATION = f"{GROUP}/request"
"""On an AssetLock: the request that created it. What is created with one is a copy, as from a backup."""
COPY_ANNOTATION = f"{GROUP}/copy-of"
"""On such a copy: the request that created the original."""
BIND_TO_ANNOTATION = f"{GROUP}/bind-to"

STAMP_SUFFIX = f".fence.{GROUP}/holders"
NAMESPACE_FENCE_SUFFIX = f".guard.{GROUP}/targets"

TARGETS_POLICY = "assetlock-targets"
"""The ValidatingAdmissionPolicy that fences targets, and its binding."""

SUBRESOURCES_POLICY = "assetlock-subresources"
"""The one that fences scaling, eviction and exec, and its binding."""

_SLOTS = {"asset": 0} | {f"asset-{slot}": slot for slot in range(1, MOST_SLOTS)}


def webhook_path(webhook: str) -> str:
    """The last part of the path that a webhook of this name is called at: ``fence`` for ``fence.assetlock.dev``."""
    first, _, _ = webhook.partition(".")
    return "assets" if first == "targets" else first


def lease_name(asset: str, slot: int = 0) -> str:
    """The Lease that is one slot of an asset: ``asset.vm``, ``asset-1.vm``, ``asset-2.vm`` and so on.

    The slot is before the first dot, since names of assets may have dots.
    """
    return f"asset-{slot}.{asset}" if slot else f"asset.{asset}"


def slot_of(asset: str, lease: str) -> int | None:
    """Which slot of the asset a Lease of this name is; ``None`` if it is none."""
    first, _, rest = lease.partition(".")
    return _SLOTS.get(first) if rest == asset else None


def stamp_key(asset: str, namespace: str) -> str:
    """The annotation by which an asset claims a target.

    Neither is longer than 63 characters, so that the annotation's prefix stays below the 253 that Kubernetes
    allows; and a namespace has no dots, so that the last one tells asset and namespace apart.
    """
    return f"{asset}.{namespace}{STAMP_SUFFIX}"


def ended_key(stamp_key: str, uid: str) -> str:
    """The annotation on the policy for targets that voids a stamp with this key on the object with this UID."""
    return f"{stamp_key.removesuffix(STAMP_SUFFIX)}.ended.{GROUP}/{uid}"


def namespace_fence_key(asset: str, namespace: str) -> str:
    """The annotation on a namespace by which an asset closes the subresources of its targets there."""
    return f"{asset}.{namespace}{NAMESPACE_FENCE_SUFFIX}"


def claimant(key: str) -> tuple[str, str] | None:
    """Namespace and name of the asset that such an annotation belongs to; ``None`` for any other."""
    for suffix in (STAMP_SUFFIX, NAMESPACE_FENCE_SUFFIX):
        if key.endswith(suffix):
            asset, _, namespace = key.removesuffix(suffix).rpartition(".")
            return (namespace, asset) if asset and namespace else None
    return None


PROBE_KEY = stamp_key("probe", OPERATOR_NAMESPACE)
"""The stamp that is planted, as a dry run, to see it refused."""
