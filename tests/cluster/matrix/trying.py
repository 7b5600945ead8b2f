"""Tries every cell.

What must be refused is sent in earnest; what will be admitted is a dry run, so that it changes nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator, Mapping

from tests.cluster.matrix.cells import Object, Outage, Outcome, Unexpected, outcome_of
from tests.cluster.matrix.expected import expected
from tests.cluster.matrix.objects import THINGS, Thing
from tests.cluster.matrix.requesters import REQUESTERS, Requester
from tests.cluster.matrix.stage import Stage
from tests.cluster.matrix.verbs import VERBS, Attempt, CannotExist, Verb

from assetlock.core import names
from assetlock.dev import ControlPlane

Row = tuple[Verb, Thing]
REFUSALS = frozenset({Outcome.LOCKED, Outcome.FORBIDDEN, Outcome.LATER, Outcome.UNANSWERED, Outcome.DROPPED})
AT_ONCE = 12
TRIES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """What became of every write, why some can't exist, and which objects were another at the end."""

    outcomes: Mapping[Row, Mapping[Requester, str]]
    impossible: Mapping[Row, str]
    changed: tuple[str, ...]


def impossible() -> Mapping[Row, str]:
    """The cells that can't exist, and why."""
    found = {}
    for row in ((verb, thing) for verb in VERBS for thing in THINGS):
        try:
            _ask(*row)
        except CannotExist as why:
            found[row] = str(why)
    return found


def rows() -> list[Row]:
    """The cells that exist, for all requesters."""
    missing = impossible()
    return [(verb, thing) for verb in VERBS for thing in THINGS if (verb, thing) not in missing]


async def tried(cluster: ControlPlane, outage: Outage) -> Observed:
    """Try all cells in a cluster that was set up."""
    stage = Stage(cluster)
    limit = asyncio.Semaphore(AT_ONCE)
    outcomes: dict[Row, dict[Requester, str]] = {row: {} for row in rows()}
    try:
        before = {thing: await stage.now(thing) for thing in THINGS}

        async def try_one(row: Row, by: Requester) -> None:
            async with limit:
                outcomes[row][by] = await _outcome(stage, *row, by, outage, before[row[1]])

        async with asyncio.TaskGroup() as tasks:
            for row in outcomes:
                for by in REQUESTERS:
                    tasks.create_task(try_one(row, by))
        after = {thing: await stage.now(thing) for thing in THINGS}
    finally:
        await stage.close()
    return Observed(outcomes, impossible(), tuple(_differences(before, after)))


async def _outcome(stage: Stage, verb: Verb, thing: Thing, by: Requester, outage: Outage, now: Object) -> str:
    """One cell; again with what is there by then when a controller was faster."""
    in_earnest = not verb.can_be_dry or expected(verb, thing, by, outage) in REFUSALS
    for _ in range(TRIES):
        attempt = Attempt(thing, now, by, stage.pod_uids[by])
        reply = await stage.send(verb.request(attempt), by, dry_run=not in_earnest)
        if reply.status != 409:
            break
        now = await stage.now(thing)
    try:
        return outcome_of(reply, kept=reply.status < 300 and _is_kept(verb, now, json.loads(reply.body)))
    except Unexpected as error:
        return str(error)


def _is_kept(verb: Verb, before: Object, after: Object) -> bool:
    """Whether a write that was to change what is ours on the object left that as it was."""
    touches = verb.puts_marks or (verb.takes_marks and marks(before))
    return bool(touches) and marks(before) == marks(after)


def marks(thing: Object) -> Object:
    """What on an object is ours; the label alone, without a stamp, means nothing."""
    metadata = thing["metadata"]
    every = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    ours = {key: value for key, value in every.items() if key.partition("/")[0].endswith(names.GROUP)}
    return {} if set(ours) == {names.FENCED_LABEL} else ours


def _differences(before: Mapping[Thing, Object], after: Mapping[Thing, Object]) -> Iterator[str]:
    """Which objects are not as they were.

    Status and bookkeeping are the controllers' to write; and what the holder deleted before renews its lock.
    """
    for thing, old in before.items():
        new = after[thing]
        if old["metadata"]["uid"] != new["metadata"]["uid"] or _content(old) != _content(new):
            yield f"{thing}: {_content(old)} is {_content(new)}"


def _content(thing: Object) -> Object:
    kept = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")
    metadata = {key: thing["metadata"].get(key) for key in kept}
    content = {key: value for key, value in thing.items() if key not in ("metadata", "status")}
    if isinstance(content.get("spec"), dict):
        content["spec"] = {key: value for key, value in content["spec"].items() if key != "renewTime"}
    return {**content, "metadata": metadata}


def _ask(verb: Verb, thing: Thing) -> None:
    """Make a request for a thing that might be, to see whether there is such a request at all."""
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1", "annotations": {}}
    verb.request(Attempt(thing, {"metadata": metadata}, REQUESTERS[0], None))
