"""One schedule: everything that happens in it follows from its seed.

Two controllers, clients of all kinds, and trouble as the plan has it; then the trouble ends, and all must settle.
"""

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from assetlock.core import names
from assetlock.kube import resources
from tests.sim import faults, freezing, policies, twists, virtual
from tests.sim.admission import ADMIN, User
from tests.sim.clients import (
    NAMESPACE,
    Board,
    Job,
    Locker,
    Writer,
    delete_leases,
    resize,
    users_of,
)
from tests.sim.closures import Closures
from tests.sim.faults import WatchTrouble
from tests.sim.judges import Judges
from tests.sim.kinds import ASSETS, CONFIGMAPS, LEASES, NAMESPACES
from tests.sim.operator import FailOnErrors, Operator
from tests.sim.plan import Plan, Twist
from tests.sim.server import Request
from tests.sim.shrinking import Schedule
from tests.sim.store import Change, encode
from tests.sim.virtual import VirtualLoop
from tests.sim.webhooks import Webhooks
from tests.sim.world import Process, World, simulate

SETTLE_LIMIT = 150.0
_LOG = logging.getLogger("assetlock")


class Story:
    """A schedule as it runs."""

    def __init__(self, world: World, plan: Plan, targets: Sequence[str] = ("config", "more")) -> None:
        self._world = world
        self._plan = plan
        self._assets = ["vm", "db"] if plan.shared_target else ["vm"]
        self._targets = list(targets)[: plan.targets]
        self._first = len(self._targets)
        if plan.joint:
            self._assets, self._targets = ["vm", "db", "web"], [*self._targets, "page"]
        self.judges = Judges(world.server.store, plan.strictness)
        self.webhooks = Webhooks(virtual.Clock(world.loop, skew=plan.admission_skew), world.seed)
        self.operators: list[tuple[Operator, Process]] = []
        self._stricken: set[object] = set()
        self._left = {"crash": plan.crashes, "freeze": plan.freezes, "starve": plan.starved}
        self._strikes: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Set up, act, and settle."""
        world, plan = self._world, self._plan
        await self.begin()
        board = Board(world.server.store)
        if any(self._left.values()):
            world.server.store.on_commit.append(self._maybe_strike)
        clients = await self._clients(board)
        stage = twists.Stage(world, board, plan, self._assets, self._random("twists"))
        looking = asyncio.create_task(twists.end_quarantines(stage)) if plan.has(Twist.QUARANTINE) else None
        acting = [asyncio.create_task(self._jump())] if plan.jumps else []
        acting += [asyncio.create_task(self._shut_admission_down())] if plan.outages else []
        acting += [asyncio.create_task(self._slow_answers_down())] if plan.slow_answers else []
        if plan.meddling:
            meddling = delete_leases(world, board, self._random("meddling"), self._assets, plan)
            acting.append(asyncio.create_task(meddling))
            resizing = resize(world, self._random("resizing"), self._assets[0], plan)
            acting.append(asyncio.create_task(resizing))
        acting += [asyncio.create_task(actor(stage)) for actor in twists.actors(plan)]
        await asyncio.sleep(plan.seconds)
        for task in acting:
            task.cancel()
        await asyncio.gather(*acting, return_exceptions=True)
        await self._settle(clients, stage)
        if looking is not None:
            looking.cancel()

    async def begin(self) -> None:
        """The assets, their targets, the policies, and the controllers."""
        world, plan = self._world, self._plan
        assert isinstance(world.loop, VirtualLoop)
        stops = plan.freezes > 0 or plan.starved > 0
        if stops:
            freezing.install(world.loop)
        world.judges += [self.judges, Closures(world.server.store, plan.strictness)]
        world.server.writer.plugins += [*self.webhooks.plugins(), *policies.plugins()]
        await self._set_up()
        for number, skew in enumerate(plan.skews):
            operator = Operator(world.seed, elected=plan.elected, freezes=stops)
            user = User(names.CONTROLLER_USER)
            process = world.process(f"operator-{number}", operator.run, user=user, skew=skew)
            self.operators.append((operator, process))

    def _random(self, purpose: str) -> random.Random:
        return random.Random(f"{purpose}/{self._world.seed}")

    async def _set_up(self) -> None:
        for resource, policy in policies.all_policies():
            await self._create(resource.path(None), policy)
        space: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await self._create(resources.NAMESPACES.path(None), space)
        for name in self._targets:
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            await self._create(resources.CONFIG_MAPS.path(NAMESPACE), {**body, "data": {}})
        named = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name} for name in self._targets]
        scalable = []
        if self._plan.scales:
            web = {"apiVersion": "apps/v1", "kind": "Deployment"}
            await self._create(resources.DEPLOYMENTS.path(NAMESPACE), {**web, "metadata": {"name": "web"}})
            scalable = [{**web, "name": "web"}]
        first, page = named[: self._first], named[self._first :]
        own = ([*first, *scalable], first[:1] if self._plan.shared_target else [], page)
        extra = twists.of_assets(self._plan)
        for asset, targets in zip(self._assets, own, strict=False):
            body = {
                "apiVersion": names.API_VERSION,
                "kind": "Asset",
                "metadata": {"name": asset, "labels": {"pool": "a"} if asset != "db" else {}},
                "spec": {"type": "VM", "targets": targets, "capacity": self._plan.capacity, **extra},
            }
            await self._create(resources.ASSETS.path(NAMESPACE), body)

    async def _create(self, path: str, body: dict[str, Any]) -> None:
        """What is there from the beginning comes about without a network."""
        reply = await self._world.server.handle(Request(ADMIN, "POST", path, {}, {}, encode(body)))
        assert reply.status == 201, reply.body

    async def _clients(self, board: Board) -> list[Process]:
        world, plan, end = self._world, self._plan, self._world.loop.time() + self._plan.seconds
        users = list(users_of(plan.lockers)) + [f"job-{number}" for number in range(plan.jobs)]
        clients: list[Process] = []
        admission = world.client(User(names.ADMISSION_USER))
        for user in users:
            rng = self._random(user)
            if user.startswith("job"):
                run = Job(board, rng, self._assets, plan, end).run
            else:
                twisted = functools.partial(twists.of_lock, plan)
                run = Locker(board, admission, rng, self._assets, plan, end, twisted).run
            as_pod = user.startswith("user") and plan.has(Twist.PODS)
            who = await twists.start_pod(world, user) if as_pod else None
            clients.append(world.process(user, run, user=who))
        names_of = [client.user.name for client in clients]
        writer = Writer(world, self._random("writer"), [*names_of, "stranger"], self._targets, plan, end)
        clients.append(world.process("writer", writer.run))
        return clients

    def _maybe_strike(self, change: Change) -> None:
        """Trouble finds controllers where it hurts: between two of their writes."""
        rng, left = self._world.random, self._left
        kinds = [kind for kind, count in left.items() if count]
        if not kinds or change.user != names.CONTROLLER_USER or rng.random() > 0.1 / self._plan.pace:
            return
        kind = rng.choice(kinds)
        operator, process = rng.choice(self.operators)
        if operator in self._stricken:
            return
        left[kind] -= 1
        self._stricken.add(operator)
        hits = {"crash": self._crash, "freeze": self._freeze, "starve": self._starve}
        hit = hits[kind](operator, process)
        task = asyncio.get_running_loop().create_task(hit, name=kind)
        self._strikes.add(task)
        task.add_done_callback(self._strikes.discard)

    async def _crash(self, operator: Operator, process: Process) -> None:
        await asyncio.sleep(self._world.random.uniform(0, 0.02))
        with self._trouble(operator):
            await process.restart(after=self._world.random.expovariate(0.5))

    async def _freeze(self, operator: Operator, _: Process) -> None:
        rng = self._world.random
        await asyncio.sleep(rng.uniform(0, 0.02))
        with self._trouble(operator), operator.gate.shut():
            await asyncio.sleep(rng.choice([0.5, 3.0, 6.0, 12.0]) * rng.uniform(0.8, 1.2))

    async def _starve(self, operator: Operator, _: Process) -> None:
        """It runs for a twentieth of the time, in slices."""
        rng, loop = self._world.random, self._world.loop
        with self._trouble(operator):
            ends = loop.time() + rng.choice([1.0, 4.0, 8.0]) * rng.uniform(0.8, 1.2)
            while loop.time() < ends:
                with operator.gate.shut():
                    await asyncio.sleep(0.19)
                await asyncio.sleep(0.01)

    @contextlib.contextmanager
    def _trouble(self, stricken: object) -> Iterator[None]:
        """One operator, or what all need, is out of order; deadlines count from when all are well again."""
        self._stricken.add(stricken)
        self.judges.trouble_at = float("inf")
        yield
        self._stricken.discard(stricken)
        if not self._stricken:
            self.judges.trouble_at = self._world.loop.time()

    async def _jump(self) -> None:
        rng = self._random("jumps")
        while True:
            await asyncio.sleep(rng.uniform(1, 8) * self._plan.pace)
            _, process = rng.choice(self.operators)
            process.clock.jump(rng.uniform(-3600, 3600))

    async def _shut_admission_down(self) -> None:
        rng, pace = self._random("outages"), self._plan.pace
        for _ in range(self._plan.outages):
            await asyncio.sleep(rng.uniform(0, 2) * pace)
            with self.webhooks.down():
                await asyncio.sleep(rng.choice([0.1, 1.0, 3.0]) * pace)

    async def _slow_answers_down(self) -> None:
        """Each answer to a controller takes seconds, until those that are under way have come."""
        rng, pace = self._random("slow answers"), self._plan.pace
        for _ in range(self._plan.slow_answers):
            await asyncio.sleep(rng.uniform(0, 2) * pace)
            drag = rng.choice([0.5, 3.0])
            with self._trouble(self), self._dragged(drag):
                await asyncio.sleep(rng.choice([0.5, 2.0, 5.0]) * pace)
            with self._trouble(self):
                await asyncio.sleep(drag)

    @contextlib.contextmanager
    def _dragged(self, drag: float) -> Iterator[None]:
        connections = [process.client.faults for _, process in self.operators]
        for faulty in connections:
            faulty.drag = drag
        yield
        for faulty in connections:
            faulty.drag = 0.0

    async def _settle(self, clients: list[Process], stage: twists.Stage) -> None:
        """All trouble ends; what was asked for is granted or fails, and nothing of it stays."""
        self._left = {}
        while self._strikes:
            await asyncio.wait(self._strikes)
        self._world.quiet()
        loop, begun = self._world.loop, self._world.loop.time()
        while left := self._left_over(clients):
            assert loop.time() < begun + SETTLE_LIMIT, f"after {SETTLE_LIMIT}s there are still {left}"
            await asyncio.sleep(1.0)
            await twists.let_leases_go(stage)
            await twists.clear_windows_away(stage)

    def _went_with_its_asset(self, target: str) -> bool:
        """What a deleted asset has fenced, and the one made anew does not name, is forgotten by who starts then."""
        plan = self._plan
        started_anew = plan.crashes > 0 or plan.freezes > 0 or plan.elected
        assets = self._world.server.store.objects(ASSETS)
        named = {each["name"] for asset in assets for each in asset["spec"]["targets"]}
        remade = plan.has(Twist.RETARGETED) and plan.has(Twist.REMADE_ASSET)
        return remade and started_anew and target not in named

    def _left_over(self, clients: list[Process]) -> list[str]:
        store = self._world.server.store
        left = [f"client {c.name}" for c in clients if c.task and not c.task.done()]
        left += [f"lock {name}" for name in self.judges.waiting()]
        for key, _ in store.select(LEASES):
            left += [f"Lease {key.name}"] if key.name.startswith(("asset.", "asset-")) else []
        for key, version in store.select(CONFIGMAPS):
            if policies.claims_on(version.obj) and not self._went_with_its_asset(key.name):
                left.append(f"stamps on {key.name}")
        for key, version in store.select(NAMESPACES):
            left += [f"guards on {key.name}"] if version.obj["metadata"].get("annotations") else []
        for key, version in store.select(ASSETS):
            status = version.obj.get("status", {})
            if status.get("lockState") != "Unlocked" or status.get("queueLength"):
                left.append(f"status of {key.name}: {status}")
        return left


def play(schedule: Schedule) -> World:
    """Run a schedule. Raises `Broken` when something was not as it must be."""

    async def story(world: World) -> None:
        await Story(world, schedule.plan).run()

    return tell(story, schedule.plan, schedule.seed, schedule.muted)


def schedule_of(seed: int | str) -> Schedule:
    """The schedule that a seed stands for."""
    return Schedule(seed, Plan.of(seed))


def tell(
    story: Callable[[World], Awaitable[None]],
    plan: Plan,
    seed: int | str,
    muted: Mapping[str, Collection[int]] | None = None,
) -> World:
    """Run any story under the plan's troubles; what the controller would log as an error ends it."""

    async def supervised(world: World) -> None:
        assert isinstance(world.loop, VirtualLoop)
        handler = FailOnErrors(world.loop)
        _LOG.addHandler(handler)
        level, propagate = _LOG.level, _LOG.propagate
        _LOG.setLevel(logging.ERROR)
        _LOG.propagate = False
        try:
            await story(world)
        finally:
            _LOG.removeHandler(handler)
            _LOG.setLevel(level)
            _LOG.propagate = propagate

    random.seed(f"anything else/{seed}")
    rates = faults.rough(plan.roughness) if plan.roughness else {}
    if plan.stale_watches:
        rates |= {str(kind): 0.3 for kind in (WatchTrouble.SILENT, WatchTrouble.LATE)}
    return simulate(story, seed=seed, limit=3600, rates=rates, muted=muted, slow_commits=plan.slow_commits)
