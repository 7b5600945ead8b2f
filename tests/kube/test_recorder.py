"""Events: told once, counted after that, and never in anybody's way."""

import asyncio
import contextlib

import pytest

from assetlock.kube.recorder import EventRecorder

from .servers import answer, failure, serving

ASSET = {
    "apiVersion": "assetlock.dev/v1alpha1",
    "kind": "Asset",
    "metadata": {"name": "vm", "namespace": "ns", "uid": "u-1", "resourceVersion": "3"},
}


class Events:
    """An API server that keeps Events, or refuses as it is told."""

    def __init__(self):
        self.created = []
        self.patches = []
        self.refusals = []

    async def __call__(self, request, writer):
        if self.refusals:
            writer.write(self.refusals.pop(0))
        elif request.method == "POST":
            self.created.append(request.json())
            metadata = {**request.json()["metadata"], "resourceVersion": str(len(self.created))}
            writer.write(answer({**request.json(), "metadata": metadata}, 201))
        else:
            self.patches.append(request.json())
            name = request.path.rpartition("/")[2]
            writer.write(answer({"metadata": {"name": name, "namespace": "ns", "resourceVersion": "99"}}))


@pytest.fixture
def events():
    return Events()


@pytest.fixture
async def start(connect, events):
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(events))

        def started(**options):
            recorder = EventRecorder(connect(server), "host-1", **options)
            task = asyncio.create_task(recorder.run())

            async def stop():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

            stack.push_async_callback(stop)
            return recorder

        yield started


async def test_news_become_an_event_about_the_object(start, events):
    recorder = start()
    recorder.record(ASSET, "Locked", "Locked by ann.", action="Grant")
    await recorder.drain()
    (event,) = events.created
    assert event["regarding"]["uid"] == "u-1"
    assert event["metadata"]["name"].startswith("vm.")
    assert event["reportingController"] == "assetlock.dev/controller"
    told = [event[name] for name in ("reason", "note", "type", "action", "reportingInstance")]
    assert told == ["Locked", "Locked by ann.", "Normal", "Grant", "host-1"]


async def test_the_same_news_again_are_counted(start, events):
    recorder = start()
    for _ in range(3):
        recorder.record(ASSET, "Refused", "Refused bob.", type="Warning")
    await recorder.drain()
    assert len(events.created) == 1
    assert [patch["series"]["count"] for patch in events.patches] == [2, 3]
    assert [patch["metadata"]["resourceVersion"] for patch in events.patches] == ["1", "99"]


async def test_the_same_news_after_six_minutes_are_new(start, events):
    time = 0.0
    recorder = start(clock=lambda: time)
    recorder.record(ASSET, "Refused", "Refused bob.")
    await recorder.drain()
    time = 360.0
    recorder.record(ASSET, "Refused", "Refused bob.")
    await recorder.drain()
    assert len(events.created) == 2


@pytest.mark.parametrize("refusal", [failure(404), failure(409, "Conflict")])
async def test_a_series_whose_event_is_gone_or_changed_is_told_anew(start, events, refusal):
    recorder = start()
    recorder.record(ASSET, "Refused", "Refused bob.")
    await recorder.drain()
    events.refusals = [refusal]
    recorder.record(ASSET, "Refused", "Refused bob.")
    await recorder.drain()
    assert len(events.created) == 2


async def test_one_object_gets_only_so_many_events(start, events):
    time = 0.0
    recorder = start(burst=3, period=10.0, clock=lambda: time)
    for number in range(10):
        recorder.record(ASSET, "Refused", f"Refused user {number}.")
    await recorder.drain()
    assert (len(events.created), recorder.dropped) == (3, 7)
    time = 10.0
    recorder.record(ASSET, "Refused", "Refused one more.")
    await recorder.drain()
    assert len(events.created) == 4


async def test_repetitions_that_were_held_back_are_in_the_next_count(start, events):
    time = 0.0
    recorder = start(burst=1, period=10.0, clock=lambda: time)
    for _ in range(5):
        recorder.record(ASSET, "Refused", "Refused bob.")
    await recorder.drain()
    time = 10.0
    recorder.record(ASSET, "Refused", "Refused bob.")
    await recorder.drain()
    assert [patch["series"]["count"] for patch in events.patches] == [6]


async def test_more_news_than_there_is_room_for_are_let_go_without_a_word_to_the_teller(start):
    recorder = start(capacity=5)
    for number in range(9):
        recorder.record(ASSET, "Refused", f"Refused user {number}.")
    assert recorder.dropped == 4
    await recorder.drain()


@pytest.mark.parametrize("refusal", [failure(403, "Forbidden"), failure(500), b"garbage\r\n\r\n"])
async def test_an_event_that_can_not_be_written_does_not_keep_the_next_from_it(start, events, refusal):
    events.refusals = [refusal]
    recorder = start()
    recorder.record(ASSET, "First", "…")
    recorder.record(ASSET, "Second", "…")
    await recorder.drain()
    assert [event["reason"] for event in events.created] == ["Second"]
    assert recorder.dropped == 1


@pytest.mark.parametrize("nonsense", [{}, {"metadata": None}, None, {"apiVersion": "v1", "kind": "Pod"}])
async def test_news_about_nothing_are_let_go(start, nonsense):
    recorder = start()
    recorder.record(nonsense, "Locked", "…")
    assert recorder.dropped == 1


async def test_a_long_note_is_cut_between_two_characters(start, events):
    recorder = start()
    recorder.record(ASSET, "Locked", "ü" * 700)
    await recorder.drain()
    note = events.created[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("ü…")


async def test_a_cluster_scoped_object_has_its_events_in_the_default_namespace(start, events):
    recorder = start()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n" * 253, "uid": "u"}}
    recorder.record(namespace, "Guarded", "…")
    await recorder.drain()
    assert events.created[0]["metadata"]["namespace"] == "default"
    assert len(events.created[0]["metadata"]["name"]) <= 253
