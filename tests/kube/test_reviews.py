"""What is asked in a review, and how its answer is read."""

import pytest

from assetlock.kube.errors import ServerError
from assetlock.kube.reviews import Action, UserInfo, authenticate, may

from .servers import answer, failure, in_turn, serving

ANN = UserInfo("ann", "7", ("devs",), {"a/b": ("x",)})
LOCK = Action("lock", "assetlock.dev", "assets", "ns", "vm")


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": False}, False),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": "true"}, False),
        ({}, False),
        (None, False),
    ],
)
async def test_only_a_plain_yes_is_a_yes(connect, status, allowed):
    async with serving(in_turn(answer({"status": status}, 201))) as server:
        assert (await may(connect(server), ANN, LOCK)).allowed is allowed


async def test_everything_that_is_known_of_the_requester_is_told(connect):
    async with serving(in_turn(answer({"status": {"allowed": True}}, 201))) as server:
        await may(connect(server), ANN, LOCK)
        spec = server.requests[0].json()["spec"]
        assert (spec["user"], spec["uid"], spec["groups"], spec["extra"]) == (
            "ann",
            "7",
            ["devs"],
            {"a/b": ["x"]},
        )
        assert spec["resourceAttributes"]["verb"] == "lock"


async def test_a_server_that_can_not_say_is_no_no(connect):
    async with serving(in_turn(*[failure(503)] * 5)) as server:
        with pytest.raises(ServerError):
            await may(connect(server), ANN, LOCK)


async def test_a_token_tells_its_owner_and_the_pod_it_is_bound_to(connect):
    user = {
        "username": "system:serviceaccount:ns:job",
        "extra": {
            "authentication.kubernetes.io/pod-name": ["job-x"],
            "authentication.kubernetes.io/pod-uid": ["p-1"],
        },
    }
    async with serving(in_turn(answer({"status": {"authenticated": True, "user": user}}, 201))) as server:
        found = await authenticate(connect(server), "t")
        assert (found.username, found.pod_name, found.pod_uid) == (user["username"], "job-x", "p-1")


@pytest.mark.parametrize(
    "status", [{"authenticated": False, "error": "expired"}, {"authenticated": True}, {}]
)
async def test_a_token_that_the_server_does_not_know_is_nobodys(connect, status):
    async with serving(in_turn(answer({"status": status}, 201))) as server:
        assert await authenticate(connect(server), "t", ["assetlock"]) is None
        assert server.requests[0].json()["spec"] == {"token": "t", "audiences": ["assetlock"]}
