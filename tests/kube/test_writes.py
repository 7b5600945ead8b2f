"""What the client does to the wire when it writes."""

import asyncio

import pytest

from assetlock.kube.api import Api
from assetlock.kube.errors import (
    AlreadyExists,
    Conflict,
    FieldsDropped,
    Forbidden,
    Invalid,
    Locked,
    OutcomeUnknown,
    TooManyRequests,
    Unreachable,
)
from assetlock.kube.resources import ASSETS, LEASES, NAMESPACES

from .servers import answer, failure, in_turn, serving

ASSET = {
    "metadata": {"name": "vm", "namespace": "ns", "resourceVersion": "7"},
    "status": {"fencingToken": 1, "fencedPlaces": [{"apiVersion": "v1", "kind": "ConfigMap"}], "queue": []},
}
LEASE = {"metadata": {"name": "asset.vm", "namespace": "ns", "resourceVersion": "7"}}


async def replace(api: Api) -> None:
    await api.replace(LEASES, "ns", "asset.vm", LEASE)


async def merge_patch(api: Api) -> None:
    await api.merge_patch(LEASES, "ns", "asset.vm", LEASE)


async def create(api: Api) -> None:
    await api.create(LEASES, "ns", LEASE)


async def delete(api: Api) -> None:
    await api.delete(LEASES, "ns", "asset.vm", uid="u", resource_version="7")


async def replace_status(api: Api) -> None:
    await api.replace_status(LEASES, "ns", "asset.vm", {**LEASE, "status": {}})


async def apply(api: Api) -> None:
    await api.apply(LEASES, "ns", LEASE)


WRITES = pytest.mark.parametrize("write", [create, replace, replace_status, merge_patch, delete, apply])


@WRITES
async def test_a_write_whose_answer_is_dropped_on_a_kept_connection_reaches_the_server_once(connect, write):
    async with serving(in_turn(answer(LEASE), None, answer(LEASE))) as server:
        api = connect(server)
        await api.get(LEASES, "ns", "asset.vm")
        with pytest.raises(OutcomeUnknown, match="not known"):
            await write(api)
        assert len(server.requests) == 2
        assert server.requests[0].connection == server.requests[1].connection


@WRITES
@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_write_that_the_server_failed_at_is_not_repeated(connect, write, status):
    async with serving(in_turn(failure(status, "InternalError", "etcd"))) as server:
        with pytest.raises(OutcomeUnknown) as caught:
            await write(connect(server))
        assert caught.value.status == status
        assert len(server.requests) == 1


@WRITES
async def test_a_write_is_repeated_when_the_server_says_that_it_was_too_busy_to_look(connect, pauses, write):
    async with serving(in_turn(failure(429, Retry_After="7"), answer(LEASE))) as server:
        await write(connect(server))
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body
        assert pauses == [7.0]


async def test_a_server_that_stays_too_busy_is_given_up_after_five_tries(connect, pauses):
    async with serving(in_turn(*[failure(429)] * 5)) as server:
        with pytest.raises(TooManyRequests):
            await create(connect(server))
        assert len(pauses) == 4
        assert pauses == sorted(pauses)


async def test_a_write_that_is_not_answered_in_time_may_have_been_done(connect):
    async def never(request, writer):
        await asyncio.Event().wait()

    async with serving(never) as server:
        with pytest.raises(OutcomeUnknown, match="the time is up"):
            await replace(connect(server, timeout=0.2))
        assert server.methods() == ["PUT"]


async def test_a_write_that_never_left_says_so(connect):
    async with serving(in_turn()) as server:
        pass
    with pytest.raises(Unreachable, match="can't reach"):
        await create(connect(server))


async def test_an_answer_that_is_no_json_leaves_the_outcome_open(connect):
    async with serving(in_turn(answer(b"<html>a portal</html>"))) as server:
        with pytest.raises(OutcomeUnknown):
            await replace(connect(server))


