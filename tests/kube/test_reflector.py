"""The reflector against a server that breaks in every way it can."""

import asyncio
import contextlib
import json

import pytest

from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import LEASES

from .servers import END, STREAM, chunk, event, failure, listing, serving


class Picture:
    """What a listener makes of the calls it gets, and a way to wait for it."""

    def __init__(self):
        self.lists = []
        self.events = []
        self.changed = asyncio.Event()

    def replace(self, items, version):
        self.lists.append(([item["metadata"]["name"] for item in items], version))
        self.changed.set()

    def event(self, kind, changed):
        self.events.append((kind, changed["metadata"]["name"]))
        self.changed.set()

    async def until(self, condition):
        async with asyncio.timeout(10):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class Script:
    """Lists and watches, each answered in turn; the last watch stays open."""

    def __init__(self, lists, watches):
        self.lists = iter(lists)
        self.watches = iter(watches)

    async def __call__(self, request, writer):
        if "watch" not in request.query:
            writer.write(next(self.lists))
            return
        reply = next(self.watches, None)
        if reply is None:
            writer.write(STREAM)
            await writer.drain()
            await asyncio.Event().wait()
        writer.write(reply)
        if not reply.endswith(END) and b"Content-Length" not in reply:
            writer.close()


def stream(*lines, end=END):
    return STREAM + b"".join(map(chunk, lines)) + end


BROKEN = b""


@pytest.fixture
async def start(connect):
    """Starts a reflector whose pauses take no time."""
    async with contextlib.AsyncExitStack() as stack:

        def started(server, picture, **options):
            reflector = Reflector(
                connect(server),
                LEASES,
                "ns",
                on_replace=picture.replace,
                on_event=picture.event,
                sleep=lambda seconds: asyncio.sleep(0),
                **options,
            )
            task = asyncio.create_task(reflector.run())

            async def stop():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

            stack.push_async_callback(stop)
            return reflector

        yield started


def versions(server):
    """From which version each watch began; a list is a dash."""
    return [request.query.get("resourceVersion", "-") for request in server.requests]


async def test_it_lists_and_then_watches_from_the_version_of_the_list(start):
    picture = Picture()
    script = Script([listing("a", version="5")], [stream(event("ADDED", "b", "6"))])
    async with serving(script) as server:
        reflector = start(server, picture)
        await picture.until(lambda: picture.events)
        assert picture.lists == [(["a"], "5")]
        assert picture.events == [("ADDED", "b")]
        assert versions(server)[:2] == ["-", "5"]
        assert reflector.synced.is_set()


async def test_a_watch_that_ends_goes_on_from_the_last_event_or_bookmark(start):
    picture = Picture()
    watches = [
        stream(event("ADDED", "b", "6")),
        stream(event("BOOKMARK", "", "9"), end=BROKEN),
        stream(event("ADDED", "c", "11")),
    ]
    async with serving(Script([listing(version="5")], watches)) as server:
        start(server, picture)
        await picture.until(lambda: ("ADDED", "c") in picture.events)
        assert versions(server)[:4] == ["-", "5", "6", "9"]
        assert picture.events == [("ADDED", "b"), ("ADDED", "c")]


GONE = json.dumps({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}).encode() + b"\n"


@pytest.mark.parametrize("gone", [stream(GONE), failure(410, "Gone")])
async def test_a_version_that_is_gone_is_listed_anew(start, gone):
    picture = Picture()
    lists = [listing("a", version="5"), listing("b", version="20")]
    async with serving(Script(lists, [gone])) as server:
        start(server, picture)
        await picture.until(lambda: len(picture.lists) == 2)
        assert picture.lists[1] == (["b"], "20")


@pytest.mark.parametrize(
    "trouble",
    [
        stream(b'{"type":"ADDED","obj\n'),
        stream(b"\x00\xff\n"),
        stream(b"[" * 100_000 + b"\n"),
        stream(b'{"type":"SURPRISE","object":{}}\n'),
        stream(event("ADDED", "half", "6")[:-9]),
        stream(event("ADDED", "half", "6")[:-9], end=BROKEN),
        BROKEN,
        failure(500),
        failure(403, "Forbidden"),
    ],
)
async def test_nothing_that_a_server_sends_ends_it(start, trouble):
    picture = Picture()
    script = Script(
        [listing(version="5"), listing(version="5")], [trouble, stream(event("ADDED", "after", "7"))]
    )
    async with serving(script) as server:
        start(server, picture)
        await picture.until(lambda: ("ADDED", "after") in picture.events)


async def test_a_list_that_fails_for_long_is_tried_again(start):
    picture = Picture()
    async with serving(Script([failure(403)] * 3 + [listing("a")], [])) as server:
        start(server, picture)
        await picture.until(lambda: picture.lists)
        assert len(picture.lists) == 1


async def test_one_object_that_the_listener_can_not_take_keeps_no_other_from_it(start):
    class Picky(Picture):
        def event(self, kind, changed):
            if changed["metadata"]["name"] == "poison":
                raise KeyError("spec")
            super().event(kind, changed)

    picture = Picky()
    watches = [stream(event("ADDED", "poison", "6"), event("ADDED", "good", "7"))]
    async with serving(Script([listing(version="5")], watches)) as server:
        start(server, picture)
        await picture.until(lambda: picture.events)
        assert picture.events == [("ADDED", "good")]


async def test_a_listener_that_can_not_take_the_list_gets_it_again(start):
    class Hesitant(Picture):
        def replace(self, items, version):
            super().replace(items, version)
            if len(self.lists) == 1:
                raise KeyError("spec")

    picture = Hesitant()
    async with serving(Script([listing("a"), listing("a")], [])) as server:
        reflector = start(server, picture)
        await picture.until(lambda: len(picture.lists) == 2)
        assert reflector.synced.is_set()


async def test_a_watch_that_stays_silent_is_replaced_by_a_new_list(start):
    picture = Picture()
    async with serving(Script([listing(version="5"), listing("b", version="3")], [])) as server:
        start(server, picture, idle_timeout=0.3)
        await picture.until(lambda: len(picture.lists) == 2)
        assert picture.lists[1] == (["b"], "3")


async def test_it_tells_when_it_last_heard_of_the_server(start):
    picture = Picture()
    times = iter(range(1000))
    watches = [stream(event("ADDED", "b", "6"))]
    async with serving(Script([listing(version="5")], watches)) as server:
        reflector = start(server, picture, clock=lambda: float(next(times)))
        assert reflector.last_activity is None
        await picture.until(lambda: picture.lists)
        at_list = reflector.last_activity
        await picture.until(lambda: picture.events)
        assert reflector.last_activity > at_list


async def test_cancelling_it_closes_its_watch(connect):
    picture = Picture()
    watch_is_open = asyncio.Event()

    async def handle(request, writer):
        if "watch" not in request.query:
            writer.write(listing())
            return
        writer.write(STREAM)
        while True:
            writer.write(chunk(event("BOOKMARK", "", "6")))
            await writer.drain()
            watch_is_open.set()
            await asyncio.sleep(0.01)

    async with serving(handle) as server:
        api = connect(server)
        reflector = Reflector(api, LEASES, "ns", on_replace=picture.replace, on_event=picture.event)
        task = asyncio.create_task(reflector.run())
        await watch_is_open.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await api.close()
        async with asyncio.timeout(5):
            await server.idle.wait()
