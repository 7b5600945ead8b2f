"""When namespaces are labelled and guarded, one story at a time."""

from __future__ import annotations

import pytest

from assetlock.core import decision as d
from assetlock.core import names
from assetlock.core.decide import decide
from assetlock.core.fence.namespace_fence import GuardedTarget
from tests.core.world import NAMESPACE, Stale, World


@pytest.fixture
def world() -> World:
    world = World()
    world.make_namespace()
    world.make_asset("web", "settings")
    world.make_target("web", scales=True)
    world.make_target("settings")
    world.settle()
    return world


def kinds(writes: list[d.Write]) -> list[str]:
    return [type(write).__name__ for write in writes]


def test_a_namespace_is_labelled_once_when_there_is_an_asset_in_it(world: World) -> None:
    assert world.spaces[NAMESPACE]["metadata"]["labels"] == {names.GUARDED_LABEL: "true"}
    assert kinds(world.writes).count("PatchNamespace") == 1
    assert world.guard() is None


def test_subresources_are_closed_before_the_stamps_and_opened_after_them(world: World) -> None:
    world.ask("first", "alice")
    assert kinds(world.settle()) == [
        "CreateLease",
        "WriteAssetStatus",
        "PatchNamespace",
        "PatchTarget",
        "PatchTarget",
        "WriteLockStatus",
    ]
    guard = world.guard()
    assert guard is not None
    assert guard.targets == (GuardedTarget("deployments.apps", "web"),)
    assert [holder.identity.username for holder in guard.holders] == ["alice"]
    world.withdraw("first")
    assert kinds(world.settle()) == [
        "DeleteLease",
        "WriteAssetStatus",
        "PatchTarget",
        "PatchTarget",
        "PatchNamespace",
    ]
    assert world.guard() is None


def test_without_subresources_a_lock_writes_nothing_on_the_namespace() -> None:
    world = World()
    world.make_namespace()
    world.make_asset("settings")
    world.make_target("settings")
    world.settle()
    world.ask("first")
    assert "PatchNamespace" not in kinds(world.settle())


def test_a_target_made_anew_under_its_name_was_guarded_all_the_time(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    del world.targets["web"]
    assert "PatchNamespace" not in kinds(world.settle())
    world.make_target("web", scales=True)
    assert "PatchNamespace" not in kinds(world.settle())
    assert world.stamped_users("web") == ["alice"]


def test_what_can_not_be_looked_at_for_a_while_stays_closed(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    world.problems["web"] = "Deployment objects can't be watched"
    world.settle()
    guard = world.guard()
    assert guard is not None
    assert guard.targets == (GuardedTarget("deployments.apps", "web"),)


def test_a_guard_that_somebody_took_off_comes_back_while_the_lock_is_held(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    world.spaces[NAMESPACE]["metadata"] |= {"labels": {}, "annotations": {}}
    world._touch(world.spaces[NAMESPACE])
    decision = decide(world.observe())
    assert kinds(list(decision.writes)) == ["PatchNamespace"]
    assert decision.confirm, "the Lease is looked for first: who was announced had a guard"
    world.settle()
    assert world.guard() is not None


def test_a_guard_that_a_former_leader_left_behind_is_removed(world: World) -> None:
    key = names.namespace_fence_key("vm-1", NAMESPACE)
    world.spaces[NAMESPACE]["metadata"]["annotations"] = {key: "deployments.apps/web\n3 - alice"}
    world._touch(world.spaces[NAMESPACE])
    decision = decide(world.observe())
    assert kinds(list(decision.writes)) == ["PatchNamespace"]
    assert world.asset is not None
    assert decision.confirm == (d.ConfirmAsset(world.asset["metadata"]["resourceVersion"]),)
    world.settle()
    assert world.guard() is None


def test_the_next_token_is_higher_than_that_of_a_guard_left_behind(world: World) -> None:
    meta = world.spaces[NAMESPACE]["metadata"]
    meta["annotations"][names.namespace_fence_key("vm-1", NAMESPACE)] = "deployments.apps/web\n3 - alice"
    world._touch(world.spaces[NAMESPACE])
    world.ask("next", "bob")
    world.settle()
    assert world.locks["next"]["status"]["fencingToken"] == 4


def test_a_guard_never_goes_to_a_lower_token(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    meta = world.spaces[NAMESPACE]["metadata"]
    [key] = meta["annotations"]
    meta["annotations"][key] = "deployments.apps/web\n9 - bob"
    world._touch(world.spaces[NAMESPACE])
    assert world.asset is not None
    decision = decide(world.observe())
    assert kinds(decision.writes) == ["PatchNamespace"]
    assert d.ConfirmAsset(world.asset["metadata"]["resourceVersion"]) in decision.confirm, (
        "else another leader's"
    )


def test_what_is_no_assets_is_taken_off_a_namespace(world: World) -> None:
    malformed, planted = f"a{names.NAMESPACE_FENCE_SUFFIX}", names.namespace_fence_key("gone", "elsewhere")
    meta = world.spaces[NAMESPACE]["metadata"]
    meta["annotations"] |= {malformed: "deployments.apps/web\n9 - nobody"}
    world._touch(world.spaces[NAMESPACE])
    world.settle()
    assert malformed not in meta["annotations"]
    meta["labels"].clear()
    meta["annotations"] |= {planted: "deployments.apps/web\n9 - nobody"}
    world._touch(world.spaces[NAMESPACE])
    world.settle()
    assert planted not in meta["annotations"], "from before the namespace had the label"


def test_a_leader_that_wakes_up_does_not_put_a_former_holder_on_the_namespace(world: World) -> None:
    world.ask("first", "alice", wait="1h")
    while not isinstance(asleep := decide(world.observe()).writes[0], d.PatchNamespace):
        world.apply(asleep)
    world.withdraw("first")
    world.ask("second", "bob", wait="1h")
    world.settle()
    with pytest.raises(Stale):
        world.apply(asleep)
    guard = world.guard()
    assert guard is not None
    assert [holder.identity.username for holder in guard.holders] == ["bob"]


def test_a_namespace_that_can_not_be_guarded_is_not_locked_in(world: World) -> None:
    world.problems[f"namespace {NAMESPACE}"] = "namespace team-a can't be guarded: forbidden"
    world.ask("first")
    world.settle()
    assert world.state("first") == "Failed"
    assert "can't be guarded" in world.locks["first"]["status"]["conditions"][0]["message"]
    assert world.lease is None


def test_what_the_asset_closes_besides_stands_on_the_line_of_targets_that_have_it(world: World) -> None:
    assert world.asset is not None
    world.asset["spec"]["guardedSubresources"] = ["exec"]
    world.ask("first")
    world.settle()
    guard = world.guard()
    assert guard is not None
    assert guard.targets[0].closed == (), "a Deployment has no exec"
