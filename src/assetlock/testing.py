"""For the tests of programs that lock: locks in memory, and what can happen to them, by hand.

    with FakeLocks() as locks:
        locks.hold("vm-1", by="somebody else")
        with pytest.raises(LockTimeout):
            patch("vm-1")

Inside the block the whole process uses them. Nothing expires by itself: `expire`, `revoke` and ``down`` do that.
"""

from assetlock.client.backends.memory import FakeLocks

__all__ = ["FakeLocks"]
