"""What must never be while a maintenance window has closed an asset, looked at after every commit.

A window closes an asset for the controllers from when they can know of it: it has begun, and its last edit is known.
Of those that come again and again others judge.
"""

from assetlock.core import names
from tests.sim import records
from tests.sim.kinds import ASSETLOCKS, MAINTENANCE_WINDOWS
from tests.sim.store import Change, Json, Key, Store
from tests.sim.strictness import PROMPT, Strictness

HANDSHAKES = 4
"""From when a lock has the Lease to when it is told so, each as long as a controller may take to know of a change."""


class Closures:
    """Nobody is told that he holds what is closed, and a window that revokes leaves it to nobody."""

    def __init__(self, store: Store, strictness: Strictness) -> None:
        self._store = store
        self._strict = strictness
        self._edited: dict[str, float] = {}

    def __call__(self, change: Change) -> None:
        """Judge one commit."""
        if change.key.plural == MAINTENANCE_WINDOWS.plural and not change.subresource:
            self._edited[change.key.name] = change.time
        if not self._strict.in_order or not self._edited:
            return
        once = [one for one in self._store.objects(MAINTENANCE_WINDOWS) if "start" in one["spec"]]
        if sum(one["spec"]["kind"] == "Allow" for one in once) > 1:
            return  # Where one closes another may leave open.
        for window in once:
            since = closed_since(window["spec"], self._edited[window["metadata"]["name"]], change.time)
            if since is not None:
                self._judge_grant(change, window, change.time - since)
                self._judge_revocation(change, window, change.time - since)

    def _judge_grant(self, change: Change, window: Json, closed_for: float) -> None:
        lock = _granted(change)
        if lock is None or self._is_passed_by(window):
            return
        assets = records.assets_of(lock)
        in_time = closed_for <= HANDSHAKES * self._strict.patience * len(assets)
        closed = set(assets) & set(window["spec"]["assetNames"])
        assert in_time or not closed, (
            f"{change.key.name} was granted {sorted(closed)}, {_told(window, closed_for)}"
        )

    def _is_passed_by(self, window: Json) -> bool:
        """Whether somebody held an asset when the window began, so that the window's lock on it failed."""
        own = (
            lock
            for lock in self._store.objects(ASSETLOCKS)
            if lock["metadata"].get("labels", {}).get(names.WINDOW_LABEL) == window["metadata"]["name"]
        )
        failed = any(records.state_of(lock) == "Failed" for lock in own)
        return window["spec"]["whenHeld"] == "Skip" and failed

    def _judge_revocation(self, change: Change, window: Json, closed_for: float) -> None:
        in_time = closed_for <= PROMPT + HANDSHAKES * self._strict.patience
        if window["spec"]["whenHeld"] != "Revoke" or in_time:
            return
        for name in window["spec"]["assetNames"]:
            asset = self._store.get(Key(change.key.group, "assets", change.key.namespace, name))
            others = _others(asset.obj) if asset else []
            assert not others, f"{', '.join(others)} still held {name}, {_told(window, closed_for)}"


def closed_since(spec: Json, edited: float, now: float) -> float | None:
    """Since when a window closes its assets for those who know of its last edit; None while it does not."""
    start, end = (records.seconds(spec[edge]) for edge in ("start", "end"))
    if spec.get("suspend"):
        return None
    inside = start <= now < end
    if spec["kind"] == "Block":
        return max(start, edited) if inside else None
    if inside:
        return None
    return edited if now < start else max(end, edited)


def _granted(change: Change) -> Json | None:
    """The lock that this commit announces, but for those that maintain."""
    if change.key.plural != ASSETLOCKS.plural or not records.announces(change):
        return None
    return change.obj if change.obj["spec"].get("mode") != "Maintenance" else None


def _others(asset: Json) -> list[str]:
    """Who holds an asset and does not maintain it."""
    holders = asset.get("status", {}).get("holders", ())
    return [
        one["identity"]
        for one in holders
        if one["mode"] != "Maintenance" and not one["identity"].startswith("assetlock:")
    ]


def _told(window: Json, closed_for: float) -> str:
    return f"closed by {window['metadata']['name']} for {closed_for:.2f}s"
