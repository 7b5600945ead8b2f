"""Wakes those who wait for a name, when Redis publishes that a slot of it was freed.

One thread and one connection for all of them, there only while somebody waits. A waiter is also woken when its
subscription begins to count, since the slot may have been freed before that.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger("assetlock")

IDLE = 10.0
"""Seconds without a waiter after which the connection is closed."""

PAUSE = 0.5
"""Seconds between two tries to connect. Meanwhile those who wait ask by themselves, now and then."""

Wake = Callable[[], None]


class Listener:
    """The one of a backend."""

    def __init__(self, connect: Callable[[], Redis]) -> None:
        self._connect = connect
        self._mutex = threading.Lock()
        self._wakes: dict[str, list[Wake]] = {}
        self._wanted: collections.deque[tuple[str, str]] = collections.deque()
        self._running = False
        self._bell, self._rope = socket.socketpair()
        self._bell.setblocking(False)

    def listen(self, channels: tuple[str, ...], wake: Wake) -> Callable[[], None]:
        """Call ``wake`` whenever something comes on one of the channels; gives what ends that."""
        with self._mutex:
            for channel in channels:
                wakes = self._wakes.setdefault(channel, [])
                wakes.append(wake)
                # Also where somebody waits already: the answer is what this one is woken by.
                self._wanted.append(("SUBSCRIBE", channel))
            self._start()
        return lambda: self._forget(channels, wake)

    def _forget(self, channels: tuple[str, ...], wake: Wake) -> None:
        with self._mutex:
            for channel in channels:
                wakes = self._wakes[channel]
                wakes.remove(wake)
                if not wakes:
                    del self._wakes[channel]
                    self._wanted.append(("UNSUBSCRIBE", channel))
            self._ring()

    def _start(self) -> None:
        if self._running:
            self._ring()
            return
        self._running = True
        threading.Thread(target=self._run, name="assetlock-redis", daemon=True).start()

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._rope.send(b"!")

    def _run(self) -> None:
        pause = threading.Event()
        while self._goes_on():
            try:
                self._serve()
            except (RedisError, OSError) as error:
                log.debug("listening to Redis is tried again: %s", error)
                pause.wait(PAUSE)

    def _goes_on(self) -> bool:
        with self._mutex:
            self._running = bool(self._wakes)
            return self._running

    def _serve(self) -> None:
        """Until nobody waits any more."""
        client = self._connect()
        connection: Any = client.connection_pool.get_connection()
        try:
            with self._mutex:
                self._wanted.extendleft(("SUBSCRIBE", channel) for channel in self._wakes)
            with selectors.DefaultSelector() as selector:
                selector.register(connection._sock, selectors.EVENT_READ)
                selector.register(self._bell, selectors.EVENT_READ)
                while self._send(connection):
                    if not selector.select(IDLE) and not self._wakes:
                        return
                    with contextlib.suppress(BlockingIOError):
                        self._bell.recv(4096)
                    while connection.can_read(timeout=0):
                        self._take(connection.read_response())
        finally:
            connection.disconnect()
            client.close()

    def _send(self, connection: Any) -> bool:
        with self._mutex:
            wanted = list(self._wanted)
            self._wanted.clear()
        if wanted:
            connection.send_packed_command(connection.pack_commands(wanted))
        return True

    def _take(self, message: Any) -> None:
        kind, channel = message[0], message[1]
        if kind not in (b"subscribe", b"message"):
            return
        with self._mutex:
            wakes = list(self._wakes.get(channel.decode(), ()))
        for wake in wakes:
            wake()
