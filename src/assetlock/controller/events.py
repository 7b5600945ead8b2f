"""Happenings as Kubernetes Events on the Asset or AssetLock that they are about."""

from __future__ import annotations

from assetlock.core import names
from assetlock.core.decision import Event
from assetlock.kube.recorder import EventRecorder


class EventPublisher:
    """Hands happenings to the recorder, which aggregates them and limits their rate."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def tell(self, namespace: str, happening: Event) -> None:
        """Publish one happening; never raises and never waits."""
        metadata = {"name": happening.name, "namespace": namespace, "uid": happening.uid}
        regarding = {"apiVersion": names.API_VERSION, "kind": happening.kind, "metadata": metadata}
        kind = "Warning" if happening.warning else "Normal"
        self._recorder.record(regarding, happening.reason, happening.note, type=kind)
