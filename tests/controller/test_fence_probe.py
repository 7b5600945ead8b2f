"""Whether the fence is enforced is tried where it is to be relied on, and believed for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from assetlock.controller.keys import AssetKey
from assetlock.controller.targets.claims import Place
from assetlock.controller.targets.fence_policies import FencePolicies
from assetlock.controller.targets.fence_probe import LONGEST, LONGEST_DOUBT, FenceProbe
from assetlock.core import names
from assetlock.core.observation import ObservedTarget
from assetlock.kube.api import Api
from assetlock.kube.resources import CONFIG_MAPS, POLICIES, POLICY_BINDINGS
from assetlock.model.asset import Target
from tests.sim import policies, virtual
from tests.sim.admission import ADMIN, Attributes, Plugin, User
from tests.sim.client import Client
from tests.sim.server import Server

KEY = AssetKey("shop", "web")
PLACE = Place("", "ConfigMap", "shop")


class Stage:
    """A ConfigMap in a simulated cluster, and the trials that are made on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = virtual.Clock(loop)
        self.server = Server(self.clock)
        self.admin = Api(Client(self.server, ADMIN))
        self.trials = 0
        self.enforced = True
        self.told: list[Place] = []
        self.server.writer.plugins += [Plugin(validate=self._admit)]
        api = Api(Client(self.server, User(names.CONTROLLER_USER)))
        self.policies = FencePolicies(api, self.clock, lambda: self.proofs.doubt())
        self.proofs = FenceProbe(api, self.clock, self.policies, self.told.append)
        self.target = ObservedTarget(Target(api_version="v1", kind="ConfigMap", name="app"))

    async def begin(self) -> None:
        await policies.install(self.admin)
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}
        made = (await self.admin.create(CONFIG_MAPS, "shop", body))["metadata"]
        self.target = ObservedTarget(
            self.target.target, uid=made["uid"], resource_version=made["resourceVersion"]
        )

    async def problem(self) -> str | None:
        return await self.proofs.problem(KEY, PLACE, CONFIG_MAPS, self.target)

    def _admit(self, attributes: Attributes) -> None:
        if not attributes.dry_run:
            return
        self.trials += 1
        if self.enforced:
            policies._fence(attributes)


def tell(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged() -> None:
        stage = Stage(asyncio.get_running_loop())
        await stage.begin()
        await story(stage)
        await stage.policies.close()

    virtual.run(staged, limit=3600)


def test_a_policy_that_refuses_the_trial_is_believed_for_minutes_and_nothing_is_written() -> None:
    async def story(stage: Stage) -> None:
        await stage.policies.missing(subresources=False)
        await asyncio.sleep(2 * LONGEST)
        revision = stage.server.store.revision
        for _ in range(10):
            assert await stage.problem() is None
            await asyncio.sleep(LONGEST / 11)
        assert stage.trials == 1
        assert stage.server.store.revision == revision

    tell(story)


def test_a_trial_that_goes_through_is_a_problem_until_a_later_one_does_not() -> None:
    async def story(stage: Stage) -> None:
        stage.enforced = False
        problem = await stage.problem()
        assert problem is not None
        assert "ConfigMap objects in shop can't be fenced" in problem
        stage.enforced = True
        await asyncio.sleep(LONGEST_DOUBT)
        assert await stage.problem() is None
        assert stage.told == [PLACE]

    tell(story)


def test_a_policy_that_has_just_changed_is_believed_no_longer_than_it_has_been_so() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(60):
            assert await stage.problem() is None
            await asyncio.sleep(1)
        assert 5 <= stage.trials <= 8, "after 0, 1, 2, 4, 8, 16 and 32 seconds"

    tell(story)


def test_the_policy_on_subresources_matters_to_kinds_that_have_them() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.policies.missing(subresources=True) is None
        policy = await stage.admin.get(POLICIES, None, names.SUBRESOURCES_POLICY)
        meta = policy["metadata"]
        await stage.admin.delete(
            POLICIES, None, meta["name"], uid=meta["uid"], resource_version=meta["resourceVersion"]
        )
        await asyncio.sleep(1)
        missing = await stage.policies.missing(subresources=True) or ""
        assert "the ValidatingAdmissionPolicy assetlock-subresources is missing" in missing
        assert await stage.policies.missing(subresources=False) is None
        assert await stage.problem() is None

    tell(story)


def test_without_the_binding_nothing_is_fenced_and_with_it_all_is_tried_anew() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.problem() is None
        await asyncio.sleep(LONGEST)
        binding = await stage.admin.get(POLICY_BINDINGS, None, names.TARGETS_POLICY)
        meta = binding["metadata"]
        await stage.admin.delete(
            POLICY_BINDINGS, None, meta["name"], uid=meta["uid"], resource_version=meta["resourceVersion"]
        )
        await asyncio.sleep(1)
        problem = await stage.problem()
        assert problem is not None
        assert "the ValidatingAdmissionPolicyBinding assetlock-targets is missing" in problem
        recheck = stage.proofs.recheck_at(KEY)
        assert recheck is not None
        assert recheck >= stage.clock.monotonic() + 1, "no reason to look without a pause"
        trials = stage.trials
        again = {"apiVersion": POLICY_BINDINGS.api_version, "kind": POLICY_BINDINGS.kind}
        await stage.admin.create(POLICY_BINDINGS, None, {**again, "metadata": {"name": names.TARGETS_POLICY}})
        await asyncio.sleep(1)
        assert await stage.problem() is None
        assert stage.trials == trials + 1

    tell(story)


def test_an_object_that_has_changed_since_is_tried_as_it_is_now() -> None:
    async def story(stage: Stage) -> None:
        patch = {"metadata": {"resourceVersion": stage.target.resource_version, "labels": {"a": "b"}}}
        await stage.admin.merge_patch(CONFIG_MAPS, "shop", "app", patch)
        assert await stage.problem() is None

    tell(story)


def test_many_who_ask_at_once_make_one_trial() -> None:
    async def story(stage: Stage) -> None:
        assert await asyncio.gather(*(stage.problem() for _ in range(20))) == [None] * 20
        assert stage.trials == 1

    tell(story)
