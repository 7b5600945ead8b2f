"""The HTTP side, with whatever bytes may arrive: never a crash, a stack trace, or an admission by mistake."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp import ClientSession, web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assetlock.admission.access import Access
from assetlock.admission.app import application
from assetlock.admission.asset_cache import AssetCache
from assetlock.admission.ended_stamps import EndedStamps
from assetlock.admission.review import BadReview, parse
from assetlock.admission.settings import AdmissionSettings
from assetlock.admission.upkeep.activity import ActivityRecorder
from assetlock.admission.upkeep.evidence import MadeWrites
from assetlock.admission.verdict import Refused
from assetlock.admission.webhooks import Webhooks
from assetlock.kube.api import Api
from assetlock.kube.recorder import EventRecorder
from assetlock.kube.transport import Reply, Unreachable
from tests.admission.reviews import KEY, UID, body, config_map, lease, stamped, user

KNOWN = "caller-known"
PATHS = ("/fence", "/subresources", "/namespaces", "/creations", "/assets", "/assetlocks", "/leases")


class Nowhere:
    """A transport whose API server is down, as it may be at any time."""

    async def request(self, method: str, path: str, **_: Any) -> Reply:
        raise Unreachable("down")

    async def stream(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        raise Unreachable("down")
        yield b""

    async def close(self) -> None:
        return


async def _at_once(_: float) -> None:
    await asyncio.sleep(0)


def webhooks() -> Webhooks:
    api = Api(Nowhere(), sleep=_at_once)
    return Webhooks(
        AdmissionSettings(),
        AssetCache(api),
        Access(api),
        ActivityRecorder(api),
        MadeWrites(api),
        EndedStamps(api),
        EventRecorder(api, "t"),
    )


async def _knows(secret: str) -> bool:
    return secret == KNOWN


@pytest.fixture
async def server() -> AsyncIterator[str]:
    runner = web.AppRunner(application(webhooks(), _knows), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _mostly(wanted: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(wanted, wanted, wanted, json_values)


metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": _mostly(st.just("settings")),
        "namespace": _mostly(st.just("shop")),
        "uid": _mostly(st.just(UID)),
        "labels": _mostly(
            st.dictionaries(
                st.sampled_from(["assetlock.dev/fenced", "assetlock.dev/asset"]), _mostly(st.just("true"))
            )
        ),
        "annotations": _mostly(
            st.dictionaries(
                st.sampled_from([KEY, "assetlock.dev/owner"]), _mostly(st.just(f"{UID}\n7 - alice"))
            )
        ),
        "deletionTimestamp": json_values,
        "finalizers": json_values,
    },
)
objects = _mostly(
    st.fixed_dictionaries(
        {"metadata": _mostly(metadata)}, optional={"spec": json_values, "status": json_values}
    )
)
requests = st.fixed_dictionaries(
    {
        "uid": _mostly(st.just("u")),
        "operation": _mostly(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"])),
        "userInfo": _mostly(
            st.fixed_dictionaries(
                {"username": _mostly(st.just("bob"))}, optional={"groups": json_values, "extra": json_values}
            )
        ),
    },
    optional={
        "object": objects,
        "oldObject": objects,
        "kind": json_values,
        "dryRun": json_values,
        "namespace": json_values,
        "subResource": json_values,
    },
)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_read_as_a_bad_review_and_as_nothing_else(data: bytes) -> None:
    with pytest.raises(BadReview):
        parse(data)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(requests)
def test_what_looks_like_a_review_is_decided_or_bad_but_never_crashes(request: Mapping[str, Any]) -> None:
    try:
        review = parse(json.dumps({"request": request}).encode())
    except BadReview:
        return
    asyncio.run(_decided_by_all(review))


async def _decided_by_all(review: Any) -> None:
    ours = webhooks()
    for decide in (ours.fence, ours.assetlocks):
        await decide(review)
    for asking in (ours.assets, ours.leases, ours.subresources, ours.namespaces, ours.creations):
        try:
            await asking(review)
        except Unreachable:
            continue


strangers_changes = st.builds(
    lambda data, extra, labels, annotations: {
        "metadata": {
            "name": "settings",
            "namespace": "shop",
            "uid": UID,
            "labels": labels,
            "annotations": annotations,
            **extra,
        },
        **data,
    },
    st.fixed_dictionaries(
        {"data": json_values.filter(lambda value: value != {"colour": "red"})}, optional={"kind": json_values}
    ),
    st.fixed_dictionaries(
        {}, optional={"finalizers": json_values, "deletionTimestamp": json_values, "generation": json_values}
    ),
    json_values,
    json_values,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    strangers_changes,
    st.sampled_from(["bob", "alic", "alice ", "- alice", "7 - alice", "Alice"]),
    json_values,
    json_values,
)
def test_no_write_by_a_stranger_is_ever_admitted_to_a_locked_object(
    new: dict[str, Any], name: str, groups: object, extra: object
) -> None:
    by = {"username": name, "groups": groups, "extra": extra}
    for review in (
        parse(body("UPDATE", by=by, old=stamped("alice"), new=new)),
        parse(body("DELETE", by=by, old=stamped("alice"))),
    ):
        verdict = asyncio.run(webhooks().fence(review))
        assert isinstance(verdict, Refused)
        assert verdict.code == 423


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"request":{}}', b"\xff\xfe", b"[" * 100_000])
async def test_garbage_is_answered_400_with_one_line(server: str, path: str, data: bytes) -> None:
    async with ClientSession() as session, session.post(f"{server}/{KNOWN}{path}", data=data) as answer:
        text = await answer.text()
        assert answer.status == 400
        assert "Traceback" not in text
        assert "\n" not in text


async def test_what_can_not_be_decided_is_answered_500_without_a_trace(server: str) -> None:
    data = body("DELETE", by=user("bob"), old=lease(), kind="Lease")
    async with ClientSession() as session, session.post(f"{server}/{KNOWN}/leases", data=data) as answer:
        assert answer.status == 500
        assert "Traceback" not in await answer.text()


async def test_targets_that_can_not_be_looked_up_are_refused_with_where_to_look(server: str) -> None:
    targets = [{"apiVersion": "metrics.example.com/v1", "kind": "Gauge", "name": "p"}]
    asset = {"metadata": {"name": "vm"}, "spec": {"targets": targets}}
    response = await _response(
        f"{server}/{KNOWN}/assets", body("CREATE", by=user("bob"), new=asset, kind="Asset")
    )
    assert response["status"]["code"] == 503
    assert "kubectl get apiservice v1.metrics.example.com" in response["status"]["message"]


async def test_a_refusal_has_the_shape_that_the_api_server_passes_on(server: str) -> None:
    data = body("UPDATE", by=user("bob"), old=stamped("alice"), new=config_map())
    response = await _response(f"{server}/{KNOWN}/fence", data)
    assert response["uid"] == "review-1"
    assert response["allowed"] is False
    assert response["status"]["code"] == 423
    assert response["status"]["reason"] == "Locked"
    assert response["status"]["details"]["causes"] == [{"reason": "Locked", "message": "alice"}]
    assert response["status"]["details"]["retryAfterSeconds"] > 0


async def test_a_change_of_ours_is_a_json_patch(server: str) -> None:
    response = await _response(
        f"{server}/{KNOWN}/leases", body("CREATE", by=user("bob"), new=lease(), kind="Lease")
    )
    assert response["allowed"] is True
    steps = json.loads(base64.b64decode(response["patch"]))
    assert {"op": "add", "path": "/metadata/annotations/assetlock.dev~1owner", "value": "- bob"} in steps


async def test_an_object_of_three_megabytes_is_decided(server: str) -> None:
    large = {**stamped("alice"), "data": {"colour": "x" * 1_600_000}}
    data = body("UPDATE", by=user("alice"), old=large, new={**large, "data": {"colour": "y" * 1_600_000}})
    assert (await _response(f"{server}/{KNOWN}/fence", data))["allowed"] is True


async def test_readiness_tells_that_the_cache_is_not_whole(server: str) -> None:
    async with ClientSession() as session:
        async with session.get(f"{server}/readyz") as answer:
            assert answer.status == 503
        async with session.get(f"{server}/healthz") as answer:
            assert answer.status == 200


async def test_metrics_count_what_was_decided(server: str) -> None:
    await _response(f"{server}/{KNOWN}/fence", body("DELETE", by=user("bob"), old=stamped("alice")))
    async with ClientSession() as session, session.get(f"{server}/metrics") as answer:
        assert 'assetlock_admission_decisions_total{verdict="423",webhook="fence"}' in await answer.text()


async def _response(url: str, data: bytes) -> dict[str, Any]:
    async with ClientSession() as session, session.post(url, data=data) as answer:
        assert answer.status == 200, await answer.text()
        found: dict[str, Any] = (await answer.json())["response"]
        return found


@pytest.mark.parametrize("before", ["", "/caller-", "/caller-other", "/%ff", "/caller-known/caller-known"])
@pytest.mark.parametrize("path", PATHS)
async def test_who_does_not_know_the_secret_is_not_listened_to(server: str, before: str, path: str) -> None:
    data = body("DELETE", by=user("alice"), old=stamped("alice"))
    async with ClientSession() as session, session.post(f"{server}{before}{path}", data=data) as answer:
        assert answer.status == 404
