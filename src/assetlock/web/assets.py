"""The routes that list, show and record assets, and check fencing tokens."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from assetlock.kube.errors import Locked
from assetlock.kube.resources import ASSETS
from assetlock.operations import assets
from assetlock.web.cache import Filter
from assetlock.web.context import AssetName, CallerOf, InContext, Namespace
from assetlock.web.problems import problem
from assetlock.web.schemas import AssetOut, AssetPage, Record, SearchPage, TokenToVerify, VerificationOut

MOST = 1000

router = APIRouter(tags=["assets"])

LockStateOf = Annotated[Literal["Unlocked", "Locked", "Maintenance"] | None, Query(alias="lockState")]
Text = Annotated[str | None, Query(max_length=253, description="Part of a name, type or holder.")]
Metadata = Annotated[
    list[str] | None, Query(description="`key=value`; may be given several times.", max_length=16)
]


@router.get("/api/v1/{namespace}/assets")
async def list_assets(
    request: Request,
    response: Response,
    context: InContext,
    caller: CallerOf,
    namespace: Namespace,
    lock_state: LockStateOf = None,
    type: Annotated[str | None, Query(max_length=63)] = None,
    holder: Annotated[str | None, Query(max_length=1024)] = None,
    q: Text = None,
    metadata: Metadata = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
) -> AssetPage:
    """The assets of a namespace by name, filtered, a page at a time. From a cache that is a moment old."""
    await context.callers.require(caller, "list", ASSETS, namespace)
    wanted = Filter(namespace, lock_state, type, holder, q, _pairs(metadata))
    after = _decoded(cursor)
    found = list(context.index.find(wanted))
    page = [asset for asset in found if asset.metadata.name > after][: limit + 1]
    following = _encoded(page[limit - 1].metadata.name) if len(page) > limit else None
    if following is not None:
        response.headers["Link"] = f'<{request.url.include_query_params(cursor=following)}>; rel="next"'
    return AssetPage(items=[AssetOut.of(asset) for asset in page[:limit]], total=len(found), next=following)


@router.get("/api/v1/{namespace}/assets/search")
async def search_assets(
    context: InContext,
    caller: CallerOf,
    namespace: Namespace,
    lock_state: LockStateOf = None,
    q: Text = None,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    size: Annotated[int, Query(ge=1, le=MOST)] = 10,
) -> SearchPage:
    """The same in numbered pages, as other systems have it."""
    await context.callers.require(caller, "list", ASSETS, namespace)
    found = list(context.index.find(Filter(namespace, lock_state, text=q)))
    shown = found[(page - 1) * size : page * size]
    return SearchPage(results=[AssetOut.of(asset) for asset in shown], total=len(found))


@router.get("/api/v1/{namespace}/assets/{name}")
async def show_asset(caller: CallerOf, namespace: Namespace, name: AssetName) -> AssetOut:
    """The asset, read live."""
    return AssetOut.of(await assets.read(caller.api, namespace, name))


@router.put(
    "/api/v1/{namespace}/assets/{name}", response_model=AssetOut, responses={201: {"model": AssetOut}}
)
async def record_asset(
    caller: CallerOf,
    namespace: Namespace,
    name: AssetName,
    record: Record,
    on_conflict: Annotated[Literal["reject", "warn"], Query(alias="onConflict")] = "reject",
) -> Response:
    """Create the asset, or record on it what was done. By the holder this renews the lock.

    While others hold it 423, or with `onConflict=warn` 200, nothing changed, and a warning that says who.
    """
    try:
        asset, created = await assets.record(caller.api, namespace, name, record.spec())
    except Locked as error:
        if on_conflict == "reject":
            raise
        asset = await assets.read(caller.api, namespace, name)
        shown = AssetOut.of(asset, warnings=[f"nothing was written: {error.message}"])
        return JSONResponse(shown.model_dump(mode="json", by_alias=True))
    return JSONResponse(AssetOut.of(asset).model_dump(mode="json", by_alias=True), 201 if created else 200)


@router.post("/api/v1/{namespace}/assets/{name}/verify")
async def verify_token(
    caller: CallerOf, namespace: Namespace, name: AssetName, presented: TokenToVerify
) -> VerificationOut:
    """Whether the fencing token is that of a present holder, read live."""
    found = await assets.verify(caller.api, namespace, name, presented.token)
    return VerificationOut(
        current=found.current, token=found.token, fencing_token=found.mark, holder=found.holder
    )


def _pairs(metadata: list[str] | None) -> tuple[tuple[str, str], ...]:
    pairs = [pair.partition("=") for pair in metadata or ()]
    if any(not separator for _, separator, _ in pairs):
        raise problem(422, "metadata is given as key=value")
    return tuple((key, value) for key, _, value in pairs)


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _decoded(cursor: str | None) -> str:
    try:
        return base64.b64decode(cursor or "", altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise problem(422, "cursor: not one of this API; begin without it") from None
