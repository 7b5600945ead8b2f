"""The HTTP side of the webhooks: bytes in, an AdmissionReview out.

What can't be understood is answered 400, what can't be decided 500; neither carries an admission, nor
anything of ours but a line of text. The API server then does what the webhook's failurePolicy says. Whoever does not
know the secret in the path is not listened to at all.
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
AreAdmitted = Callable[[str], Awaitable[bool]]


def application(webhooks: Webhooks, are_admitted: AreAdmitted) -> web.Application:
    """The app that serves the webhooks, ``/healthz``, ``/readyz`` and ``/metrics``.

    ``are_admitted`` tells whether callers of a path that begins with this secret are the API server.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        if webhooks.view.is_fresh:
            return web.Response(text="ok")
        return web.Response(status=503, text="the cache is not whole, or too old")

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(body=prometheus_client.generate_latest(), content_type="text/plain")

    app = web.Application(client_max_size=LARGEST_BODY)
    decisions = (
        webhooks.fence,
        webhooks.subresources,
        webhooks.namespaces,
        webhooks.creations,
        webhooks.definitions,
        webhooks.assets,
        webhooks.assetlocks,
        webhooks.leases,
        webhooks.windows,
    )
    app.add_routes(
        [
            *(
                web.post(f"/{{secret}}/{each.__name__}", _reviewing(each.__name__, each, are_admitted))
                for each in decisions
            ),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
            web.get("/metrics", exposition),
        ]
    )
    return app


def _reviewing(
    name: str, decide: Decide, are_admitted: AreAdmitted
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        if not await are_admitted(request.match_info["secret"]):
            metrics.DECISIONS.labels(name, "stranger").inc()
            return web.Response(status=404, text="there is nothing here")
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
