"""Everything that can happen next: what clients ask for, time, administrators, and controllers with their troubles.

A controller looks and decides in one step, reads live in the next, and sends its writes one by one. Between any two
of them anything else may happen, which is how conflicts come about; a write may succeed and be answered, succeed
and lose its answer, or the controller may crash before it. One that keeps its plan while others go on is
a leader that sleeps, a cache that lags behind, or a request that is late on the wire.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from assetlock.core import names
from tests.exhaustive.deciding import ASSET, THE_LEASE, holds, plan_of
from tests.exhaustive.promises import announcement, check_change, check_world
from tests.exhaustive.state import Plan, State, World, Write, acquisitions, canonical, outdated, put
from tests.exhaustive.texts import parsed, text_of

CONTROLLERS = 2
Step = tuple[str, Callable[[], State]]
"""What happens, and how to come to the state after it: that is where a promise may turn out to be broken."""


def start() -> State:
    """An asset with one target, and nobody there yet."""
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    asset = {
        "metadata": {"name": ASSET, "uid": "asset"},
        "spec": {"targets": [target]},
        "status": {"holders": [], "fencingToken": 0},
    }
    objects = {"asset/vm": text_of(asset), "target/app": text_of({"metadata": {"name": "app", "uid": "app"}})}
    return State(World(tuple(sorted(objects.items())), (), frozenset()), (), 0)


def steps(state: State, clients: Iterable[str]) -> Iterator[Step]:
    """Each thing that can happen, and the state after it."""
    for client in clients:
        if client.startswith("job"):
            yield from _by_job(state, client)
        else:
            yield from _by_owner_of_a_lock(state, client)
    yield from _by_others(state)
    if len(state.plans) < CONTROLLERS and (plan := plan_of(state.world)) is not None:
        yield "a controller decides", partial(canonical, state.world, [*state.plans, plan], state.announced)
    for number, plan in enumerate(state.plans):
        if number == 0 or plan != state.plans[number - 1]:
            yield from _by_controller(state, number, plan)


def changed(state: State, plans: Iterable[Plan], write: Write) -> State:
    """The state after a write, which is judged, and which outdates plans."""
    world = put(state.world, write)
    check_change(state.world.get(write.place), write)
    announced = announcement(state, world, write)
    check_world(world)
    left = [rest for plan in plans if (rest := outdated(plan, write.place))]
    return canonical(world, left, announced)


def _by_owner_of_a_lock(state: State, client: str) -> Iterator[Step]:
    world, place = state.world, f"lock/{client}"
    text = world.get(place)
    if text is None:
        yield f"{client} acquires", partial(changed, state, state.plans, _asked_for(state, client))
        return
    yield f"{client} releases", partial(changed, state, state.plans, Write(place, None))
    status = parsed(text).get("status", {})
    if status.get("state") == "Held" and _has_lease(world, parsed(text)["metadata"]["uid"]):
        renewed = Write(THE_LEASE, world.get(THE_LEASE), new_term=True)
        yield f"{client} renews", partial(changed, state, state.plans, renewed)
    if status.get("state") is None and place not in world.over:
        over = world._replace(over=world.over | {place})
        yield f"{client} has waited long enough", partial(State, over, state.plans, state.announced)


def _by_job(state: State, client: str) -> Iterator[Step]:
    lease = state.world.get(THE_LEASE)
    if lease is None:
        yield f"{client} acquires", partial(changed, state, state.plans, _made_by_hand(state, client))
    elif parsed(lease)["spec"]["holderIdentity"] == client:
        yield f"{client} renews", partial(changed, state, state.plans, Write(THE_LEASE, lease, new_term=True))
        yield f"{client} releases", partial(changed, state, state.plans, Write(THE_LEASE, None))


def _by_others(state: State) -> Iterator[Step]:
    world = state.world
    lease = world.get(THE_LEASE)
    if lease is None:
        return
    if THE_LEASE not in world.over:
        over = world._replace(over=world.over | {THE_LEASE})
        yield "the term expires", partial(State, over, state.plans, state.announced)
    if not parsed(lease)["spec"]["holderIdentity"].startswith("job"):
        yield (
            "somebody revokes by deleting the Lease",
            partial(changed, state, state.plans, Write(THE_LEASE, None)),
        )


def _by_controller(state: State, number: int, plan: Plan) -> Iterator[Step]:
    others = [*state.plans[:number], *state.plans[number + 1 :]]
    yield "a controller crashes", partial(canonical, state.world, others, state.announced)
    if plan.conditions:
        if all(holds(state.world, condition) for condition in plan.conditions):
            confirmed = plan._replace(conditions=())
            yield (
                "a controller reads live",
                partial(canonical, state.world, [*others, confirmed], state.announced),
            )
        return
    write, rest = plan.writes[0], plan._replace(writes=plan.writes[1:])
    if write.create and state.world.get(write.place) is not None:
        return
    yield f"a controller writes {write.place}", partial(changed, state, [*others, *_unless_done(rest)], write)
    if rest.writes:
        yield f"a controller writes {write.place}; the answer is lost", partial(changed, state, others, write)


def _unless_done(plan: Plan) -> list[Plan]:
    return [plan] if plan.writes else []


def _asked_for(state: State, client: str) -> Write:
    body = {
        "metadata": {"name": client, "uid": _unused(state, client)},
        "spec": {"assetName": ASSET, "wait": "2h", "ttl": "60s", "holder": {"username": f"user-of-{client}"}},
        "status": {},
    }
    return Write(f"lock/{client}", text_of(body), create=True)


def _made_by_hand(state: State, client: str) -> Write:
    annotations = {
        names.OWNER_ANNOTATION: f"- user-of-{client}",
        names.ACQUISITION_ANNOTATION: _unused(state, client),
    }
    meta = {
        "name": names.lease_name(ASSET),
        "uid": "lease",
        "labels": {names.ASSET_LABEL: ASSET},
        "annotations": annotations,
    }
    spec = {"holderIdentity": client, "leaseDurationSeconds": 60}
    return Write(THE_LEASE, text_of({"metadata": meta, "spec": spec}), create=True, new_term=True)


def _unused(state: State, client: str) -> str:
    """An id for a new acquisition of the client's that nothing remembers."""
    texts = [text for _, text in state.world.objects]
    texts += [write.text or "" for plan in state.plans for write in plan.writes]
    texts += [condition.uid for plan in state.plans for condition in plan.conditions]
    remembered = acquisitions(texts)
    return next(uid for n in itertools.count() if (uid := f"{client}.{n}.") not in remembered)


def _has_lease(world: World, acquisition: str) -> bool:
    lease = world.get(THE_LEASE)
    if lease is None:
        return False
    found = parsed(lease)["metadata"]["annotations"].get(names.ACQUISITION_ANNOTATION)
    return bool(found == acquisition)
