"""What every route needs: the caller, the namespace that a path means, and the process's settings and cache."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import Depends, Path, Request

from assetlock.web.cache import AssetIndex
from assetlock.web.callers import Caller, Callers
from assetlock.web.problems import problem
from assetlock.web.schemas import NAME
from assetlock.web.settings import HttpSettings

TENANT = "main"
LONGEST_TOKEN = 32 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What the process has."""

    settings: HttpSettings
    callers: Callers
    index: AssetIndex


def context_of(request: Request) -> Context:
    """The context that the app was made with."""
    found = request.app.state.context
    if not isinstance(found, Context):
        raise TypeError("the app was made without a context")
    return found


async def _caller(request: Request) -> Caller:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN or not token.isascii():
        raise problem(
            401, "a request needs the header Authorization: Bearer TOKEN, with a token of the cluster"
        )
    return await context_of(request).callers.caller(token)


def _namespace(request: Request, namespace: Annotated[str, Path(max_length=63, pattern=NAME)]) -> str:
    return context_of(request).settings.default_namespace if namespace == TENANT else namespace


CallerOf = Annotated[Caller, Depends(_caller)]
Namespace = Annotated[str, Depends(_namespace)]
InContext = Annotated[Context, Depends(context_of)]
AssetName = Annotated[str, Path(max_length=253, pattern=NAME)]
LockId = Annotated[str, Path(max_length=253, pattern=NAME)]
