"""The CustomResourceDefinitions, made from the models: names, columns, selectors, schema."""

from __future__ import annotations

import dataclasses
from typing import Any

from pydantic import BaseModel

from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.schema import structural_schema
from assetlock.model.window import MaintenanceWindow

GROUP, VERSION = "assetlock.dev", "v1alpha1"

CATEGORY = "locks"
"""`kubectl get locks` lists every kind. Not `assetlock`: that is a singular, and kubectl would take it for both."""


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a ``wide`` one is shown with `-o wide`."""

    title: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """What the schema does not say about a kind."""

    model: type[BaseModel]
    plural: str
    short: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...]


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

# Times that lie ahead are shown as they are: a column of type "date" shows an age, "<invalid>" for the future.
# Of several results of a path a column shows the first.
KINDS = (
    Kind(
        Asset,
        "assets",
        "ast",
        columns=(
            Column("Type", ".spec.type"),
            Column("Lock", ".status.lockState"),
            Column("Slots", ".status.slots"),
            Column("Holder", ".status.heldBy"),
            Column("Since", ".status.holders[0].acquireTime", "date"),
            Column("Until", ".status.holders[0].expireTime"),
            Column("Fenced", _condition("Fenced", "status")),
            Column("Reason", ".status.holders[0].reason"),
            Column("Queue", ".status.queueLength", "integer"),
            Column("Mode", ".status.holders[0].mode", wide=True),
            Column("Holder ID", ".status.holders[0].holderId", wide=True),
            Column("Token", ".status.fencingToken", "integer", wide=True),
            Column("Next", ".status.queue[0].identity", wide=True),
            _AGE,
        ),
        selectable=(".spec.type", ".status.lockState"),
    ),
    Kind(
        AssetLock,
        "assetlocks",
        "alk",
        columns=(
            Column("Asset", ".*['assetList','assetName']"),
            Column("State", ".status.state"),
            Column("Reason", _condition("Settled", "reason")),
            Column("Holder", ".spec.holder.username"),
            Column("Since", ".status.acquireTime", "date"),
            Column("Until", ".status.expireTime"),
            Column("Fenced", _condition("Fenced", "status")),
            Column("Position", ".status.queuePosition", "integer"),
            Column("Mode", ".spec.mode", wide=True),
            Column("Holder ID", ".spec.holderId", wide=True),
            Column("Token", ".status['fencingToken','tokens']", wide=True),
            Column("Waits for", ".status.waitsFor", wide=True),
            Column("For", ".spec.reason", wide=True),
            _AGE,
        ),
        selectable=(".spec.assetName", ".status.state"),
    ),
    Kind(
        MaintenanceWindow,
        "maintenancewindows",
        "mw",
        columns=(
            Column("Kind", ".spec.kind"),
            Column("Schedule", ".spec.schedule"),
            Column("Zone", ".spec.timeZone"),
            Column("Ready", _condition("Ready", "status")),
            Column("Reason", _condition("Ready", "reason")),
            Column("Active", ".status.active", "boolean"),
            Column("Next Start", ".status.nextStart"),
            Column("Next End", ".status.nextEnd"),
            Column("Enforced", _condition("Enforced", "reason"), wide=True),
            Column("For", ".spec.reason", wide=True),
            _AGE,
        ),
        selectable=(".spec.kind", ".status.active"),
    ),
)


def definition(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    name = kind.model.__name__
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {
                "name": column.title,
                "type": column.type,
                "jsonPath": column.path,
                **({"priority": 1} if column.wide else {}),
            }
            for column in kind.columns
        ],
        "selectableFields": [{"jsonPath": path} for path in kind.selectable],
        "schema": {"openAPIV3Schema": structural_schema(kind.model)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": {"app.kubernetes.io/name": "assetlock"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": kind.plural,
                "singular": name.lower(),
                "shortNames": [kind.short],
                "categories": [CATEGORY],
            },
            "versions": [version],
        },
    }
