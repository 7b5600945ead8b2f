"""Which process leads, so that the next one on the same machine can be certain that it has ended.

A process is named by the machine's boot, its namespace of process ids, its id there and when it began, and by the
pod that it runs in. Whoever shares boot and namespace looks it up; who runs in the same pod has come after it, since
a kubelet starts a container again only once the former one has ended. Anybody else knows nothing, and waits.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib

NO_POD = "-"

_PROC = pathlib.Path("/proc")
_BOOT = _PROC / "sys/kernel/random/boot_id"
_ENDED = ("Z", "X")
_STATE, _BEGAN = 0, 19
"""Where these stand in ``/proc/PID/stat``, counted from behind the name of the program."""


@dataclasses.dataclass(frozen=True, slots=True)
class LeaderProcess:
    """One process."""

    boot: str
    namespace: str
    pid: int
    began: str
    pod_uid: str = NO_POD

    @classmethod
    def of(cls, pid: int, pod_uid: str | None = None) -> LeaderProcess | None:
        """The process of this id; ``None`` on a system that does not say."""
        try:
            namespace = str((_PROC / str(pid) / "ns/pid").readlink())
            return cls(_BOOT.read_text().strip(), namespace, pid, _stat(pid)[_BEGAN], pod_uid or NO_POD)
        except OSError:
            return None

    def __str__(self) -> str:
        return f"{self.boot} {self.namespace} {self.pid} {self.began} {self.pod_uid}"

    def knows_gone(self, written: str) -> bool:
        """Whether the process that was written down so has ended for certain; false when nobody here can tell."""
        try:
            boot, namespace, pid, began, pod_uid = written.split(" ")
            other = LeaderProcess(boot, namespace, int(pid), began, pod_uid)
        except ValueError:
            return False
        if self.pod_uid != NO_POD and other.pod_uid == self.pod_uid:
            return other != self
        if (other.boot, other.namespace) != (self.boot, self.namespace):
            return False
        return _has_ended(other)


def _has_ended(process: LeaderProcess) -> bool:
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # There is a process of that id, somebody else's.
    try:
        stat = _stat(process.pid)
    except OSError:
        return False
    return stat[_STATE] in _ENDED or stat[_BEGAN] != process.began


def _stat(pid: int) -> list[str]:
    """What the system says of a process, from its state on; raises OSError if there is none."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
