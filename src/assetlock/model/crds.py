"""The CustomResourceDefinitions, made from the models: names, columns, selectors, schema."""

from __future__ import annotations

import dataclasses
from typing import Any

from pydantic import BaseModel

from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.schema import structural_schema

GROUP, VERSION = "assetlock.dev", "v1alpha1"


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """What the schema does not say about a kind."""

    model: type[BaseModel]
    plural: str
    short: str
    columns: tuple[tuple[str, str, str], ...]
    selectable: tuple[str, ...]
    root_rules: tuple[tuple[str, str], ...] = ()


KINDS = (
    Kind(
        Asset,
        "assets",
        "ast",
        columns=(
            ("Type", "string", ".spec.type"),
            ("Lock", "string", ".status.lockState"),
            ("Holder", "string", ".status.holders[*].identity"),
            ("Until", "string", ".status.holders[*].expireTime"),
            ("Queue", "integer", ".status.queueLength"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
        selectable=(".spec.type", ".status.lockState"),
        root_rules=(
            (
                "size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "an asset's name is a DNS label (lower case letters, digits and '-', at most 63 characters): "
                "it stands in label values and in the names of Leases",
            ),
        ),
    ),
    Kind(
        AssetLock,
        "assetlocks",
        "alk",
        columns=(
            ("Asset", "string", ".spec.assetName"),
            ("State", "string", ".status.state"),
            ("Holder", "string", ".spec.holder.username"),
            ("Position", "integer", ".status.queuePosition"),
            ("Until", "string", ".status.expireTime"),
            ("Token", "integer", ".status.fencingToken"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
        selectable=(".spec.assetName", ".status.state"),
    ),
)


def definition(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    name = kind.model.__name__
    schema = structural_schema(kind.model)
    if kind.root_rules:
        schema["x-kubernetes-validations"] = [
            {"rule": rule, "message": message} for rule, message in kind.root_rules
        ]
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": title, "type": type_, "jsonPath": path} for title, type_, path in kind.columns
        ],
        "selectableFields": [{"jsonPath": path} for path in kind.selectable],
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": kind.plural,
                "singular": name.lower(),
                "shortNames": [kind.short],
                "categories": ["assetlock"],
            },
            "versions": [version],
        },
    }
