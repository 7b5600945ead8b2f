"""What Prometheus is told."""

from __future__ import annotations

import prometheus_client

DECISIONS = prometheus_client.Counter(
    "assetlock_admission_decisions_total", "Reviews answered.", ["webhook", "verdict"]
)
SECONDS = prometheus_client.Histogram(
    "assetlock_admission_seconds",
    "How long a review took.",
    ["webhook"],
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1, 2, 5),
)
BREAK_GLASS = prometheus_client.Counter(
    "assetlock_break_glass_total", "Writes that went through a lock with the group assetlock:break-glass."
)
