"""What Prometheus is told of the controller, beside what is read when it asks."""

from __future__ import annotations

import prometheus_client

LOOP_LAG = prometheus_client.Histogram(
    "assetlock_controller_loop_lag_seconds",
    "How late the event loop was, ten times a second.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5),
)
WRITES = prometheus_client.Counter("assetlock_controller_writes_total", "Writes made.", ["write"])
FAILED_WRITES = prometheus_client.Counter(
    "assetlock_controller_failed_writes_total", "Writes that did not go through.", ["write", "reason"]
)
WATCH_RESTARTS = prometheus_client.Counter(
    "assetlock_controller_watch_restarts_total", "Times that kopf had to be started again."
)
