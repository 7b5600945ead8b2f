"""What a call of a function locks: a fixed name, a template over its arguments, a function of them, its own name."""

from __future__ import annotations

import inspect
import os
import pathlib
import string
import sys
from collections.abc import Callable, Mapping
from typing import Any

Name = str | Callable[..., str]
Namer = Callable[[tuple[Any, ...], Mapping[str, Any]], str]


def namer(name: Name, function: Callable[..., Any]) -> Namer:
    """What gives the name for a call of ``function``; TypeError if the name does not fit the function."""
    if callable(name):
        return lambda args, kwargs: name(*args, **kwargs)
    fields = [field for _, field, _, _ in string.Formatter().parse(name) if field is not None]
    if not fields:
        fixed = name.format()
        return lambda _args, _kwargs: fixed
    signature = inspect.signature(function)
    for field in fields:
        root = field.split(".")[0].split("[")[0]
        if root not in signature.parameters:
            raise TypeError(f"{function.__qualname__} has no parameter {root!r}, which {name!r} is made of")

    def fill(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return _Filler(name).vformat(name, (), bound.arguments)

    return fill


def own_name(function: Callable[..., Any]) -> str:
    """The name of a function: its module's and its own."""
    return f"{_module(function)}.{function.__qualname__}".replace(".<locals>.", ".")


def application() -> str:
    """What keeps the locks of one program apart from those of others: ``APPLICATION_NAME``, and its environment."""
    name = os.environ.get("APPLICATION_NAME") or "default"
    environment = os.environ.get("APPLICATION_ENVIRONMENT")
    return f"{name}/{environment}" if environment else name


def _module(function: Callable[..., Any]) -> str:
    if function.__module__ != "__main__":
        return function.__module__
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec else pathlib.Path(getattr(main, "__file__", None) or "main").stem


class _Filler(string.Formatter):
    """Fills in a template; an argument that is None or empty makes no name."""

    def __init__(self, template: str) -> None:
        self._template = template

    def format_field(self, value: Any, format_spec: str) -> str:
        text = "" if value is None else format(value, format_spec)
        if not text:
            raise ValueError(f"{value!r} is nothing to make a name of, in {self._template!r}")
        return text
