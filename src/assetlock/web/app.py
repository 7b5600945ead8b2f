"""The application: routes, errors, and the OpenAPI document that describes both."""

from __future__ import annotations

import importlib.metadata
import logging
import time
from typing import Any

import prometheus_client
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException

from assetlock.kube.errors import KubeError
from assetlock.operations.locking import LockLost
from assetlock.web import assets, locks, problems
from assetlock.web.context import Context
from assetlock.web.limits import Limits
from assetlock.web.problems import KINDS, MEDIA_TYPE, Problem

FRESH_FOR = 90.0

log = logging.getLogger(__name__)


def application(context: Context) -> FastAPI:
    """The app. The reflector of the context's index must run beside it."""
    app = FastAPI(
        title="assetlock",
        version=importlib.metadata.version("assetlock"),
        description="Locks for things behind a Kubernetes API. Callers bring a bearer token of the cluster.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        responses={status: _described(status) for status in (401, 403, 404, 409, 410, 422, 423, 429, 503)},
    )
    app.state.context = context
    app.add_middleware(Limits)
    app.include_router(assets.router)
    app.include_router(locks.router)
    _add_errors(app)
    _add_health(app, context)
    return app


def _described(status: int) -> dict[str, Any]:
    kind = next(kind for kind in KINDS.values() if kind.status == status)
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "A path of this server that says what to do."},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string"},
        },
        "required": ["type", "title", "status", "detail"],
    }
    example = {
        "type": f"/problems/{kind.name}",
        "title": kind.title,
        "status": status,
        "detail": kind.advice,
    }
    return {"description": kind.title, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    async def of_problem(request: Request, error: Problem) -> Response:
        return problems.respond(request, error)

    @app.exception_handler(KubeError)
    async def of_kube(request: Request, error: KubeError) -> Response:
        return problems.respond(request, problems.of_kube(error))

    @app.exception_handler(LockLost)
    async def of_lost(request: Request, error: LockLost) -> Response:
        return problems.respond(request, problems.of_lost(error))

    @app.exception_handler(RequestValidationError)
    async def of_invalid(request: Request, error: RequestValidationError) -> Response:
        return problems.respond(request, problems.of_invalid(error.errors()))

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        found = problems.problem(error.status_code, str(error.detail))
        response = problems.respond(request, found)
        response.status_code = error.status_code
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def of_fault(request: Request, error: Exception) -> Response:
        log.error("a request failed", exc_info=error, extra={"path": request.url.path})
        return problems.respond(
            request, problems.problem(500, "the request could not be served; see the log")
        )


def _add_health(app: FastAPI, context: Context) -> None:
    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return PlainTextResponse("ok")

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        reflector = context.index.reflector
        heard = reflector.last_activity
        if reflector.synced.is_set() and heard is not None and time.monotonic() - heard < FRESH_FOR:
            return PlainTextResponse("ok")
        return PlainTextResponse("the cache is not whole, or too old", 503)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(prometheus_client.generate_latest(), media_type="text/plain")

    @app.get("/problems/{name}", include_in_schema=False)
    async def explained(name: str) -> Response:
        return problems.page(name)
