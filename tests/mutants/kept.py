"""The mutants: in which module, which text becomes which, and what that would mean to users."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Mutant:
    """One plausible bug. ``old`` stands in the module exactly once."""

    name: str
    module: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "skip the stamp",
        "core/fencing.py",
        "        writes.append(PatchTarget(target, patch))\n",
        "",
    ),
    Mutant(
        "announce before stamping",
        "core/decide.py",
        "    fencing.stamp,\n    granting.announce,\n",
        "    granting.announce,\n    fencing.stamp,\n",
    ),
    Mutant(
        "believe a stamp that was written for another object",
        "core/stamp.py",
        "return stamp if stamp.uid == uid else None",
        "return stamp",
    ),
    Mutant(
        "put a lower token over a higher one",
        "core/fencing.py",
        " or (present and present.token > holder.token)",
        "",
    ),
    Mutant(
        "pass the Lease on before the AssetLock is terminal",
        "core/decide.py",
        "    ending.end_locks,\n    granting.pass_on,\n",
        "    granting.pass_on,\n    ending.end_locks,\n",
    ),
    Mutant(
        "forget the high-water mark",
        "core/situation.py",
        "asset.status.fencing_token if asset else 0",
        "0",
    ),
    Mutant(
        "believe a renewal that lies in the future",
        "core/tenure.py",
        "renewed = min(lease.spec.renew_time or lease.spec.acquire_time or seen, seen)",
        "renewed = lease.spec.renew_time or lease.spec.acquire_time or seen",
    ),
    Mutant(
        "grant a waiter whose wait is over",
        "core/queue.py",
        "            and not ran_out(observation, lock)\n",
        "",
    ),
    Mutant(
        "serve waiters without regard to priority",
        "core/queue.py",
        "(-lock.spec.priority, created, lock.metadata.uid)",
        "(0, created, lock.metadata.uid)",
    ),
    Mutant(
        "grant into a terminating Lease",
        "core/situation.py",
        "if lease is not None and lease.metadata.deletion_timestamp is not None:",
        "if lease is not None and lease.metadata.deletion_timestamp is not None and lease.spec is None:",
    ),
    Mutant(
        "expire without reading the Lease again",
        "core/ending.py",
        "confirm = (ConfirmLease(observation.lease.metadata.resource_version),)",
        "confirm = ()",
    ),
    Mutant(
        "take a holder off the Asset without looking for its Lease",
        "core/fencing.py",
        "confirm: tuple[Confirmation, ...] = (ConfirmLease(lease.metadata.resource_version if lease else None),)",
        "confirm: tuple[Confirmation, ...] = ()",
    ),
    Mutant(
        "drop the waiters at a restart",
        "controller/controller.py",
        "            for key in self._cache.known():\n                self._queue.add(key)\n",
        "            pass\n",
    ),
    Mutant(
        "never list again",
        "controller/controller.py",
        "                tasks.create_task(self._keep_listing())\n",
        "",
    ),
    Mutant(
        "believe a conflict without reading what is there",
        "controller/reconciler.py",
        "            await self._read_again(key, write)\n            if isinstance(error, AlreadyExists)",
        "            if isinstance(error, AlreadyExists)",
    ),
    Mutant(
        "let an older version replace a later one",
        "controller/cache.py",
        " or (old is not None and version <= _version(old))",
        "",
    ),
    Mutant(
        "take a PUT without resourceVersion",
        "kube/api.py",
        "        wire.require_version(body)\n",
        "",
    ),
    Mutant(
        "delete without preconditions",
        "kube/api.py",
        '            "preconditions": {"uid": uid, "resourceVersion": resource_version},\n',
        "",
    ),
    Mutant(
        "repeat a write whose answer was lost",
        "kube/api.py",
        "lambda: self._send(method, path, query, headers, data), retry.may_repeat_write",
        "lambda: self._send(method, path, query, headers, data), retry.may_repeat_read",
    ),
    Mutant(
        "take over a leader that is still renewing",
        "controller/leadership.py",
        "return self._clock.monotonic() > self._seen_at + float(duration)",
        "return True",
    ),
    Mutant(
        "ignore the pod's UID",
        "core/identity.py",
        "return cls(username, None if pod_uid == UNBOUND else pod_uid)",
        "return cls(username, None)",
    ),
)