async def test_half_an_answer_leaves_the_outcome_open(connect):
    async def half(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        writer.close()

    async with serving(half) as server:
        with pytest.raises(OutcomeUnknown):
            await replace(connect(server))
        assert len(server.requests) == 1


async def test_a_redirect_is_not_followed(connect):
    async with serving(in_turn(answer({}, 307, Location="/elsewhere"))) as server:
        with pytest.raises(Exception, match="307"):
            await replace(connect(server))
        assert len(server.requests) == 1


async def test_a_connection_that_the_server_closed_when_idle_costs_no_write(connect):
    async with serving(in_turn(*[answer(LEASE)] * 3), idle_timeout=1.0) as server:
        api, other = connect(server), connect(server)
        await replace(api)
        await server.idle.wait()
        await other.get(LEASES, "ns", "so that the loop has seen what the sockets brought")
        await replace(api)
        assert server.methods() == ["PUT", "GET", "PUT"]


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (403, "Forbidden", Forbidden),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (422, "Invalid", Invalid),
        (423, "Locked", Locked),
    ],
)
async def test_a_refusal_is_an_error_of_its_own_with_the_words_of_the_server(connect, status, reason, error):
    async with serving(
        in_turn(failure(status, reason, "held by ann until noon", Retry_After="60"))
    ) as server:
        with pytest.raises(error, match="held by ann until noon") as caught:
            await replace(connect(server))
        assert (caught.value.status, caught.value.reason, caught.value.retry_after) == (status, reason, 60.0)


@pytest.mark.parametrize("body", [{}, {"metadata": {}}, {"metadata": {"resourceVersion": ""}}])
async def test_a_write_without_the_version_it_was_decided_on_is_never_sent(connect, body):
    async with serving(in_turn()) as server:
        api = connect(server)
        with pytest.raises(ValueError, match="resourceVersion"):
            await api.replace(LEASES, "ns", "asset.vm", body)
        with pytest.raises(ValueError, match="resourceVersion"):
            await api.merge_patch(LEASES, "ns", "asset.vm", body)
        with pytest.raises(ValueError, match="resourceVersion"):
            await api.delete(LEASES, "ns", "asset.vm", uid="u", resource_version="")
        with pytest.raises(ValueError, match="uid"):
            await api.delete(LEASES, "ns", "asset.vm", uid="", resource_version="7")
        assert not server.requests


async def test_an_object_known_by_its_metadata_only_does_not_replace_the_whole_one(connect):
    async with serving(in_turn()) as server:
        with pytest.raises(ValueError, match="only the metadata"):
            await connect(server).replace(LEASES, "ns", "x", {**LEASE, "kind": "PartialObjectMetadata"})


async def test_a_delete_names_the_very_object_and_version(connect):
    async with serving(in_turn(answer({"kind": "Status"}))) as server:
        await delete(connect(server))
        assert server.requests[0].json()["preconditions"] == {"uid": "u", "resourceVersion": "7"}


async def test_a_dry_run_says_so(connect):
    async with serving(in_turn(answer(LEASE), answer(LEASE))) as server:
        api = connect(server)
        await api.merge_patch(LEASES, "ns", "asset.vm", LEASE, subresource="status", dry_run=True)
        await api.delete(LEASES, "ns", "asset.vm", uid="u", resource_version="7", dry_run=True)
        assert [request.query.get("dryRun") for request in server.requests] == ["All", "All"]
        assert server.requests[0].path.endswith("/leases/asset.vm/status")


async def test_an_odd_name_can_not_reach_another_path(connect):
    async with serving(in_turn(answer({"metadata": {}}))) as server:
        api = connect(server)
        await api.get(LEASES, "ns", "x?y=z#")
        assert server.requests[0].path.endswith("/leases/x%3Fy%3Dz%23")
        for name in ("..", "../x", "x/status", "x%2Fstatus"):
            with pytest.raises(ValueError, match="part of an API path"):
                await api.get(NAMESPACES, None, name)


async def test_a_status_that_an_older_definition_cuts_short_is_an_error_that_says_what_to_do(connect):
    stored = {**ASSET, "status": {"fencingToken": 1}}
    async with serving(in_turn(answer(stored))) as server:
        with pytest.raises(FieldsDropped, match=r"without status\.fencedPlaces.* apply those of its version"):
            await connect(server).replace_status(ASSETS, "ns", "vm", ASSET)
