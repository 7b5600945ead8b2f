"""Whatever is sent to a webhook: no crash, no stack trace, and never an admission to what somebody else holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.admission.reviews import lease, stamped
from tests.fuzz.app import App
from tests.fuzz.shapes import SAMPLES, USERNAMES, Choices, Json, asset, bent, garbage, request, review

FUZZ = settings.get_profile("fuzz")
bytes_of_choice = st.binary(min_size=1, max_size=80)
GRANTS = (True, False, None)


@pytest.mark.parametrize("path", SAMPLES)
@FUZZ
@given(data=bytes_of_choice)
def test_whatever_looks_like_a_review_is_answered_in_order(app: App, path: str, data: bytes) -> None:
    choices = Choices(data)
    app.api_server.allows = choices.one_of(GRANTS)
    _is_answered_in_order(app, path, review(choices, path))


@FUZZ
@given(data=bytes_of_choice)
def test_garbage_is_answered_in_order(app: App, data: bytes) -> None:
    choices = Choices(data)
    _is_answered_in_order(app, choices.one_of(sorted(SAMPLES)), garbage(choices))


@FUZZ
@given(data=bytes_of_choice)
def test_no_write_by_a_stranger_is_admitted_to_a_locked_object(app: App, data: bytes) -> None:
    _is_not_admitted(app, "/fence", Choices(data), stamped("alice"))


@FUZZ
@given(data=bytes_of_choice)
def test_no_write_by_a_stranger_is_admitted_to_a_locked_asset(app: App, data: bytes) -> None:
    _is_not_admitted(app, "/assets", Choices(data), asset())


@FUZZ
@given(data=bytes_of_choice)
def test_no_write_by_a_stranger_is_admitted_to_a_held_lease(app: App, data: bytes) -> None:
    choices = Choices(data)
    times = {key: choices.value() for key in ("renewTime", "acquireTime", "leaseDurationSeconds")}
    _is_not_admitted(app, "/leases", choices, lease(owner="alice", **times))


def _is_answered_in_order(app: App, path: str, data: bytes) -> None:
    status, text = _answer(app, path, data)
    if status == 200:
        response = json.loads(text)["response"]
        assert response["uid"] == json.loads(data)["request"]["uid"]
        assert response["allowed"] or response["status"]["message"]
    else:
        assert status in (400, 500)
        assert "\n" not in text


def _is_not_admitted(app: App, path: str, choices: Choices, old: Json) -> None:
    """Whatever the stranger calls itself, and whatever it wants to make of what alice holds."""
    app.api_server.allows = path != "/leases"
    operation, username = choices.one_of(["UPDATE", "DELETE"]), choices.one_of(USERNAMES)
    by = {"username": username, "groups": choices.value(), "extra": choices.value()}
    new = bent(choices, old)
    if operation == "UPDATE" and _content(new) == _content(old):
        return
    status, text = _answer(app, path, json.dumps(request(operation, by, old, new)).encode())
    assert status == 400 or (status == 200 and json.loads(text)["response"]["allowed"] is False)


def _answer(app: App, path: str, data: bytes) -> tuple[int, str]:
    app.crashes.found.clear()
    status, text = app.post(path, data)
    assert app.crashes.found == []
    assert "Traceback" not in text
    assert 'File "' not in text
    return status, text


def _content(thing: Json) -> str:
    """An object without what the API server itself keeps, and without a status."""
    if not isinstance(thing, dict) or not isinstance(thing.get("metadata"), dict):
        return json.dumps(thing)
    kept = ("managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in thing["metadata"].items() if key not in kept}
    rest = {key: value for key, value in thing.items() if key not in ("metadata", "status")}
    return json.dumps({**rest, "metadata": metadata}, sort_keys=True)
