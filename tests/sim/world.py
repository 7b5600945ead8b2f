"""A whole simulation: one server, any number of processes with clocks, networks and crashes, and who judges them.

    async def story(world: World) -> None:
        world.judges.append(nobody_is_robbed)
        world.process("controller", lambda process: Controller(process.api, process.clock).run())
        ...

    simulate(story, seed=7, rates=faults.rough())

A judge is called after every commit, in the step that makes it; what it raises ends the run at once, whatever the
simulated code would have done with the exception. `simulate` raises `Broken`, which tells the seed, the faults that
were drawn, and the last commits.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from assetlock.kube.api import Api
from assetlock.kube.transport import TransportError
from tests.sim import virtual
from tests.sim.admission import Attributes, User
from tests.sim.client import Client
from tests.sim.faults import Drawn, Faults
from tests.sim.server import Server
from tests.sim.store import Change

Judge = Callable[[Change], None]
Body = Callable[["Process"], Coroutine[Any, Any, None]]
_SHOWN = 25


class Broken(AssertionError):
    """A simulation failed. Says how to have it again."""

    def __init__(
        self, seed: int | str, cause: BaseException, drawn: list[tuple[str, Drawn]], story: str
    ) -> None:
        super().__init__(f"seed {seed!r}: {type(cause).__name__}: {cause}\nfaults: {drawn}\n{story}")
        self.seed = seed
        self.cause = cause
        self.drawn = drawn


@dataclass
class Process:
    """A program on a machine: it can be crashed, stopped for a while, and started anew with the same name."""

    world: "World"
    name: str
    user: User
    body: Body
    clock: virtual.Clock
    client: Client = field(init=False)
    api: Api = field(init=False)
    task: "asyncio.Task[None] | None" = None
    starts: int = 0

    def start(self) -> None:
        """Run the body (again), over a connection of its own."""
        self.starts += 1
        faults = self.world.faults_for(f"{self.name}/{self.starts}")
        self.client = Client(self.world.server, self.user, faults)
        self.api = Api(self.client, random=faults.jitter)
        self.task = asyncio.create_task(self._run(self.client), name=self.name)

    async def _run(self, client: Client) -> None:
        try:
            await self.body(self)
        except TransportError:
            if not client.crashed:
                raise

    async def crash(self) -> None:
        """Like kill -9: nothing more is sent, nothing is cleaned up at the server; what is under way arrives."""
        self.client.crash()
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])

    async def restart(self, *, after: float = 0.0) -> None:
        """Crash, stay away for a while, and start."""
        await self.crash()
        await asyncio.sleep(after)
        self.start()


class World:
    """The server and everybody around it. Everything random in it comes from `random`."""

    def __init__(
        self,
        seed: int | str,
        *,
        rates: Mapping[str, float] | None = None,
        muted: Mapping[str, Collection[int]] | None = None,
        slow_commits: float = 0.0,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.seed = seed
        self.random = random.Random(f"world/{seed}")
        self.server = Server(virtual.Clock(self.loop), seed=seed)
        self.judges: list[Judge] = []
        self.faults: dict[str, Faults] = {}
        self._rates = dict(rates or {})
        self._muted = dict(muted or {})
        self._slow_commits = slow_commits
        self.commits: list[Change] = []
        self.server.store.on_commit.append(self._judge)
        if slow_commits:
            self.server.writer.before_commit = self._pause

    def process(self, name: str, body: Body, *, user: User | None = None, skew: float = 0.0) -> Process:
        """A process that is started now. Its wall clock is off by `skew` seconds."""
        clock = virtual.Clock(self.loop, skew=skew)
        process = Process(self, name, user or User(name), body, clock)
        process.start()
        return process

    def client(self, user: User) -> Client:
        """A connection without faults, for the story itself."""
        return Client(self.server, user)

    def faults_for(self, name: str) -> Faults:
        """The troubles of one connection."""
        muted = self._muted.get(name, ())
        self.faults[name] = Faults(f"{self.seed}/{name}", self._rates, muted=muted)
        return self.faults[name]

    def quiet(self) -> None:
        """End all trouble, now and for processes still to come."""
        self._rates.clear()
        for faults in self.faults.values():
            faults.quiet()

    def drawn(self) -> list[tuple[str, Drawn]]:
        """All faults so far, by connection."""
        return [(name, drawn) for name, faults in self.faults.items() for drawn in faults.drawn]

    async def _pause(self, _attributes: Attributes) -> None:
        await asyncio.sleep(self.random.uniform(0, self._slow_commits))

    def _judge(self, change: Change) -> None:
        self.commits.append(change)
        try:
            for judge in self.judges:
                judge(change)
        except Exception as broken:
            assert isinstance(self.loop, virtual.VirtualLoop)
            self.loop.fail(broken)
            raise

    def told(self, last: int | None = _SHOWN) -> str:
        """The last commits (None: all of them), a line each."""
        lines = [
            f"{change.time:10.3f}s {change.revision:5} {change.operation:6} {'/'.join(change.key[1:])}"
            f"{'/' if change.subresource else ''}{change.subresource} by {change.user}"
            for change in self.commits[-last if last else 0 :]
        ]
        return "\n".join(lines)


def simulate(
    story: Callable[[World], Awaitable[None]],
    *,
    seed: int | str,
    limit: float = 24 * 3600.0,
    rates: Mapping[str, float] | None = None,
    muted: Mapping[str, Collection[int]] | None = None,
    slow_commits: float = 0.0,
) -> World:
    """Run a story in a world of its own; the world is returned for a look at what became of it."""
    worlds: list[World] = []

    async def main() -> None:
        worlds.append(World(seed, rates=rates, muted=muted, slow_commits=slow_commits))
        await story(worlds[0])

    try:
        virtual.run(main, limit=limit)
    except Exception as cause:
        if not worlds:
            raise
        raise Broken(seed, cause, worlds[0].drawn(), worlds[0].told()) from cause
    return worlds[0]
