"""Who may call: the API server says it, and nobody is served with the server's own rights."""

from __future__ import annotations

import http.client
import urllib.parse

from tests.web.conftest import World


def test_no_token_a_bad_one_and_one_for_another_audience_are_unauthorized(world: World) -> None:
    world.operated.asset()
    world.caller("alice")
    other = world.operated.kubectl("create", "token", "alice", "--audience=elsewhere").stdout.strip()
    for token in (None, "", "nonsense", other, "x" * 40_000):
        answer = world.nobody(token).call("GET", "assets")
        assert answer.status == 401, token
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert world.nobody(token).call("POST", "assets/vm-1/lock", {}).status == 401


def test_who_lacks_a_right_is_told_the_verb_and_sees_nothing(world: World) -> None:
    world.operated.asset()
    stranger = world.caller("stranger", "t-nothing")
    for method, path, verb in (("GET", "assets", "list"), ("GET", "assets/vm-1", "get")):
        answer = stranger.call(method, path)
        assert answer.status == 403
        assert verb in answer.body["detail"]
        assert "vm-1" not in str(answer.body.get("items"))
    assert stranger.call("POST", "assets/vm-1/lock", {"ttl": "1m"}).status == 403


def test_a_token_that_names_another_namespace_opens_only_its_own(world: World) -> None:
    world.operated.asset()
    alice = world.caller("alice")
    assert alice.call("GET", "assets").status == 200
    assert alice.raw("GET", "/api/v1/kube-system/assets").status == 403


def test_a_page_of_another_site_can_not_lock(world: World) -> None:
    world.operated.asset()
    alice = world.caller("alice")
    answer = alice.call("POST", "assets/vm-1/lock", {"ttl": "1m"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403
    assert alice.call("GET", "assets/vm-1").body["lockState"] == "Unlocked"


def test_bodies_that_are_too_large_or_of_another_form_are_refused_in_words(world: World) -> None:
    world.operated.asset()
    alice = world.caller("alice")
    assert alice.call("POST", "assets/vm-1/lock", {"reason": "x" * 300_000}).status == 413
    for body in (
        {"ttl": "2d"},
        {"ttl": 30},
        {"ttl": "PT0S"},
        {"colour": "red"},
        [],
        "text",
        {"mode": "Both"},
    ):
        answer = alice.call("POST", "assets/vm-1/lock", body)
        assert answer.status == 422, body
        assert answer.body["errors"]


def test_a_body_that_does_not_come_ends_the_request(world: World) -> None:
    address = urllib.parse.urlsplit(world.base)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.putrequest("POST", f"/api/v1/{world.operated.namespace}/locks")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"{")
    answer = connection.getresponse()
    assert answer.status == 408
    connection.close()
