"""Runs a command for as long as a lock is held, and not a moment longer.

At the deadline, or when the lock is lost, the whole group gets SIGTERM, and SIGKILL ``kill_after`` seconds later, but
never after the deadline. What the command leaves behind in its group when it ends is ended too: it would go on
without the lock.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assetlock.cli.running.group import SIGNALLED, Group, reap_orphans
from assetlock.cli.running.signals import Signals
from assetlock.cli.running.terminal import Terminal
from assetlock.cli.running.watchdog import Watchdog
from assetlock.client import clock
from assetlock.client.session.keeper import Keeper
from assetlock.client.session.requests import LOST

KILL_AFTER: float = 10.0
"""Seconds between SIGTERM and SIGKILL, unless that is said; a fifth of the term at most."""

_TICK = 0.5
_GONE_WITHIN = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    """What is to happen when the lock is lost. ``kill_after`` is in seconds."""

    kill: bool = True
    kill_after: float | None = None

    def grace(self, length: float) -> float:
        """How long after SIGTERM comes SIGKILL, with terms of this length."""
        return min(length / 5, KILL_AFTER) if self.kill_after is None else min(length / 3, self.kill_after)


class Supervisor:
    """One run of a command under a lock."""

    def __init__(
        self, keeper: Keeper, signals: Signals, options: Options, say: Callable[[str], None]
    ) -> None:
        self._keeper = keeper
        self._signals = signals
        self._grace = options.grace(keeper.term.length)
        self._kills = options.kill
        self._say = say
        self._lost = False
        self._kill_at: float | None = None
        self._terminated = False
        self.died_of_interrupt = False
        """Whether somebody at the terminal has interrupted the command: a shell is to see that."""

    def run(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run the command and give the exit code. Raises `CannotStart`."""
        watchdog, terminal = Watchdog(), Terminal()
        try:
            self._signals.collecting = True
            group = Group(command, environ, terminal.prepare)
            terminal.give(group.id)
            self._watch(watchdog, group)
            self._keeper.start()
            while group.exit_code is None:
                self._signals.wait(self._pause())
                self._pass_on(group)
                self._watch(watchdog, group)
                self._check(group)
                if group.poll():
                    self._stop_too(group, terminal)
                reap_orphans(but=group.id)
            self._clear(group)
        finally:
            self._keeper.stop()
            terminal.take_back(repair=self._lost)
            watchdog.stop()
        self.died_of_interrupt = terminal.is_ours and group.exit_code == SIGNALLED + signal.SIGINT
        return LOST if self._lost else group.exit_code

    def _watch(self, watchdog: Watchdog, group: Group) -> None:
        if self._kills:
            watchdog.update(group.id, self._keeper.term.deadline, self._grace)

    def _pause(self) -> float:
        moments = [self._keeper.term.deadline - self._grace, self._keeper.term.deadline]
        if self._kill_at is not None:
            moments.append(self._kill_at)
        now = clock.now()
        return min([_TICK, *(moment - now for moment in moments if moment > now)])

    def _pass_on(self, group: Group) -> None:
        while self._signals.pending:
            number = self._signals.pending.popleft()
            if number == signal.SIGTERM:
                number = signal.SIGKILL if self._terminated else number
                self._terminated = True
            group.send(number)

    def _check(self, group: Group) -> None:
        """End the command if the lock is lost, or about to be."""
        now, deadline = clock.now(), self._keeper.term.deadline
        if not self._lost and (self._keeper.lost is not None or now >= deadline - self._grace):
            self._lose(group, now, deadline)
        if self._kill_at is not None and now >= self._kill_at:
            group.send(signal.SIGKILL)

    def _lose(self, group: Group, now: float, deadline: float) -> None:
        self._lost = True
        why = self._keeper.lost or "it could not be renewed in time"
        self._say(
            f"the lock is lost: {why}; {'ending the command' if self._kills else 'the command goes on'}"
        )
        if self._kills:
            self._kill_at = min(now + self._grace, deadline)
            if now < self._kill_at:
                group.send(signal.SIGTERM)

    def _stop_too(self, group: Group, terminal: Terminal) -> None:
        """The command was stopped: stop as well, so that the shell sees it, and go on with it."""
        terminal.take_back()
        if terminal.is_ours:
            os.killpg(os.getpgrp(), signal.SIGSTOP)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        self._check(group)
        terminal.give(group.id)
        group.send(signal.SIGCONT)

    def _clear(self, group: Group) -> None:
        """Nothing of the group may go on without the lock."""
        if group.vanishes(0) or not self._kills:
            return
        group.send(signal.SIGTERM)
        left = max(0.0, self._keeper.term.deadline - clock.now())
        if not group.vanishes(min(self._grace, left)):
            group.send(signal.SIGKILL)
            if not group.vanishes(_GONE_WITHIN):
                self._say(
                    "something of the command's process group can't be killed, and goes on without the lock"
                )
