"""The HTTP side of the webhooks: bytes in, an AdmissionReview out.

What can't be understood is answered 400, what can't be decided 500; neither carries an admission, nor
anything of ours but a line of text. The API server then does what the webhook's failurePolicy says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

import prometheus_client
from aiohttp import web

from assetlock.admission import metrics
from assetlock.admission.review import BadReview, Review, answer, parse
from assetlock.admission.verdict import Dropped, Refused, Verdict
from assetlock.admission.webhooks import Webhooks

LARGEST_BODY = 16 * 1024 * 1024
"""An object has 1.5 MiB at most, but comes twice and as JSON, and custom resources may be larger."""

log = logging.getLogger(__name__)

Decide = Callable[[Review], Awaitable[Verdict]]


def application(webhooks: Webhooks) -> web.Application:
    """The app that serves the webhooks, ``/healthz``, ``/readyz`` and ``/metrics``."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        if webhooks.view.is_fresh:
            return web.Response(text="ok")
        return web.Response(status=503, text="the cache is not whole, or too old")

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(body=prometheus_client.generate_latest(), content_type="text/plain")

    app = web.Application(client_max_size=LARGEST_BODY)
    app.add_routes(
        [
            web.post("/fence", _reviewing("fence", webhooks.fence)),
            web.post("/subresources", _reviewing("subresources", webhooks.subresources)),
            web.post("/namespaces", _reviewing("namespaces", webhooks.namespaces)),
            web.post("/creations", _reviewing("creations", webhooks.creations)),
            web.post("/assets", _reviewing("assets", webhooks.assets)),
            web.post("/assetlocks", _reviewing("assetlocks", webhooks.assetlocks)),
            web.post("/leases", _reviewing("leases", webhooks.leases)),
            web.post("/windows", _reviewing("windows", webhooks.windows)),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
            web.get("/metrics", exposition),
        ]
    )
    return app


def _reviewing(name: str, decide: Decide) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        started = time.perf_counter()
        try:
            review = parse(await request.read())
            verdict = await decide(review)
        except BadReview as error:
            metrics.DECISIONS.labels(name, "unreadable").inc()
            return web.Response(status=400, text=str(error))
        except web.HTTPException:
            raise
        except Exception:
            metrics.DECISIONS.labels(name, "failed").inc()
            log.exception("a review could not be decided", extra={"webhook": name})
            return web.Response(status=500, text="the review could not be decided; see the log")
        metrics.DECISIONS.labels(name, _kind(verdict)).inc()
        metrics.SECONDS.labels(name).observe(time.perf_counter() - started)
        return web.json_response(answer(review, verdict))

    return handle


def _kind(verdict: Verdict) -> str:
    if isinstance(verdict, Refused):
        return str(verdict.code)
    return "dropped" if isinstance(verdict, Dropped) else "admitted"
