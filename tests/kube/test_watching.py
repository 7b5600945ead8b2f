"""Watches on a real socket: what breaks them, and what does not."""

import asyncio
import json

import pytest

from assetlock.kube.errors import ApiError, Forbidden, Gone, TransportError
from assetlock.kube.resources import LEASES

from .servers import END, STREAM, chunk, event, failure, in_turn, serving


def streaming(*chunks: bytes, end: bytes = END):
    return in_turn(STREAM + b"".join(map(chunk, chunks)) + end)


async def watched(api, **options):
    return [event async for event in api.watch(LEASES, "ns", resource_version="3", **options)]


async def test_changes_and_bookmarks_are_passed_on_until_the_server_ends_the_stream(connect):
    lines = [event("ADDED", "a", "4"), event("MODIFIED", "a", "5"), event("DELETED", "a", "6")]
    async with serving(streaming(*lines, event("BOOKMARK", "", "9"))) as server:
        events = await watched(connect(server))
        assert [(seen.type, seen.resource_version) for seen in events] == [
            ("ADDED", "4"),
            ("MODIFIED", "5"),
            ("DELETED", "6"),
            ("BOOKMARK", "9"),
        ]


async def test_a_watch_asks_for_bookmarks_and_ends_within_minutes(connect):
    async with serving(streaming()) as server:
        await watched(connect(server), label_selector="a=b")
        query = server.requests[0].query
        assert 240 <= int(query.pop("timeoutSeconds")) <= 480
        assert query == {
            "watch": "true",
            "resourceVersion": "3",
            "allowWatchBookmarks": "true",
            "labelSelector": "a=b",
        }


async def test_a_line_may_come_in_pieces_and_many_in_one(connect):
    data = event("ADDED", "a", "4") + event("ADDED", "ü", "5") + b"\n" + event("ADDED", "c", "6")
    async with serving(streaming(*(data[at : at + 7] for at in range(0, len(data), 7)))) as server:
        events = await watched(connect(server))
        assert [seen.object["metadata"]["name"] for seen in events] == ["a", "ü", "c"]


async def test_a_line_of_three_megabytes_is_an_event(connect):
    async with serving(streaming(event("ADDED", "a", "4", data="x" * 3_000_000))) as server:
        (seen,) = await watched(connect(server))
        assert len(seen.object["data"]) == 3_000_000


async def test_half_a_line_at_the_end_is_dropped(connect):
    async with serving(streaming(event("ADDED", "a", "4"), event("ADDED", "b", "5")[:-20])) as server:
        assert [seen.resource_version for seen in await watched(connect(server))] == ["4"]


async def test_a_type_of_event_that_is_not_known_is_passed_over(connect):
    async with serving(streaming(event("REWOUND", "a", "4"), event("ADDED", "b", "5"))) as server:
        assert [seen.type for seen in await watched(connect(server))] == ["ADDED"]


@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b"[]\n",
        b"null\n",
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b'{"type":1}\n',
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{}}\n',
    ],
)
async def test_a_line_that_is_no_event_breaks_the_watch(connect, line):
    async with serving(streaming(line)) as server:
        with pytest.raises(TransportError):
            await watched(connect(server))


def error_event(code):
    body = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}
    return json.dumps({"type": "ERROR", "object": body}).encode() + b"\n"


async def test_an_error_event_of_410_says_that_the_version_is_gone(connect):
    async with serving(streaming(event("ADDED", "a", "4"), error_event(410))) as server:
        with pytest.raises(Gone, match="too old"):
            await watched(connect(server))


@pytest.mark.parametrize("body", [{"code": 500}, {}, None, {"code": "410"}])
async def test_another_error_event_is_an_error_of_the_server(connect, body):
    line = json.dumps({"type": "ERROR", "object": body}).encode() + b"\n"
    async with serving(streaming(line)) as server:
        with pytest.raises(ApiError) as caught:
            await watched(connect(server))
        assert caught.value.status == 500


@pytest.mark.parametrize(("status", "error"), [(410, Gone), (403, Forbidden)])
async def test_a_watch_may_be_refused(connect, status, error):
    async with serving(in_turn(failure(status, message="no"))) as server:
        with pytest.raises(error, match="no"):
            await watched(connect(server))


async def test_a_connection_that_breaks_in_the_middle_is_an_error(connect):
    async def breaking(request, writer):
        writer.write(STREAM + chunk(event("ADDED", "a", "4")))
        await writer.drain()
        writer.close()

    async with serving(breaking) as server:
        with pytest.raises(TransportError, match="broke"):
            await watched(connect(server))


async def test_a_silent_watch_is_taken_for_dead(connect):
    async def silent(request, writer):
        writer.write(STREAM)
        await asyncio.Event().wait()

    async with serving(silent) as server:
        with pytest.raises(TransportError):
            await watched(connect(server), idle_timeout=0.3)


async def test_a_watch_that_is_left_early_gives_its_connection_back(connect):
    async def endless(request, writer):
        writer.write(STREAM)
        while True:
            writer.write(chunk(event("ADDED", "a", "4")))
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(endless) as server:
        events = connect(server).watch(LEASES, "ns", resource_version="3")
        await anext(events)
        await events.aclose()
        async with asyncio.timeout(5):
            await server.idle.wait()


async def test_watches_do_not_keep_requests_from_the_server(connect):
    async def handle(request, writer):
        if "watch" in request.query:
            writer.write(STREAM + chunk(event("ADDED", "a", "4")))
            await writer.drain()
            await asyncio.Event().wait()
        writer.write(failure(404))

    async with serving(handle) as server:
        api = connect(server)
        watches = [api.watch(LEASES, "ns", resource_version="3") for _ in range(80)]
        await asyncio.gather(*map(anext, watches))
        with pytest.raises(ApiError):
            await api.get(LEASES, "ns", "a")
        for watch in watches:
            await watch.aclose()
