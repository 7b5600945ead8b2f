"""The decision without one of its rules, to see who notices."""

import pytest

from assetlock.core import decide


def leave_out(monkeypatch: pytest.MonkeyPatch, rule: object) -> None:
    """Have it decided without this rule."""
    monkeypatch.setattr(decide, "_RULES", tuple(other for other in decide._RULES if other is not rule))
