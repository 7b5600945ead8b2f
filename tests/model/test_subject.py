"""A subject is a user, a ServiceAccount, which is a user too, or a group."""

from __future__ import annotations

from assetlock.model.subject import Subject


def test_a_subject_stands_for_a_user_or_a_group() -> None:
    robot = Subject(kind="ServiceAccount", name="patcher", namespace="shop")
    assert (robot.username, robot.group) == ("system:serviceaccount:shop:patcher", None)
    ada, sre = Subject(kind="User", name="ada"), Subject(kind="Group", name="sre")
    assert (ada.username, ada.group) == ("ada", None)
    assert (sre.username, sre.group) == (None, "sre")
