"""The matrix as a page of documentation: a section for each outage, and the cells that can't exist."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence

from tests.cluster.matrix.cells import Outage, Outcome
from tests.cluster.matrix.objects import TARGETS, THINGS, Thing
from tests.cluster.matrix.requesters import REQUESTERS, Requester
from tests.cluster.matrix.trying import Row, impossible
from tests.cluster.matrix.verbs import VERBS, Verb

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "fence-matrix.md"
IMPOSSIBLE = "What can't be tried"

_HEADER = """# Who may write what to a locked asset

Every way to change an object that the API offers, tried on a real API server by every kind of requester, while the
asset is locked by a pod (`holder`). RBAC allows everything here, so what is refused is refused by the fence.
`make matrix` tries it all again and writes this page; the tests fail when the page says something else.

| in a cell | means |
| --- | --- |
{legend}

`stranger` has every verb that objects have, but none of our own (`lock`, `unlock`, `maintain`, `delegate`,
`approve`); cluster-admins have those too. What the fence is and where it ends: [fence.md](fence.md).

All targets: {targets}.
"""
_EVERY_TARGET = "all targets"
_LEGEND: Mapping[Outcome, str] = {
    Outcome.ADMITTED: "the write goes through",
    Outcome.KEPT: "the write goes through, but what fences the object stays, or is taken out if it was forged",
    Outcome.DROPPED: "answered 200 with a warning; the object stays as it was",
    Outcome.LOCKED: "refused: `Locked`, with who holds it, until when, and `Retry-After`",
    Outcome.FORBIDDEN: "refused: `Forbidden`, by the policy inside the API server",
    Outcome.LATER: "refused: try again later, which `kubectl drain` does",
    Outcome.UNANSWERED: "not possible without the webhook",
}

Outcomes = Mapping[Row, Mapping[Requester, str]]


def page(outcomes: Mapping[Outage, Outcomes]) -> str:
    """The whole page."""
    seen = {cell for table in outcomes.values() for row in table.values() for cell in row.values()}
    legend = "\n".join(f"| {word} | {meaning} |" for word, meaning in _LEGEND.items() if word in seen)
    targets = ", ".join(map(str, TARGETS))
    parts = [
        _HEADER.format(legend=legend, targets=targets),
        *(section(outage, outcomes[outage]) for outage in Outage),
    ]
    return "\n".join([*parts, what_can_not_be()])


def section(outage: Outage, outcomes: Outcomes) -> str:
    """What was observed with this down; requesters that fare alike share a column, and so do verbs a row."""
    columns = _columns(outcomes)
    heads = [", ".join(map(str, column)) for column in columns]
    return _table(_title(outage), ["", "on", *heads], _rows(outcomes, [column[0] for column in columns]))


def what_can_not_be() -> str:
    """The cells that do not exist, and why."""
    grouped: dict[tuple[str, Verb], list[Thing]] = {}
    for (verb, thing), why in impossible().items():
        grouped.setdefault((why, verb), []).append(thing)
    alike: dict[tuple[str, str], list[Verb]] = {}
    for (why, verb), things in grouped.items():
        alike.setdefault((_rest(things), why), []).append(verb)
    rows = [[", ".join(map(str, verbs)), things, why] for (things, why), verbs in alike.items()]
    return _table(IMPOSSIBLE, ["", "on", "because"], rows)


def shown(title: str) -> str:
    """A section as it stands on the page."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")
    return f"## {title}\n" + rest.partition("\n## ")[0].rstrip("\n") + "\n"


def shown_for(outage: Outage) -> str:
    """An outage's section as it stands on the page."""
    return shown(_title(outage))


def _title(outage: Outage) -> str:
    return outage.capitalize()


def _columns(outcomes: Outcomes) -> list[list[Requester]]:
    alike: dict[tuple[str, ...], list[Requester]] = {}
    for by in REQUESTERS:
        alike.setdefault(tuple(row[by] for row in outcomes.values()), []).append(by)
    return list(alike.values())


def _rows(outcomes: Outcomes, columns: Sequence[Requester]) -> Iterator[list[str]]:
    alike: dict[tuple[str, ...], list[Verb]] = {}
    for verb in VERBS:
        for cells, things in _alike(outcomes, verb, columns).items():
            alike.setdefault((_named(things, among=_tried_on(outcomes, verb)), *cells), []).append(verb)
    for (things, *cells), verbs in alike.items():
        yield [", ".join(map(str, verbs)), things, *cells]


def _alike(
    outcomes: Outcomes, verb: Verb, columns: Sequence[Requester]
) -> Mapping[tuple[str, ...], Sequence[Thing]]:
    """The objects of a verb, by what becomes of it on them."""
    alike: dict[tuple[str, ...], list[Thing]] = {}
    for thing in _tried_on(outcomes, verb):
        alike.setdefault(tuple(outcomes[verb, thing][by] for by in columns), []).append(thing)
    return alike


def _tried_on(outcomes: Outcomes, verb: Verb) -> list[Thing]:
    return [thing for thing in THINGS if (verb, thing) in outcomes]


def _rest(things: Sequence[Thing]) -> str:
    others = [str(thing) for thing in THINGS if thing not in things]
    return f"everything but {', '.join(others)}" if len(others) < len(things) else ", ".join(map(str, things))


def _named(things: Sequence[Thing], *, among: Sequence[Thing]) -> str:
    """Targets are named together where all of them that there are fare alike."""
    targets = [thing for thing in among if thing in TARGETS]
    if len(targets) > 1 and all(thing in things for thing in targets):
        rest = [str(thing) for thing in things if thing not in targets]
        return ", ".join([_EVERY_TARGET, *rest])
    return ", ".join(map(str, things))


def _table(title: str, columns: Sequence[str], rows: Iterator[list[str]] | list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return f"## {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)
