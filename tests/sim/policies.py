"""What the policies inside the API server promise, as plugins of the in-memory one: the fence, whatever else is down.

The policies themselves are tried on a real API server; here is only what they have to come to.
"""

from collections.abc import Iterator

from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.resources import POLICIES, POLICY_BINDINGS, Resource
from tests.sim import failures
from tests.sim.admission import Attributes, Plugin
from tests.sim.kinds import ASSETLOCKS, ASSETS, LEASES
from tests.sim.store import Json

SUPERUSER = "root"


def plugins() -> list[Plugin]:
    """All of them."""
    return [Plugin(validate=_guard_leases), Plugin(validate=_fence)]


def claims_on(obj: Json) -> dict[str, list[str]]:
    """The stamps that count on an object: by annotation, a line for each holder."""
    metadata = obj["metadata"]
    if metadata.get("labels", {}).get(names.FENCED_LABEL) != "true":
        return {}
    claims = {}
    for key, value in metadata.get("annotations", {}).items():
        uid, *holders = value.split("\n")
        if key.endswith(names.STAMP_SUFFIX) and uid == metadata["uid"]:
            claims[key] = holders
    return claims


def is_operator(attributes: Attributes) -> bool:
    """Whether the controller asks."""
    return attributes.user.name == names.CONTROLLER_USER


def _refuse(attributes: Attributes, why: str) -> failures.Refusal:
    served = attributes.served
    return failures.forbidden(served.group, served.plural, attributes.name, why)


def all_policies() -> Iterator[tuple[Resource, Json]]:
    """What the controller looks for before it believes that the fence is there; `plugins` is what it does."""
    for resource in (POLICIES, POLICY_BINDINGS):
        for name in (names.TARGETS_POLICY, names.SUBRESOURCES_POLICY):
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            yield resource, {**kind, "metadata": {"name": name}}


async def install(api: Api) -> None:
    """Have the controller find the fence."""
    for resource, body in all_policies():
        await api.create(resource, None, body)


def _fence(attributes: Attributes) -> None:
    """The operator's dry runs are met like a stranger's writes."""
    old, operates = attributes.old, is_operator(attributes) and not attributes.dry_run
    if operates or old is None or attributes.served in (ASSETS, ASSETLOCKS, LEASES):
        return
    claims = claims_on(old)
    me = f"- {attributes.user.name}"
    if not all(any(line.partition(" ")[2] == me for line in lines) for lines in claims.values()):
        raise _refuse(attributes, f"policy {names.TARGETS_POLICY!r}: Locked")
    if attributes.new is not None and claims_on(attributes.new) != claims:
        raise _refuse(attributes, f"policy {names.TARGETS_POLICY!r}: stamps are the operator's alone")


def is_lock(obj: Json | None) -> bool:
    """Whether a Lease stands for a slot of an asset."""
    return obj is not None and names.ASSET_LABEL in obj["metadata"].get("labels", {})


def holder_of(obj: Json | None) -> str:
    """Whom a Lease names; nobody while it is free, or not there."""
    return str((obj or {}).get("spec", {}).get("holderIdentity") or "")


def owns(attributes: Attributes, old: Json) -> bool:
    """Whether the Lease was made by hand, by the one who asks now."""
    annotations = old["metadata"].get("annotations", {})
    owner = annotations.get(names.OWNER_ANNOTATION)
    return names.LOCK_ANNOTATION not in annotations and owner == f"- {attributes.user.name}"


def _guard_leases(attributes: Attributes) -> None:
    """A held Lease is changed by its owner, whom whoever takes one has to name: the webhook does, if it is up."""
    old, new = attributes.old, attributes.new
    lock = new if old is None else old
    if attributes.served is not LEASES or not is_lock(lock) or is_operator(attributes):
        return
    others = (SUPERUSER, names.ADMISSION_USER)
    if (
        old is not None
        and holder_of(old)
        and not owns(attributes, old)
        and attributes.user.name not in others
    ):
        raise _refuse(attributes, "Locked")
    if holder_of(new) and holder_of(new) != holder_of(old):
        owner = (new or {})["metadata"].get("annotations", {}).get(names.OWNER_ANNOTATION)
        if owner != f"- {attributes.user.name}":
            raise _refuse(
                attributes, f"the annotation {names.OWNER_ANNOTATION} must name who takes the Lease"
            )
