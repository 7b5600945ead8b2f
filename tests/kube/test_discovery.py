"""From a kind to the resource that is served."""

import pytest

from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import KindNotFound, ServerError
from assetlock.kube.resources import DEPLOYMENTS, NAMESPACES

from .servers import answer, failure, in_turn, serving


def kinds(*entries):
    return answer(
        {"resources": [{"name": name, "kind": kind, "namespaced": spaced} for name, kind, spaced in entries]}
    )


APPS = kinds(("deployments", "Deployment", True), ("deployments/scale", "Scale", True))


@pytest.fixture
def clock():
    class Clock:
        time = 0.0

        def __call__(self):
            return self.time

    return Clock()


async def test_a_kind_is_looked_up_once_and_remembered(connect, clock):
    async with serving(in_turn(APPS)) as server:
        discovery = Discovery(connect(server), clock=clock)
        assert await discovery.resource_for("apps/v1", "Deployment") == DEPLOYMENTS
        assert await discovery.resource_for("apps/v1", "Deployment") == DEPLOYMENTS
        assert [request.path for request in server.requests] == ["/apis/apps/v1"]


async def test_the_core_group_has_a_path_of_its_own(connect):
    async with serving(in_turn(kinds(("namespaces", "Namespace", False)))) as server:
        assert await Discovery(connect(server)).resource_for("v1", "Namespace") == NAMESPACES
        assert server.requests[0].path == "/api/v1"


async def test_a_group_that_is_not_served_is_no_kind(connect):
    async with serving(in_turn(failure(404))) as server:
        with pytest.raises(KindNotFound, match="does not serve 'nope/v1'"):
            await Discovery(connect(server)).resource_for("nope/v1", "Nope")


@pytest.mark.parametrize("kind", ["deployment", "deployments", "DEPLOYMENT"])
async def test_a_kind_that_is_nearly_right_gets_a_hint(connect, kind):
    async with serving(in_turn(APPS)) as server:
        with pytest.raises(KindNotFound, match="is 'Deployment' meant"):
            await Discovery(connect(server)).resource_for("apps/v1", kind)


async def test_a_subresource_is_no_kind(connect):
    async with serving(in_turn(APPS)) as server:
        with pytest.raises(KindNotFound):
            await Discovery(connect(server)).resource_for("apps/v1", "Scale")


async def test_an_entry_that_names_nothing_hides_no_other(connect):
    entries = [
        {},
        {"name": "x"},
        {"kind": "X"},
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
    ]
    async with serving(in_turn(answer({"resources": entries}))) as server:
        assert await Discovery(connect(server)).resource_for("apps/v1", "Deployment") == DEPLOYMENTS


async def test_a_kind_that_was_missing_is_found_seconds_after_it_appears(connect, clock):
    async with serving(in_turn(failure(404), APPS)) as server:
        discovery = Discovery(connect(server), clock=clock)
        for time in (0.0, 9.9):
            clock.time = time
            with pytest.raises(KindNotFound):
                await discovery.resource_for("apps/v1", "Deployment")
        clock.time = 10.0
        assert await discovery.resource_for("apps/v1", "Deployment") == DEPLOYMENTS


async def test_an_aggregated_server_that_does_not_answer_is_not_taken_for_a_missing_kind(connect):
    async with serving(in_turn(*[failure(503)] * 5)) as server:
        with pytest.raises(ServerError):
            await Discovery(connect(server)).resource_for("metrics.k8s.io/v1beta1", "PodMetrics")


async def test_what_was_known_still_counts_while_the_server_does_not_answer(connect, clock):
    async with serving(in_turn(APPS, *[failure(503)] * 5)) as server:
        discovery = Discovery(connect(server), clock=clock)
        await discovery.resource_for("apps/v1", "Deployment")
        clock.time = 1000.0
        assert await discovery.resource_for("apps/v1", "Deployment") == DEPLOYMENTS


@pytest.mark.parametrize("api_version", ["", "a/b/c", "apps/", "/v1", "..", "a b/v1"])
async def test_what_is_no_api_version_is_no_kind(connect, api_version):
    async with serving(in_turn(failure(404))) as server:
        api: Api = connect(server)
        with pytest.raises(KindNotFound):
            await Discovery(api).resource_for(api_version, "Thing")
