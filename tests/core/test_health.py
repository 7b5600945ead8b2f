"""Tools that know nothing of locks tell what is ready, under way and broken: kstatus, and Argo CD by our checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lupa
import pytest
import yaml

from assetlock.core.status import window as window_status
from assetlock.core.status.window import WindowView
from assetlock.model.asset import Asset
from assetlock.model.schema import NOT_OBSERVED
from assetlock.model.window import MaintenanceWindow
from tests.core.kstatus import judged
from tests.core.test_maintenance import once
from tests.core.world import World

CHECKS = yaml.safe_load((Path(__file__).parents[2] / "docs/examples/argocd-cm.yaml").read_text())["data"]


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app")
    world.make_target("app")
    return world


def health(kind: str, resource: dict[str, Any]) -> str:
    """What Argo CD makes of it, by the check that the page tells to install."""
    lua = lupa.LuaRuntime()
    check = lua.execute(
        f"return function(obj) {CHECKS[f'resource.customizations.health.assetlock.dev_{kind}']} end"
    )
    answer = check(lua.table_from(resource, recursive=True))
    assert answer["message"]
    return str(answer["status"])


def asset(world: World) -> dict[str, Any]:
    world.settle()
    assert world.asset is not None
    return world.asset


def unfenceable(world: World) -> dict[str, Any]:
    world.problems["app"] = "no room for the stamp"
    return asset(world)


def repaired(world: World) -> dict[str, Any]:
    unfenceable(world)
    world.problems.clear()
    return asset(world)


def held(world: World) -> dict[str, Any]:
    world.ask("first", ttl="10m")
    world.settle()
    return world.locks["first"]


def locked(world: World) -> dict[str, Any]:
    held(world)
    return asset(world)


def pending(world: World) -> dict[str, Any]:
    held(world)
    world.ask("second", wait="1h")
    world.settle()
    return world.locks["second"]


def granted(world: World) -> dict[str, Any]:
    lock = pending(world)
    world.withdraw("first")
    world.settle()
    return lock


def failed(world: World) -> dict[str, Any]:
    held(world)
    world.ask("second")
    world.settle()
    return world.locks["second"]


def expired(world: World) -> dict[str, Any]:
    lock = held(world)
    world.pass_time(900)
    world.settle()
    return lock


def window(world: World, **spec: Any) -> dict[str, Any]:
    """A window's status, brought up to date twice: the second time nothing is left to write."""
    world.schedule("freeze", **{**once(0, 1), **spec})
    world.settle()
    assert world.asset is not None
    raw = world.windows["freeze"]
    shown = MaintenanceWindow.model_validate(raw)
    assets = [Asset.model_validate(world.asset)] if "vm-1" in raw["spec"]["assetNames"] else []
    body = window_status.body(WindowView(world.now, shown, assets, world.observe().locks))
    assert body is not None
    raw = {**raw, "status": body["status"]}
    again = WindowView(world.now, MaintenanceWindow.model_validate(raw), assets, world.observe().locks)
    assert window_status.body(again) is None
    return raw


def impossible(world: World) -> dict[str, Any]:
    return window(world, start=None, end=None, schedule="0 0 30 2 *", duration="1h")


@pytest.mark.parametrize(
    ("kind", "made", "kstatus", "argo"),
    [
        ("Asset", asset, "Current", "Healthy"),
        ("Asset", unfenceable, "Failed", "Degraded"),
        ("Asset", repaired, "Current", "Healthy"),
        ("Asset", locked, "Current", "Suspended"),
        ("AssetLock", held, "Current", "Healthy"),
        ("AssetLock", pending, "InProgress", "Progressing"),
        ("AssetLock", granted, "Current", "Healthy"),
        ("AssetLock", failed, "Failed", "Degraded"),
        ("AssetLock", expired, "Current", "Healthy"),
        ("MaintenanceWindow", window, "Current", "Healthy"),
        ("MaintenanceWindow", lambda world: window(world, suspend=True), "Current", "Suspended"),
        ("MaintenanceWindow", lambda world: window(world, assetNames=["vm-9"]), "InProgress", "Progressing"),
        ("MaintenanceWindow", impossible, "Failed", "Degraded"),
    ],
)
def test_tools_tell_ready_from_under_way_from_broken(
    world: World, kind: str, made: Callable[[World], dict[str, Any]], kstatus: str, argo: str
) -> None:
    resource = made(world)
    assert (judged(resource), health(kind, resource)) == (kstatus, argo)


@pytest.mark.parametrize(
    ("kind", "made"), [("Asset", asset), ("AssetLock", held), ("MaintenanceWindow", window)]
)
def test_a_change_that_the_operator_has_not_seen_is_under_way(
    world: World, kind: str, made: Callable[[World], dict[str, Any]]
) -> None:
    resource = copy.deepcopy(made(world))
    resource["metadata"]["generation"] += 1
    assert (judged(resource), health(kind, resource)) == ("InProgress", "Progressing")


@pytest.mark.parametrize("kind", ["Asset", "AssetLock", "MaintenanceWindow"])
def test_what_nobody_has_looked_at_is_under_way(kind: str) -> None:
    created = {"metadata": {"generation": 1}, "status": dict(NOT_OBSERVED)}
    assert (judged(created), health(kind, created)) == ("InProgress", "Progressing")


@pytest.mark.parametrize(
    ("kind", "said"), [("Block", "its assets stay closed"), ("Allow", "no asset is ever closed")]
)
def test_a_window_that_never_ends_says_so(world: World, kind: str, said: str) -> None:
    raw = window(world, start=None, end=None, schedule="0 8-20 * * *", duration="12h", kind=kind)
    ready = next(c for c in raw["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "NeverCloses")
    assert ready["message"] == f"12h last until '0 8-20 * * *' comes again, so it never ends and {said}"
