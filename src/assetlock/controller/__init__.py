"""Reconciling: kopf at the edge, our own queue behind it."""
