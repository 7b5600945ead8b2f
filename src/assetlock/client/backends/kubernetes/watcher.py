"""Shows each `Record` of this process what becomes of its AssetLock: one watch for all, while there are any."""

from __future__ import annotations

import logging
import threading

from assetlock.client.api import ASSETLOCKS, Api, ClientError
from assetlock.client.backends.kubernetes.record import Record

log = logging.getLogger("assetlock")

LABEL = "client.assetlock.dev/process"
SECONDS = 60
"""How long one watch lasts."""

PAUSE = 0.5


class Watcher:
    """The one of a backend. ``process`` is the value of the label that its AssetLocks have."""

    def __init__(self, api: Api, namespace: str, process: str) -> None:
        self._api = api
        self._path = ASSETLOCKS.path(namespace)
        self._params = {"labelSelector": f"{LABEL}={process}"}
        self._mutex = threading.Lock()
        self._records: dict[str, Record] = {}
        self._running = False

    def add(self, record: Record) -> None:
        """Watch it from now on."""
        with self._mutex:
            self._records[record.name] = record
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="assetlock-watch", daemon=True).start()

    def remove(self, record: Record) -> None:
        """It does not matter any more."""
        with self._mutex:
            self._records.pop(record.name, None)

    def _run(self) -> None:
        pause = threading.Event()
        while self._goes_on():
            try:
                self._watch()
            except ClientError as error:
                log.debug("watching AssetLocks is tried again: %s", error)
                pause.wait(PAUSE)
            except Exception:
                log.exception("watching AssetLocks failed unexpectedly; it goes on")
                pause.wait(PAUSE)

    def _goes_on(self) -> bool:
        with self._mutex:
            self._running = bool(self._records)
            return self._running

    def _watch(self) -> None:
        # Without a version a watch begins with all there is, so that nothing is missed between two of them.
        for kind, seen in self._api.watch(self._path, self._params, seconds=SECONDS):
            with self._mutex:
                record = self._records.get(seen["metadata"].get("name", ""))
            if record is None:
                continue
            if kind == "DELETED":
                record.vanish(seen["metadata"]["uid"])
            else:
                record.see(seen)
