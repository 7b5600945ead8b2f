"""Logs as JSON lines on standard error, one event a line."""

from __future__ import annotations

import logging

from pythonjsonlogger.json import JsonFormatter


def configure() -> None:
    """Send the log of this process, kopf's included, to standard error."""
    handler = logging.StreamHandler()
    fields = ["asctime", "levelname", "name", "message"]
    handler.setFormatter(
        JsonFormatter(fields, rename_fields={"asctime": "time", "levelname": "level", "name": "logger"})
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("kopf").setLevel(logging.WARNING)
