"""The rules of kstatus for resources that it does not know, by which Flux, kpt and others judge any object."""

from __future__ import annotations

from typing import Any


def judged(resource: dict[str, Any]) -> str:
    """``Terminating``, ``InProgress``, ``Failed`` or ``Current``."""
    meta, status = resource["metadata"], resource.get("status", {})
    if meta.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != meta.get("generation"):
        return "InProgress"
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"
