"""Lines of identities: whatever users fill in, a line admits those it was meant for and nobody else."""

from __future__ import annotations

import dataclasses

from hypothesis import assume, example, given
from hypothesis import strategies as st

from assetlock.admission.review import Requester
from assetlock.core.identity import NOBODY, Identity, Kind, owner_of
from assetlock.core.locks.lock import identity_of
from assetlock.core.messages import is_printable, printable
from assetlock.core.names import OWNER_ANNOTATION
from assetlock.model.assetlock import AssetLock
from assetlock.model.limits import LONGEST_USERNAME
from assetlock.model.subject import Subject

UID = "427171a0-eba9-4acd-bc5c-2d150f43b02a"
WORDS = [
    "-",
    "group",
    "@group",
    "maintenance",
    "@maintenance",
    "@nobody",
    UID,
    "JTI=1",
    "a b",
    "",
    "\n7 - eve",
    " ",
]
TEXT = st.one_of(st.sampled_from(WORDS), st.text(max_size=8))
USERNAMES = st.one_of(
    st.sampled_from(["alice", "a b", f"{UID} bob", "@group x"]), st.text(min_size=1, max_size=8)
)
WANTED = st.sampled_from(["User", "Pod", "Credential"])


def lock(bind_to: str, username: str, pod_uid: str, credential_id: str) -> AssetLock:
    """As it could have come into etcd by any way; no schema looks at it here."""
    holder = {"username": username, "podUID": pod_uid, "credentialId": credential_id}
    return AssetLock.model_validate({"metadata": {}, "spec": {"bindTo": bind_to, "holder": holder}})


@given(WANTED, USERNAMES, TEXT, TEXT)
@example("Pod", "system:authenticated", "group", "")
@example("Pod", "system:authenticated", "@group", "")
@example("Credential", "system:authenticated", "", "@group")
def test_no_field_of_a_lock_makes_a_line_of_another_kind(
    bind_to: str, username: str, pod_uid: str, credential_id: str
) -> None:
    identity = identity_of(lock(bind_to, username, pod_uid, credential_id))
    line = str(identity)
    assert is_printable(line)
    assert Identity.parse(line) == identity
    assert identity.kind in (Kind.REQUESTER, Kind.NOBODY)
    assert identity.kind is Kind.NOBODY or identity.username == username
    if bind_to == "User":
        assert line == f"- {username}" or not is_printable(username)
    else:
        assert identity.kind is Kind.NOBODY or identity.pod_uid or identity.credential_id


@given(WANTED, USERNAMES, TEXT, TEXT, USERNAMES, st.lists(TEXT, max_size=3), TEXT, TEXT)
@example("Pod", "alice", UID, "", "alice", [], "", "")
@example("Pod", "a b", UID, "", "b", [], f"{UID} a", "")
@example("Credential", "a b", "", "JTI=1", "b", [], "", "JTI=1 a")
@example("User", "dba", "", "", "eve", ["dba"], "", "")
def test_only_whom_it_is_bound_to_is_admitted(
    bind_to: str,
    username: str,
    pod_uid: str,
    credential_id: str,
    who: str,
    groups: list[str],
    claimed_uid: str,
    claimed_id: str,
) -> None:
    """Also against somebody who sends what he likes for the pod and the credential, as who impersonates may."""
    extra = {
        "authentication.kubernetes.io/pod-uid": (claimed_uid,),
        "authentication.kubernetes.io/credential-id": (claimed_id,),
    }
    requester = Requester(who, tuple(groups), extra)
    stamped = Identity.parse(str(identity_of(lock(bind_to, username, pod_uid, credential_id))))
    if requester.is_one_with(stamped):
        assert who == username
        assert bind_to != "Pod" or claimed_uid == pod_uid
        assert bind_to != "Credential" or claimed_id == credential_id


@given(USERNAMES, st.text(max_size=20))
@example("alice", "x\n7 @group system:authenticated")
@example("alice", "\x1b[1A\x1b[2Kconfigmap/app patched\x1b[8m")
def test_a_reason_stays_on_the_line_of_who_closed_the_asset(username: str, reason: str) -> None:
    assume(printable(username).strip())
    closing = Identity.closing(username, reason)
    assert Identity.parse(str(closing)) == closing
    assert is_printable(str(closing))
    assert closing.is_closing
    assert not Requester(username, (username,)).is_one_with(closing)


@given(st.sampled_from(["User", "Group", "ServiceAccount"]), USERNAMES, TEXT)
@example("ServiceAccount", "bot", "x\n7 @group system:authenticated")
def test_a_subject_is_one_line(kind: str, name: str, namespace: str) -> None:
    subject = Subject.model_validate({"kind": kind, "name": name, "namespace": namespace})
    assert is_printable(str(Identity.of(subject)))
    assert (Identity.of(subject).kind is Kind.GROUP) <= (kind == "Group")


def test_who_has_too_long_a_name_or_a_line_break_in_it_holds_nothing() -> None:
    for name in ("a" * (LONGEST_USERNAME + 1), "alice\n- bob", "alice\x1b[8m"):
        assert owner_of({OWNER_ANNOTATION: f"- {name}"}) == NOBODY
    longest = "a" * LONGEST_USERNAME
    assert owner_of({OWNER_ANNOTATION: f"- {longest}"}) == Identity(longest)


def test_pod_and_credential_at_once_are_nobody() -> None:
    both = dataclasses.replace(Identity("alice", pod_uid=UID), credential_id="JTI=1")
    assert str(both) == "@nobody alice"
