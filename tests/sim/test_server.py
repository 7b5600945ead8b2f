"""What the in-memory server does that no random comparison with the real one can provoke at will."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from assetlock.kube.resources import CONFIG_MAPS, LEASES, SUBJECT_ACCESS_REVIEWS
from assetlock.kube.transport import TransportError
from tests.sim import failures, virtual
from tests.sim.admission import ADMIN, Attributes, Plugin, User
from tests.sim.client import Client
from tests.sim.conversation import Conversation, Operation
from tests.sim.faults import Faults, Trouble, WatchTrouble
from tests.sim.kinds import CONFIGMAPS
from tests.sim.server import Server
from tests.sim.store import Change

A_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"value": "0"}}
PATH = CONFIG_MAPS.path("default", "a")
COLLECTION = CONFIG_MAPS.path("default")


def in_virtual_time(body: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        await body(Server(virtual.Clock(asyncio.get_running_loop())))

    virtual.run(main, limit=3600)


def talk(server: Server, faults: Faults | None = None, user: User = ADMIN) -> Conversation:
    return Conversation(Client(server, user, faults), "default")


async def patch(who: Conversation, body: Any) -> int:
    reply = await who.send("PATCH", PATH, body, content_type="application/merge-patch+json")
    return reply.status


async def events(client: Client, start: str, count: int, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    params = {"watch": "true", "resourceVersion": start} | params
    stream = client.stream(COLLECTION, params=params, headers={}, idle_timeout=70)
    async for line in stream:
        found.append(json.loads(line))
        if len(found) == count:
            break
    return found


def test_an_admitted_write_is_admitted_anew_when_its_object_changed_before_the_commit() -> None:
    seen: list[str] = []

    async def fence(request: Attributes) -> None:
        if request.old is None:
            return
        owner = request.old["metadata"].get("annotations", {}).get("owner", "nobody")
        seen.append(f"{request.user.name} met {owner}")
        if owner not in ("nobody", request.user.name):
            raise failures.Refusal(423, "Locked", "held by another")
        if request.user.name == "slow":
            await asyncio.sleep(5)

    async def body(server: Server) -> None:
        server.writer.plugins.append(Plugin(validate=fence))
        fast, slow = talk(server, user=User("fast")), talk(server, user=User("slow"))
        await fast.send("POST", COLLECTION, A_MAP)
        late = asyncio.create_task(patch(slow, {"data": {"value": "stolen"}}))
        await asyncio.sleep(1)
        assert await patch(fast, {"metadata": {"annotations": {"owner": "fast"}}}) == 200
        assert await late == 423
        [stored] = server.store.objects(CONFIGMAPS)
        assert stored["data"] == {"value": "0"}

    in_virtual_time(body)
    assert seen == ["slow met nobody", "fast met nobody", "slow met fast"]


def test_a_put_with_a_version_does_not_survive_a_change_between_admission_and_commit() -> None:
    async def body(server: Server) -> None:
        client = talk(server)
        stored = json.loads((await client.send("POST", COLLECTION, A_MAP)).body)

        async def pause(_request: Attributes) -> None:
            server.writer.before_commit = None
            await patch(client, {"data": {"value": "1"}})

        server.writer.before_commit = pause
        assert (await client.send("PUT", PATH, {**stored, "data": {"value": "2"}})).status == 409

    in_virtual_time(body)


def test_a_page_token_from_before_a_compaction_is_gone() -> None:
    async def body(server: Server) -> None:
        client = talk(server)
        for name in "abc":
            await client.play([Operation("create", name=name)])
        page = json.loads((await client.send("GET", COLLECTION, params={"limit": "1"})).body)
        server.store.compact(server.store.revision + 1)
        params = {"limit": "1", "continue": page["metadata"]["continue"]}
        reply = await client.send("GET", COLLECTION, params=params)
        assert (reply.status, json.loads(reply.body)["reason"]) == (410, "Expired")

    in_virtual_time(body)


def test_pages_show_one_snapshot_whatever_is_written_between_them() -> None:
    async def body(server: Server) -> None:
        client = talk(server)
        for name in "abc":
            await client.play([Operation("create", name=name)])
        page = json.loads((await client.send("GET", COLLECTION, params={"limit": "2"})).body)
        await client.play([Operation("delete", name="c", version="none")])
        params = {"continue": page["metadata"]["continue"]}
        rest = json.loads((await client.send("GET", COLLECTION, params=params)).body)
        assert [item["metadata"]["name"] for item in page["items"] + rest["items"]] == ["a", "b", "c"]

    in_virtual_time(body)


def test_an_idle_watch_is_kept_alive_by_bookmarks() -> None:
    async def body(server: Server) -> None:
        found = await events(Client(server), "1", 3, allowWatchBookmarks="true")
        assert [event["type"] for event in found] == ["BOOKMARK"] * 3
        assert asyncio.get_running_loop().time() == pytest.approx(180, abs=1)

    in_virtual_time(body)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (WatchTrouble.DROPPED, "connection reset"),
        (WatchTrouble.SILENT, "nothing arrived for 70s"),
    ],
)
def test_a_watch_in_trouble_ends_with_a_transport_error(kind: WatchTrouble, outcome: str) -> None:
    async def body(server: Server) -> None:
        client = Client(server, faults=Faults(1, {kind: 1.0}))
        with pytest.raises(TransportError, match=outcome):
            await events(client, "1", 99, allowWatchBookmarks="true")

    in_virtual_time(body)


def test_late_events_keep_their_order() -> None:
    async def body(server: Server) -> None:
        client, calm = Client(server, faults=Faults(3, {WatchTrouble.LATE: 1.0})), talk(server)
        watching = asyncio.create_task(events(client, "1", 20))
        await calm.send("POST", COLLECTION, A_MAP)
        for value in range(1, 20):
            await patch(calm, {"data": {"value": str(value)}})
        assert [event["object"]["data"]["value"] for event in await watching] == [str(n) for n in range(20)]

    in_virtual_time(body)


def test_a_lost_request_is_never_executed_and_a_lost_reply_always() -> None:
    async def attempt(server: Server, trouble: Trouble) -> bool:
        commits: list[Change] = []
        server.store.on_commit.append(commits.append)
        with pytest.raises(TransportError):
            await talk(server, Faults(1, {trouble: 1.0})).send("POST", COLLECTION, A_MAP)
        return bool(commits)

    async def body(server: Server) -> None:
        assert not await attempt(server, Trouble.LOST_REQUEST)
        assert await attempt(server, Trouble.LOST_REPLY)

    in_virtual_time(body)


def test_a_late_request_is_executed_after_its_sender_has_given_up() -> None:
    async def body(server: Server) -> None:
        client = Client(server, faults=Faults(2, {Trouble.LATE_REQUEST: 1.0}))
        sent = client.request(
            "POST", COLLECTION, params={}, headers={}, body=json.dumps(A_MAP).encode(), timeout=0.01
        )
        with pytest.raises(TransportError):
            await sent
        assert server.store.revision == 1
        await asyncio.sleep(30)
        assert server.store.revision == 2

    in_virtual_time(body)


def test_what_a_crashed_client_had_sent_still_arrives_but_nothing_after() -> None:
    async def body(server: Server) -> None:
        client = Client(server)
        sent = asyncio.create_task(Conversation(client, "default").send("POST", COLLECTION, A_MAP))
        await asyncio.sleep(0)
        client.crash()
        with pytest.raises(TransportError):
            await sent
        await asyncio.sleep(1)
        assert server.store.revision == 2
        with pytest.raises(TransportError):
            await Conversation(client, "default").send("DELETE", PATH)

    in_virtual_time(body)


def test_throttling_says_when_to_come_back_and_executes_nothing() -> None:
    async def body(server: Server) -> None:
        client = talk(server, Faults(1, {Trouble.THROTTLED: 1.0}))
        reply = await client.send("POST", COLLECTION, A_MAP)
        assert (reply.status, reply.headers["retry-after"], server.store.revision) == (429, "1", 1)

    in_virtual_time(body)


def test_access_reviews_answer_as_the_authorizer_decides() -> None:
    async def body(server: Server) -> None:
        server.authorize = lambda user, attributes: (
            user.name == "kubernetes-admin" or attributes["verb"] == "lock"
        )
        allowed = []
        for verb in ("lock", "unlock"):
            spec = {"user": "jane", "resourceAttributes": {"verb": verb, "resource": "assets"}}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            reply = await talk(server).send("POST", SUBJECT_ACCESS_REVIEWS.path(None), review)
            allowed.append(json.loads(reply.body)["status"]["allowed"])
        assert allowed == [True, False]
        assert (await talk(server, user=User("jane")).send("GET", LEASES.path("default"))).status == 403

    in_virtual_time(body)


def test_a_dry_run_is_admitted_and_not_stored() -> None:
    async def body(server: Server) -> None:
        reply = await talk(server).send("POST", COLLECTION, A_MAP, params={"dryRun": "All"})
        assert (reply.status, server.store.revision) == (201, 1)

    in_virtual_time(body)
