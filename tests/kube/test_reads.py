"""Reads: repeated when that may help, and asking for no more than is needed."""

import pytest

from assetlock.kube.errors import NotFound, ServerError, TransportError
from assetlock.kube.resources import LEASES, NAMESPACES

from .servers import answer, failure, in_turn, listing, serving

LEASE = {"metadata": {"name": "asset.vm", "resourceVersion": "7"}}


@pytest.mark.parametrize(
    "trouble", [failure(500), failure(502), failure(503), failure(504), failure(429), None]
)
async def test_a_read_that_ends_in_passing_trouble_is_repeated(connect, pauses, trouble):
    async with serving(in_turn(trouble, trouble, answer(LEASE))) as server:
        assert await connect(server).get(LEASES, "ns", "asset.vm") == LEASE
        assert len(pauses) == 2


async def test_a_read_waits_as_long_as_the_server_asks(connect, pauses):
    async with serving(in_turn(failure(503, Retry_After="9"), answer(LEASE))) as server:
        await connect(server).get(LEASES, "ns", "asset.vm")
        assert pauses == [9.0]


@pytest.mark.parametrize("asked", ["Wed, 21 Oct 2026 07:28:00 GMT", "-3", "nan", "", "inf"])
async def test_a_retry_after_that_is_no_number_of_seconds_counts_for_nothing(connect, pauses, asked):
    async with serving(in_turn(failure(503, Retry_After=asked), answer(LEASE))) as server:
        await connect(server).get(LEASES, "ns", "asset.vm")
        assert 0 < pauses[0] < 1


async def test_a_server_that_asks_for_an_hour_is_asked_again_after_half_a_minute(connect, pauses):
    async with serving(in_turn(failure(429, Retry_After="3600"), answer(LEASE))) as server:
        await connect(server).get(LEASES, "ns", "asset.vm")
        assert pauses == [30.0]


async def test_trouble_that_stays_ends_the_read(connect):
    async with serving(in_turn(*[failure(500, message="etcd is gone")] * 5)) as server:
        with pytest.raises(ServerError, match="etcd is gone"):
            await connect(server).get(LEASES, "ns", "asset.vm")
        assert len(server.requests) == 5


async def test_what_is_not_there_is_asked_for_once(connect):
    async with serving(in_turn(failure(404, "NotFound"))) as server:
        with pytest.raises(NotFound):
            await connect(server).get(LEASES, "ns", "asset.vm")
        assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"[]", b"null", b"{", b"\xff\xfe", b""])
async def test_an_answer_that_is_no_object_is_no_answer(connect, body):
    async with serving(in_turn(*[answer(body)] * 5)) as server:
        with pytest.raises(TransportError):
            await connect(server).get(LEASES, "ns", "asset.vm")


async def test_only_metadata_is_asked_for_when_no_more_is_needed(connect):
    async with serving(in_turn(answer(LEASE), listing("a"))) as server:
        api = connect(server)
        await api.get(LEASES, "ns", "asset.vm", metadata_only=True)
        await api.list(LEASES, "ns", metadata_only=True)
        accepts = [request.headers["accept"].split(",")[0] for request in server.requests]
        assert accepts == [
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ]


async def test_answers_are_not_compressed(connect):
    async with serving(in_turn(answer(LEASE))) as server:
        await connect(server).get(LEASES, "ns", "asset.vm")
        assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_a_server_on_an_ipv6_address_is_reached(connect):
    async with serving(in_turn(answer(LEASE)), host="::1") as server:
        assert await connect(server).get(LEASES, "ns", "asset.vm") == LEASE
        assert server.requests[0].headers["host"].startswith("[::1]:")


async def test_a_server_below_a_path_is_reached(connect):
    async with serving(in_turn(answer(LEASE))) as server:
        server.url += "/k8s/clusters/c-1"
        await connect(server).get(NAMESPACES, None, "ns")
        assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/namespaces/ns"


async def test_selectors_travel_as_they_were_written(connect):
    async with serving(in_turn(listing())) as server:
        await connect(server).list(LEASES, "ns", label_selector="a/b in (x, y),!c", field_selector="m.n=a+b")
        query = server.requests[0].query
        assert (query["labelSelector"], query["fieldSelector"]) == ("a/b in (x, y),!c", "m.n=a+b")
