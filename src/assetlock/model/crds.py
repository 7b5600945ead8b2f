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
class Kind:
    """What the schema does not say about a kind."""

    model: type[BaseModel]
    plural: str
    short: str
    columns: tuple[tuple[str, str, str], ...]
    selectable: tuple[str, ...]


# Times that lie ahead are shown as they are: a column of type "date" shows an age, "<invalid>" for the future.
KINDS = (
    Kind(
        Asset,
        "assets",
        "ast",
        columns=(
            ("Type", "string", ".spec.type"),
            ("Lock", "string", ".status.lockState"),
            ("Holder", "string", ".status.holders[0].identity"),
            ("Until", "string", ".status.holders[0].expireTime"),
            ("Queue", "integer", ".status.queueLength"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
        selectable=(".spec.type", ".status.lockState"),
    ),
    Kind(
        AssetLock,
        "assetlocks",
        "alk",
        columns=(
            ("Asset", "string", ".spec['assetName','assetNames','assetSelector']"),
            ("State", "string", ".status.state"),
            ("Holder", "string", ".spec.holder.username"),
            ("Position", "integer", ".status.queuePosition"),
            ("Waits for", "string", ".status.waitsFor"),
            ("Until", "string", ".status.expireTime"),
            ("Token", "integer", ".status.fencingToken"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
        selectable=(".spec.assetName", ".status.state"),
    ),
    Kind(
        MaintenanceWindow,
        "maintenancewindows",
        "mw",
        columns=(
            ("Kind", "string", ".spec.kind"),
            ("Schedule", "string", ".spec.schedule"),
            ("Zone", "string", ".spec.timeZone"),
            ("Active", "boolean", ".status.active"),
            ("Next Start", "string", ".status.nextStart"),
            ("Next End", "string", ".status.nextEnd"),
            ("Age", "date", ".metadata.creationTimestamp"),
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
            {"name": title, "type": type_, "jsonPath": path} for title, type_, path in kind.columns
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
