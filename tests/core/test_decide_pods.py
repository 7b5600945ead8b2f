"""What becomes of locks whose pods end, or can't be reached."""

from __future__ import annotations

from typing import Any

import pytest

from assetlock.core import decision as d
from assetlock.core import names
from assetlock.core.decide import decide
from assetlock.core.pods import Fate, PodRef
from tests.core.world import NAMESPACE, World

GONE = Fate(ended="pod first is gone")
LOST = Fate(doubt=("NodeUnreachable", "node n-1 of pod first is unreachable"))


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app")
    world.make_target("app")
    world.settle()
    return world


def condition(world: World, name: str, kind: str) -> dict[str, Any]:
    conditions = world.locks[name]["status"]["conditions"]
    found: dict[str, Any] = next(c for c in conditions if c["type"] == kind)
    return found


def test_a_bound_lock_ends_with_its_pod_says_why_and_the_next_one_gets_it(world: World) -> None:
    pod = world.ask_from_pod("first", bindTo="Pod", ttl="1h")
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.pods[pod] = GONE
    world.settle()
    assert world.state("first") == "Released"
    ended = condition(world, "first", "Finished")
    assert (ended["reason"], ended["message"]) == ("HolderGone", "pod first is gone")
    assert world.state("second") == "Held"


FAILED = Fate("pod first has failed (OOMKilled)", failed=True)


@pytest.mark.parametrize("fate", [GONE, FAILED])
@pytest.mark.parametrize("by_hand", [False, True])
def test_the_assets_delay_follows_a_pod_that_failed_and_no_other(
    world: World, fate: Fate, by_hand: bool
) -> None:
    assert world.asset is not None
    world.asset["spec"]["lockDelay"] = "5m"
    if by_hand:
        world.hand_make("job", seconds=3600)
        assert world.lease is not None
        owner = f"pod-1 system:serviceaccount:{NAMESPACE}:job"
        world.lease["metadata"]["annotations"] |= {
            names.OWNER_ANNOTATION: owner,
            names.POD_ANNOTATION: "first",
        }
        pod = "pod-1"
    else:
        pod = world.ask_from_pod("first", bindTo="Pod", ttl="1h")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.pods[pod] = fate
    world.settle()
    assert by_hand or world.state("first") == "Released"
    assert world.state("second") == ("Pending" if fate.failed else "Held")
    assert world.stamped_users("app") == ["assetlock:lock-delay" if fate.failed else "bob"]
    world.pass_time(302)
    world.settle()
    assert world.state("second") == "Held"


@pytest.mark.parametrize(("fate", "state"), [(GONE, "Released"), (FAILED, "Quarantined")])
def test_a_lock_that_is_to_be_looked_at_is_quarantined_when_its_pod_has_failed(
    world: World, fate: Fate, state: str
) -> None:
    pod = world.ask_from_pod("first", bindTo="Pod", onExpiry="Quarantine")
    world.settle()
    world.pods[pod] = fate
    world.settle()
    assert world.state("first") == state
    assert world.stamped_users("app") == (["assetlock:quarantine"] if fate.failed else [])


def test_no_lock_ends_with_its_pod_before_that_was_looked_for_live(world: World) -> None:
    pod = world.ask_from_pod("first", bindTo="Pod")
    world.settle()
    world.pods[pod] = GONE
    assert decide(world.observe()).confirm == (d.ConfirmPod(PodRef(NAMESPACE, "first", pod), ended=True),)


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ({"bindTo": "User"}, "Held"),
        ({"bindTo": "User", "releaseWithHolder": True}, "Released"),
        ({"bindTo": "Pod", "releaseWithHolder": False}, "Held"),
    ],
)
def test_whether_a_lock_ends_with_its_pod_can_be_said(world: World, spec: dict[str, Any], state: str) -> None:
    pod = world.ask_from_pod("first", **spec)
    world.settle()
    world.pods[pod] = GONE
    world.settle()
    assert world.state("first") == state


