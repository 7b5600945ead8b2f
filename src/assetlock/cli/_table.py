"""Objects as tables, JSON, YAML or names, as kubectl prints them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import click

Object: TypeAlias = Mapping[str, Any]
Column: TypeAlias = tuple[str, Callable[[Object], str]]

FORMATS = ("wide", "json", "yaml", "name")
_GAP = "   "


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``-o`` and ``--no-headers``."""
    formats = click.option("-o", "--output", type=click.Choice(FORMATS), help="Another format.")
    headers = click.option("--no-headers", is_flag=True, help="A table without its first line.")
    return formats(headers(command))


def show(
    items: Sequence[Object], columns: Sequence[Column], *, resource: str, output: str | None, no_headers: bool
) -> None:
    """Print the objects. The name of a column that is shown with ``-o wide`` only begins with ``+``."""
    if output == "json":
        click.echo(json.dumps(_listed(items), indent=2))
    elif output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(_listed(items), sort_keys=False), nl=False)
    elif output == "name":
        for item in items:
            click.echo(f"{resource}/{item['metadata']['name']}")
    else:
        _draw(items, columns, wide=output == "wide", no_headers=no_headers)


def until(time: str | None) -> str:
    """A time with what is left until then."""
    if not time:
        return ""
    left = datetime.datetime.fromisoformat(time) - datetime.datetime.now(datetime.UTC)
    return f"{time} (in {_length(left)})" if left > datetime.timedelta() else time


def age(item: Object) -> str:
    """How old an object is."""
    created = datetime.datetime.fromisoformat(item["metadata"]["creationTimestamp"])
    return _length(datetime.datetime.now(datetime.UTC) - created)


def _length(span: datetime.timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * unit:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"


def _listed(items: Sequence[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _draw(items: Sequence[Object], columns: Sequence[Column], *, wide: bool, no_headers: bool) -> None:
    shown = [(name.lstrip("+"), value) for name, value in columns if wide or not name.startswith("+")]
    rows = [] if no_headers else [[name for name, _ in shown]]
    rows += [[value(item) for _, value in shown] for item in items]
    widths = [max((len(row[index]) for row in rows), default=0) for index in range(len(shown))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(_GAP.join(cells).rstrip())
