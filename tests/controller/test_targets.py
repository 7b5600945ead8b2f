"""What is remembered of targets that can't be fenced."""

from __future__ import annotations

from assetlock.controller.cache import AssetKey
from assetlock.controller.clock import SystemClock
from assetlock.controller.targets import Targets
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.model.asset import Asset, AssetSpec, Target
from assetlock.model.meta import ObjectMeta
from tests.sim.virtual import run

KEY = AssetKey("shop", "web")
NONSENSE = Target(api_version="v1", kind="Nonsense", name="web")


class NoServer:
    """Fails the test when anything is asked of it."""

    def __getattr__(self, name: str) -> None:
        raise AssertionError(f"{name} was used")


def test_the_problem_of_a_target_that_is_named_no_longer_is_not_rechecked_for_ever() -> None:
    async def story() -> None:
        api = Api(NoServer())  # type: ignore[arg-type]
        targets = Targets(api, Discovery(api), SystemClock(), lambda _: None)
        targets.problem(KEY, NONSENSE, "the API server has no kind 'Nonsense'")
        assert targets.recheck_at(KEY) is not None
        await targets.observe(KEY, Asset(metadata=ObjectMeta(name="web", namespace="shop"), spec=AssetSpec()))
        assert targets.recheck_at(KEY) is None

    run(story, limit=60)