def test_a_lock_whose_pod_can_not_be_reached_waits_for_its_ttl_and_says_so(world: World) -> None:
    pod = world.ask_from_pod("first", bindTo="Pod", ttl="1m")
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.pods[pod] = LOST
    world.settle()
    alive = condition(world, "first", "HolderAlive")
    assert (alive["status"], alive["reason"]) == ("Unknown", "NodeUnreachable")
    assert "node n-1 of pod first is unreachable" in alive["message"]
    assert "2026-03-28T12:01:00Z" in alive["message"]
    assert world.asset is not None
    assert "unreachable" in world.asset["status"]["holders"][0]["doubt"]
    world.pass_time(61)
    world.settle()
    assert (world.state("first"), world.state("second")) == ("Expired", "Held")


def test_a_pod_that_can_be_reached_again_is_no_longer_in_doubt(world: World) -> None:
    pod = world.ask_from_pod("first", bindTo="Pod")
    world.settle()
    world.pods[pod] = LOST
    world.settle()
    del world.pods[pod]
    world.settle()
    assert condition(world, "first", "HolderAlive")["status"] == "True"
    assert world.asset is not None
    assert "doubt" not in world.asset["status"]["holders"][0]


def test_who_waits_behind_a_pod_that_can_not_be_reached_is_told_why(world: World) -> None:
    pod = world.ask_from_pod("first", bindTo="Pod")
    world.settle()
    world.pods[pod] = LOST
    world.ask("second", "bob")
    world.settle()
    assert "node n-1 of pod first is unreachable" in condition(world, "second", "Settled")["message"]


@pytest.mark.parametrize("bind_to", ["User", "Pod"])
def test_a_waiter_whose_pod_is_gone_is_never_granted(world: World, bind_to: str) -> None:
    world.ask("holder")
    world.settle()
    pod = world.ask_from_pod("first", wait="1h", bindTo=bind_to)
    world.settle()
    world.pods[pod] = GONE
    world.withdraw("holder")
    world.settle()
    assert world.state("first") == "Failed"
    assert condition(world, "first", "Settled")["reason"] == "HolderGone"
    assert world.lease is None


def test_a_waiter_that_others_wait_for_stays_in_line_without_its_pod(world: World) -> None:
    world.ask("holder")
    world.settle()
    pod = world.ask_from_pod("first", wait="1h", releaseWithHolder=False)
    world.pods[pod] = GONE
    world.settle()
    assert world.state("first") == "Pending"
    world.withdraw("holder")
    world.settle()
    assert world.state("first") == "Held"


def test_no_waiter_in_a_pod_is_granted_before_its_pod_was_looked_for_live(world: World) -> None:
    pod = world.ask_from_pod("first")
    assert decide(world.observe()).confirm == (d.ConfirmPod(PodRef(NAMESPACE, "first", pod), ended=False),)


def test_a_lock_whose_pod_ends_before_it_is_announced_is_never_held(world: World) -> None:
    pod = world.ask_from_pod("first")
    [claim] = decide(world.observe()).writes
    world.apply(claim)
    world.pods[pod] = GONE
    world.settle()
    assert world.state("first") == "Failed"
    assert world.lease is None


def test_a_lease_that_is_bound_to_a_pod_ends_with_it_and_that_is_told(world: World) -> None:
    user = f"system:serviceaccount:{NAMESPACE}:job"
    world.hand_make(user)
    assert world.lease is not None
    world.lease["metadata"]["annotations"] |= {
        "assetlock.dev/owner": f"p-1 {user}",
        "assetlock.dev/pod": "first",
    }
    world.settle()
    world.pods["p-1"] = GONE
    decision = decide(world.observe())
    assert decision.confirm == (d.ConfirmPod(PodRef(NAMESPACE, "first", "p-1"), ended=True),)
    [free] = decision.writes
    assert [(told.reason, told.note) for told in free.events] == [
        ("HolderGone", f"the Lease of {user} was released: pod first is gone")
    ]
    world.settle()
    assert world.lease is None
    assert world.stamped_users("app") == []
