"""A run as a picture: who held what, when it was written, and what troubled whom; time goes to the right."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence

from tests.chaos.faults import Fault
from tests.chaos.history import Grant, Operation
from tests.chaos.play import ASSETS, Outcome

WIDTH, LEFT, LANE, BAR = 1400, 70, 16, 26
COLOURS = ("#4c78a8", "#72b7b2", "#b279a2", "#9d755d", "#f2cf5b", "#54a24b")
WRITES = {"ok": "#1a7f37", "refused": "#cf222e", "": "#6e7781"}
TROUBLES = {
    "kill": "#cf222e",
    "stop": "#bc4c00",
    "cut": "#8250df",
    "slow": "#d4a72c",
    "clock": "#0969da",
    "expired": "#57606a",
}
_SECOND = 1_000_000_000


def picture(outcome: Outcome) -> str:
    """The picture, as SVG."""
    lanes = _lanes(outcome.faults)
    top = 34 + LANE * (max(lanes, default=0) + 1)
    height = top + len(ASSETS) * (BAR + 40) + 30
    scale = _Scale(outcome.began, outcome.ended)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_legend(),
        *_axis(scale, outcome, height),
    ]
    for fault, lane in zip(outcome.faults, lanes, strict=True):
        parts.append(_trouble(scale, fault, 30 + LANE * lane))
    for number, asset in enumerate(ASSETS):
        parts += _asset(scale, outcome, asset, top + number * (BAR + 40))
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """From moments to places."""

    def __init__(self, began: int, ended: int) -> None:
        self._began = began
        self._per_pixel = (ended - began) / (WIDTH - LEFT - 20)

    def __call__(self, moment: int) -> float:
        return round(LEFT + (moment - self._began) / self._per_pixel, 1)


def _lanes(faults: Sequence[Fault]) -> list[int]:
    """Troubles come one after another; their names need more room, hence several lanes."""
    return [number % 6 for number, _ in enumerate(faults)]


def _legend() -> Iterator[str]:
    items = [(f"write {name or 'without an answer'}", colour) for name, colour in WRITES.items()]
    items += list(TROUBLES.items())
    place = LEFT
    for name, colour in items:
        yield f'<rect x="{place}" y="6" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{place + 14}" y="15">{name}</text>'
        place += 34 + 6 * len(name)


def _axis(scale: _Scale, outcome: Outcome, height: int) -> Iterator[str]:
    seconds = (outcome.ended - outcome.began) // _SECOND
    step = next(step for step in (5, 10, 30, 60, 300, 3600) if seconds / step <= 24)
    for second in range(0, seconds + 1, step):
        x = scale(outcome.began + second * _SECOND)
        yield f'<line x1="{x}" y1="24" x2="{x}" y2="{height - 18}" stroke="#d0d7de"/>'
        yield f'<text x="{x}" y="{height - 6}" text-anchor="middle">{second} s</text>'


def _trouble(scale: _Scale, fault: Fault, y: int) -> str:
    x, width = scale(fault.began), max(1.0, scale(fault.ended) - scale(fault.began))
    colour = TROUBLES.get(fault.name.partition(" ")[0], "#57606a")
    name = html.escape(fault.name)
    return (
        f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{LANE - 4}" fill="{colour}" fill-opacity="0.8">'
        f"<title>{name}</title></rect>"
        f'<text x="{x + width + 2:.1f}" y="{y + 10}" font-size="9">{name}</text>'
    )


def _asset(scale: _Scale, outcome: Outcome, asset: str, y: int) -> Iterator[str]:
    yield f'<text x="4" y="{y + 17}" font-weight="bold">{asset}</text>'
    grants = sorted((g for g in outcome.grants if g.asset == asset and g.told), key=lambda g: g.told or 0)
    for grant, following in itertools.zip_longest(grants, grants[1:]):
        yield _holder(scale, grant, following.told if following else outcome.ended, y)
    for operation in outcome.operations:
        if operation.asset == asset and operation.kind == "write":
            yield _write(scale, operation, y + BAR + 2)


def _holder(scale: _Scale, grant: Grant, next_told: int, y: int) -> str:
    x, width = scale(grant.told or 0), scale(grant.released or next_told) - scale(grant.told or 0)
    colour = COLOURS[int(grant.client.rpartition("-")[2]) % len(COLOURS)]
    return (
        f'<rect x="{x}" y="{y}" width="{max(1.0, width):.1f}" height="{BAR}" fill="{colour}">'
        f"<title>token {grant.token}: {html.escape(grant.client)}</title></rect>"
        f'<text x="{x + 2}" y="{y + 17}" font-size="9" fill="#ffffff">{grant.token}</text>'
    )


def _write(scale: _Scale, operation: Operation, y: int) -> str:
    row = {"ok": 0, "refused": 9}.get(operation.result, 18)
    return (
        f'<rect x="{scale(operation.call)}" y="{y + row}" width="1.4" height="8" '
        f'fill="{WRITES[operation.result]}"/>'
    )
