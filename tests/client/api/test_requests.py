"""What reaches the wire, and what does not, when connections break."""

import asyncio
import contextlib

import pytest

from assetlock.client.api import AnswerLost, Api, ApiError, Config, NotFound, Unauthorized, Unreachable
from assetlock.client.api.credentials import TokenFile
from tests.kube.servers import END, STREAM, answer, chunk, event, failure, in_turn, serving

FOUND = {"metadata": {"name": "a"}}


@contextlib.asynccontextmanager
async def talking(*answers, timeout=20.0, **config):
    """A server that gives these answers, and an `Api` that talks to it."""
    async with serving(in_turn(*answers)) as server:
        api = Api(Config(server.url, **config), timeout=timeout)
        try:
            yield server, api
        finally:
            api.close()


async def test_one_connection_serves_one_request_after_the_other():
    async with talking(*[answer(FOUND)] * 3) as (server, api):
        for _ in range(3):
            await asyncio.to_thread(api.get, "/x")
        assert len({request.connection for request in server.requests}) == 1


@pytest.mark.parametrize("method", ["create", "patch"])
async def test_a_write_whose_answer_is_lost_is_never_sent_again(method):
    async with talking(answer(FOUND), None, answer(FOUND)) as (server, api):
        await asyncio.to_thread(api.get, "/x")
        with pytest.raises(AnswerLost, match="whether it was done is not known"):
            await asyncio.to_thread(getattr(api, method), "/x", {})
        assert len(server.requests) == 2


async def test_a_deletion_whose_answer_is_lost_is_never_sent_again():
    async with talking(answer(FOUND), None, answer(FOUND)) as (server, api):
        await asyncio.to_thread(api.get, "/x")
        with pytest.raises(AnswerLost):
            await asyncio.to_thread(api.delete, "/x", uid="u")
        assert server.methods() == ["GET", "DELETE"]
        assert server.requests[1].json()["preconditions"] == {"uid": "u"}


async def test_a_read_whose_kept_alive_connection_broke_is_sent_again():
    async with talking(answer(FOUND), None, answer(FOUND)) as (server, api):
        await asyncio.to_thread(api.get, "/x")
        assert await asyncio.to_thread(api.get, "/x") == FOUND
        assert server.methods() == ["GET", "GET", "GET"]


async def test_a_connection_that_the_server_has_closed_is_not_written_to():
    async with serving(in_turn(answer(FOUND), answer(FOUND)), idle_timeout=0.05) as server:
        api = Api(Config(server.url))
        await asyncio.to_thread(api.get, "/x")
        await server.idle.wait()
        await asyncio.to_thread(api.create, "/x", {})
        assert server.methods() == ["GET", "POST"]


async def test_an_answer_that_does_not_come_in_time_is_lost():
    async def silent(request, writer):
        await asyncio.sleep(60)

    async with serving(silent) as server:
        api = Api(Config(server.url), timeout=0.2)
        with pytest.raises(AnswerLost, match="no answer in time"):
            await asyncio.to_thread(api.create, "/x", {})
        with pytest.raises(Unreachable, match="no answer in time"):
            await asyncio.to_thread(api.get, "/x")


async def test_nobody_listening_is_unreachable_and_says_where():
    async with serving(in_turn()) as server:
        url = server.url
    with pytest.raises(Unreachable, match=url):
        await asyncio.to_thread(Api(Config(url)).create, "/x", {})


async def test_a_failure_carries_what_the_server_says():
    async with talking(failure(404, "NotFound", 'assets "x" not found')) as (_, api):
        with pytest.raises(NotFound, match='assets "x" not found') as raised:
            await asyncio.to_thread(api.get, "/x")
        assert (raised.value.status, raised.value.reason) == (404, "NotFound")


async def test_a_proxys_page_is_the_message_of_the_failure():
    async with talking(answer(b"<html>Bad gateway", 502)) as (_, api):
        with pytest.raises(ApiError, match="Bad gateway"):
            await asyncio.to_thread(api.create, "/x", {})


async def test_too_many_requests_are_sent_again_after_the_pause():
    async with talking(failure(429, Retry_After="0.01"), answer(FOUND)) as (server, api):
        assert await asyncio.to_thread(api.create, "/x", {}) == FOUND
        assert server.methods() == ["POST", "POST"]


async def test_a_locked_answer_says_when_to_come_back():
    async with talking(failure(423, "Locked", "held", Retry_After="30")) as (_, api):
        with pytest.raises(ApiError, match="held") as raised:
            await asyncio.to_thread(api.create, "/x", {})
        assert raised.value.retry_after_seconds == 30


async def test_a_rotated_token_is_used_at_once_when_the_old_one_is_refused(tmp_path):
    path = tmp_path / "token"
    path.write_text("old")
    config = {"credentials": TokenFile(path)}
    async with talking(answer(FOUND), failure(401), answer(FOUND), failure(401), **config) as (server, api):
        await asyncio.to_thread(api.get, "/x")
        path.write_text("new")
        await asyncio.to_thread(api.create, "/x", {})
        with pytest.raises(Unauthorized):
            await asyncio.to_thread(api.create, "/x", {})
        sent = [request.headers["authorization"] for request in server.requests]
        assert sent == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


async def test_a_list_comes_in_pages():
    page, last = {"metadata": {"continue": "more"}, "items": [1]}, {"metadata": {}, "items": [2]}
    async with talking(answer(page), answer(last)) as (server, api):
        pages = await asyncio.to_thread(lambda: list(api.list_pages("/x", {"labelSelector": "a=b"})))
        assert [page["items"] for page in pages] == [[1], [2]]
        assert server.requests[1].query == {"labelSelector": "a=b", "limit": "500", "continue": "more"}


async def test_a_watch_gives_events_until_it_ends():
    stream = STREAM + chunk(event("ADDED", "a")) + chunk(event("MODIFIED", "a")[:9])
    stream += chunk(event("MODIFIED", "a")[9:]) + END
    async with talking(stream) as (server, api):
        seen = await asyncio.to_thread(lambda: [kind for kind, _ in api.watch("/x", seconds=5)])
        assert seen == ["ADDED", "MODIFIED"]
        assert server.requests[0].query["timeoutSeconds"] == "5"


async def test_a_watch_that_hangs_ends_when_it_is_interrupted():
    async with talking(STREAM + chunk(event("ADDED"))) as (_, api):
        watch = await asyncio.to_thread(api.watch, "/x")
        events = iter(watch)
        assert (await asyncio.to_thread(next, events))[0] == "ADDED"
        reading = asyncio.create_task(asyncio.to_thread(lambda: list(events)))
        watch.interrupt()
        with contextlib.suppress(AnswerLost):
            assert await reading == []


async def test_a_proxy_is_asked_for_the_whole_url():
    async with talking(answer(FOUND)) as (server, _):
        through = Api(Config("http://api.example:8080/k8s", proxy=server.url))
        assert await asyncio.to_thread(through.get, "/x") == FOUND
        assert server.requests[0].target == "http://api.example:8080/k8s/x"
