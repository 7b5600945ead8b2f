"""What the clients did and were told: the operations that the checker looks for an order of.

An operation without a return has lost its answer, and may have happened at any later time, or never. A grant's end,
by release or expiry, is an operation of its own: it may happen from the earliest moment at which the term can be
over. The next grant, once announced, comes after it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator


@dataclasses.dataclass(slots=True)
class Operation:
    """One call. Times are nanoseconds on the clock of this machine that always runs forward."""

    asset: str
    client: str
    kind: str
    call: int
    token: int = 0
    value: str = ""
    result: str = ""
    end: int | None = None

    def json(self) -> dict[str, object]:
        """As the checker reads it."""
        fields = dataclasses.asdict(self)
        fields["return"] = fields.pop("end")
        return fields


@dataclasses.dataclass(slots=True)
class Grant:
    """One acquisition: when it was asked for, known to be granted, released, and may have ended at the earliest."""

    asset: str
    client: str
    lock: str
    call: int
    earliest_end: int
    token: int | None = None
    told: int | None = None
    released: int | None = None


def hurried(grants: Iterable[Grant], spans: Iterable[tuple[int, int]]) -> None:
    """While the operator's clocks are wrong, terms may end at any time: that costs time, never safety."""
    spans = list(spans)
    for grant in grants:
        if any(began <= grant.earliest_end and grant.call <= ended for began, ended in spans):
            grant.earliest_end = grant.call


def complete(operations: Iterable[Operation], grants: Iterable[Grant]) -> list[Operation]:
    """The history with acquisitions and their ends, and no operation open for longer than it can matter."""
    history = list(_settled(operations))
    granted = sorted(
        (grant for grant in grants if grant.token is not None),
        key=lambda grant: (grant.asset, grant.token or 0),
    )
    for _, group in itertools.groupby(granted, key=lambda grant: grant.asset):
        next_told: int | None = None
        for grant in reversed(list(group)):
            history += _life(grant, next_told)
            next_told = grant.told or next_told
    return sorted(history, key=lambda operation: operation.call)


def _settled(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Writes whose answer was lost, once it is known what came of them, as no two write the same.

    One that was read took effect before that read ended. One that nobody read explains nothing that the others'
    answers do not explain without it: it may as well not have arrived. Left open, each would double the search.
    """
    operations = list(operations)
    read: dict[tuple[str, str], int] = {}
    for one in operations:
        if one.kind == "read" and one.end is not None:
            read[one.asset, one.value] = min(one.end, read.get((one.asset, one.value), one.end))
    for one in operations:
        if one.kind != "write" or one.end is not None:
            yield one
        elif (seen := read.get((one.asset, one.value))) is not None:
            yield dataclasses.replace(one, end=_not_before(one.call, seen))


def _life(grant: Grant, next_told: int | None) -> list[Operation]:
    """When it was granted and when it ended, both before anybody was told of a later token: tokens only grow."""
    token = grant.token or 0
    over = min((at for at in (grant.released, next_told) if at is not None), default=None)
    acquire = Operation(
        grant.asset,
        grant.client,
        "acquire",
        grant.call,
        token,
        end=grant.told or _not_before(grant.call, next_told),
    )
    end = Operation(
        grant.asset, grant.client, "end", grant.earliest_end, token, end=_not_before(grant.earliest_end, over)
    )
    return [acquire, end]


def _not_before(call: int, end: int | None) -> int | None:
    return None if end is None else max(end, call + 1)
