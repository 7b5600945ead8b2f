"""Locks for things behind a Kubernetes API, enforced by the API server itself."""
