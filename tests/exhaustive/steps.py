"""Everything that can happen next: what clients ask for, time, administrators, and controllers with their troubles.

A controller looks and decides in one step, reads live in the next, and sends its writes one by one. Between any two
of them anything else may happen, which is how conflicts come about; a write may succeed and be answered, succeed
and lose its answer, or the controller may crash before it. One that keeps its plan while others go on is
a leader that sleeps, a cache that lags behind, or a request that is late on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from assetlock.core import names
from tests.exhaustive.deciding import ASSET, THE_WINDOW, holds, plan_of, window_of
from tests.exhaustive.promises import (
    announced_in,
    announcement,
    capacity_of,
    check_change,
    check_decision,
    check_world,
    settled,
)
from tests.exhaustive.state import (
    WINDOW_LOCK,
    Objects,
    Plan,
    State,
    World,
    Write,
    canonical,
    outdated,
    put,
    texts_in,
    unused,
    with_uid,
)
from tests.exhaustive.texts import Json, parsed, text_of

CONTROLLERS = 2
NIGHTS = (1, 2)
_MODES = {"lock": "Exclusive", "read": "Shared", "care": "Maintenance"}
Step = tuple[str, Callable[[], State]]
"""What happens, and how to come to the state after it: that is where a promise may turn out to be broken."""


def start(capacity: int) -> State:
    """An asset with so many slots and one target, and nobody there yet."""
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    asset = {
        "metadata": {"name": ASSET, "uid": "asset"},
        "spec": {"targets": [target], "capacity": capacity},
        "status": {"holders": [], "fencingToken": 0},
    }
    objects = {"asset/vm": text_of(asset), "target/app": text_of({"metadata": {"name": "app", "uid": "app"}})}
    return State(World(tuple(sorted(objects.items())), (), frozenset()), (), 0)


def begun(state: State, client: str) -> State:
    """The state once the first client has asked and been told that it holds."""
    world = settled(put(state.world, _asked_for(state, client)))
    return canonical(world, [], max(announced_in(world)))


def steps(state: State, clients: Iterable[str]) -> Iterator[Step]:
    """Each thing that can happen, and the state after it."""
    for client in clients:
        if client.startswith("job"):
            yield from _by_job(state, client)
        elif client.startswith("window"):
            yield from _by_window(state, client.partition(" ")[2])
        else:
            yield from _by_owner_of_a_lock(state, client)
    yield from _by_others(state)
    if len(state.plans) < CONTROLLERS and (plan := plan_of(state.world)) is not None:
        yield "a controller decides", partial(_decided, state, plan)
    for number, plan in enumerate(state.plans):
        if number == 0 or plan != state.plans[number - 1]:
            yield from _by_controller(state, number, plan)


def changed(state: State, plans: Iterable[Plan], write: Write) -> State:
    """The state after a write, which is judged, and which outdates plans."""
    plans = tuple(plans)
    write = with_uid(state.world, plans, write)
    world = put(state.world, write)
    check_change(state.world.get(write.place), write)
    announced = announcement(state, world, write)
    check_world(world)
    left = [rest for plan in plans if (rest := outdated(plan, write.place))]
    return canonical(world, left, announced)


def _decided(state: State, plan: Plan) -> State:
    check_decision(state.world, plan)
    return canonical(state.world, [*state.plans, plan], state.announced)


def _by_window(state: State, when_held: str) -> Iterator[Step]:
    """Time goes on: that outdates no plan. A night is another one as long as anything remembers the last."""
    world = state.world
    others = tuple(item for item in world.objects if item[0] != THE_WINDOW)
    if len(others) < len(world.objects):
        yield "the window closes", partial(_in_another_world, state, others)
        return
    remembered = "".join(texts_in(world, state.plans))
    if night := next((night for night in NIGHTS if f"night {night}" not in remembered), None):
        opened = tuple(sorted([*others, (THE_WINDOW, window_of(night, when_held))]))
        yield "the window opens", partial(_in_another_world, state, opened)


def _in_another_world(state: State, objects: Objects) -> State:
    return state._replace(world=state.world._replace(objects=objects))


def _by_owner_of_a_lock(state: State, client: str) -> Iterator[Step]:
    world, place = state.world, f"lock/{client}"
    text = world.get(place)
    if text is None:
        yield f"{client} acquires", partial(changed, state, state.plans, _asked_for(state, client))
        return
    yield f"{client} releases", partial(changed, state, state.plans, Write(place, None))
    state_of_lock = parsed(text)["status"].get("state")
    own = _leases_of(world, parsed(text)["metadata"]["uid"])
    if state_of_lock == "Held" and own:
        renewed = Write(own[0], world.get(own[0]), new_term=True)
        yield f"{client} renews", partial(changed, state, state.plans, renewed)
    if state_of_lock is None and place not in world.over:
        over = world._replace(over=world.over | {place})
        yield f"{client} has waited long enough", partial(State, over, state.plans, state.announced)


def _by_job(state: State, client: str) -> Iterator[Step]:
    world = state.world
    own = [place for place, text in world.under("lease/") if _holder(text) == client]
    if own:
        renewed = Write(own[0], world.get(own[0]), new_term=True)
        yield f"{client} renews", partial(changed, state, state.plans, renewed)
        yield f"{client} releases", partial(changed, state, state.plans, Write(own[0], None))
        return
    for slot in range(capacity_of(world)):
        lease = names.lease_name(ASSET, slot)
        if world.get(f"lease/{lease}") is None:
            made = _made_by_hand(state, client, lease)
            yield f"{client} acquires {lease}", partial(changed, state, state.plans, made)


def _by_others(state: State) -> Iterator[Step]:
    world = state.world
    for acquisition in sorted({_acquisition(text) for _, text in world.under("lease/")}):
        own = _leases_of(world, acquisition)
        until_the_window_closes = acquisition.startswith(WINDOW_LOCK) and world.get(THE_WINDOW)
        if not world.over.issuperset(own) and not until_the_window_closes:
            over = world._replace(over=world.over.union(own))
            yield f"the term of {acquisition} expires", partial(State, over, state.plans, state.announced)
    for place, text in world.under("lease/"):
        if not _holder(text).startswith("job"):
            deleted = partial(changed, state, state.plans, Write(place, None))
            yield f"somebody revokes by deleting {place}", deleted


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
    mode = _MODES[client.partition("-")[0]]
    spec: Json = {
        "assetName": ASSET,
        "mode": mode,
        "wait": "2h",
        "ttl": "60s",
        "holder": {"username": f"user-of-{client}"},
    }
    if mode == "Maintenance":
        spec["maintainers"] = [{"kind": "User", "name": "keeper"}]
    meta = {"name": client, "uid": unused(state.world, state.plans, client)}
    return Write(f"lock/{client}", text_of({"metadata": meta, "spec": spec, "status": {}}), create=True)


def _made_by_hand(state: State, client: str, lease: str) -> Write:
    annotations = {
        names.OWNER_ANNOTATION: f"- user-of-{client}",
        names.ACQUISITION_ANNOTATION: unused(state.world, state.plans, client),
    }
    meta = {
        "name": lease,
        "uid": "lease",
        "labels": {names.ASSET_LABEL: ASSET},
        "annotations": annotations,
    }
    spec = {"holderIdentity": client, "leaseDurationSeconds": 60}
    return Write(f"lease/{lease}", text_of({"metadata": meta, "spec": spec}), create=True, new_term=True)


def _holder(lease: str) -> str:
    return str(parsed(lease)["spec"]["holderIdentity"])


def _acquisition(lease: str) -> str:
    return str(parsed(lease)["metadata"]["annotations"][names.ACQUISITION_ANNOTATION])


def _leases_of(world: World, acquisition: str) -> list[str]:
    return [place for place, text in world.under("lease/") if _acquisition(text) == acquisition]
