"""What people type, checked before anything is sent, with what they may have meant."""

from __future__ import annotations

import re
from typing import Any

import click
from click.shell_completion import CompletionItem

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Name(click.ParamType[str]):
    """The name of an object: at most ``longest`` of a-z, 0-9, - and ."""

    name = "name"

    def __init__(self, what: str, longest: int) -> None:
        self._what = what
        self._longest = longest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is; a usage error says what is wrong with it, and suggests another."""
        text = str(value)
        if len(text) <= self._longest and _SUBDOMAIN.fullmatch(text):
            return text
        rule = (
            f"{self._what} has at most {self._longest} of a-z, 0-9, - and ., first and last a letter or digit"
        )
        return self.fail(f"{text!r}: {rule}{self._meant(text)}", param, ctx)

    def _meant(self, text: str) -> str:
        kind, slash, rest = text.partition("/")
        if slash and kind.lower() in ("asset", "assets", "ast", "assetlock", "assetlocks", "alk"):
            suggestion = rest
        else:
            suggestion = re.sub(r"[^a-z0-9.]+", "-", text.lower())
        suggestion = suggestion.strip("-.")[: self._longest].strip("-.")
        return f"; did you mean {suggestion}?" if _SUBDOMAIN.fullmatch(suggestion) else ""


class Asset(Name):
    """The name of an asset, completed from the cluster."""

    name = "asset"

    def __init__(self) -> None:
        super().__init__("an asset's name", 63)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The assets of the namespace."""
        from assetlock.cli import _complete

        return _complete.assets(ctx, param, incomplete)


class Lock(Name):
    """The name of an AssetLock, completed from the cluster."""

    name = "lock"

    def __init__(self) -> None:
        super().__init__("an AssetLock's name", 253)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The AssetLocks of the namespace that have not ended."""
        from assetlock.cli import _complete

        return _complete.locks(ctx, param, incomplete)


class Duration(click.ParamType[str]):
    """A duration as an AssetLock takes it, given back as it was written. ``least`` is in seconds."""

    name = "duration"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; a usage error if it is no duration, or too short."""
        from assetlock.model.durations import parse_duration

        try:
            seconds = parse_duration(str(value)).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self._least:
            self.fail(f"{value} is too short: {self._least:g}s is the least", param, ctx)
        return str(value)


class Seconds(click.ParamType[float]):
    """A duration in seconds. A bare number is seconds too, as kubectl has it."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        from assetlock.model.durations import parse_duration

        if isinstance(value, float):
            return value
        text = f"{value}s" if str(value).isdecimal() else str(value)
        try:
            return parse_duration(text).total_seconds()
        except ValueError as error:
            return self.fail(str(error), param, ctx)


ASSET = Asset()
LOCK = Lock()
NAMESPACE = Name("a namespace", 63)
