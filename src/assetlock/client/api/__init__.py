"""A thin way to the API server for quick commands and the Python client: it blocks, is thread-safe, and loads fast.

    config = load_config()                            # as kubectl: KUBECONFIG, ~/.kube/config, ServiceAccount
    api = Api(config.acting_as("bob"), timeout=10)    # impersonation is optional
    lock = api.create(ASSETLOCKS.path(config.namespace), {...})
    api.patch(ASSETLOCKS.path(config.namespace, "mine"), {"spec": {"ttl": "10m"}})
    for kind, seen in api.watch(ASSETLOCKS.path(config.namespace), {"fieldSelector": "metadata.name=mine"}): ...
    api.delete(ASSETLOCKS.path(config.namespace, "mine"), uid=lock["metadata"]["uid"])

- `load_config(kubeconfig, context)` gives a `Config`: server, namespace, TLS, credentials, proxy. Certificates inline
  and in files, token files (read again), exec plugins (cached until their expiry), proxies and impersonation are as
  kubectl has them. `ConfigError` says what is wrong, before any request.
- `Api` has `get`, `create`, `patch`, `delete`, `list_pages`, `watch` and `close`. Objects are plain dictionaries.
  Any thread may call it; each call takes ``timeout`` seconds at most. Connections are kept alive, and no two calls
  share one at a time. After a fork, make a new one.
- What goes wrong is a `ClientError`: `Unreachable` (nothing was sent, or nothing was read), `AnswerLost` (a write
  that may have been done: read, then decide; it is never sent twice), or an `ApiError` with `status`, `reason`,
  `message`, `details`, `retry_after_seconds` and its kinds `Unauthorized`, `Forbidden`, `NotFound`, `Conflict`,
  `Gone`, `Invalid`. The first two are `ConnectionError`s too. Each has the `exit_code` that a command ends with.
- `ASSETS`, `ASSETLOCKS`, `LEASES` are the `Resource`s; `path(namespace, name)` is where one is.

Only the standard library, `yaml` (for a kubeconfig) and `assetlock.core.names` are imported.
"""

from assetlock.client.api.api import Api, Object, Watch
from assetlock.client.api.config import Config, load_config
from assetlock.client.api.errors import (
    AnswerLost,
    ApiError,
    ClientError,
    ConfigError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unauthorized,
    Unreachable,
)
from assetlock.client.api.resources import ASSETLOCKS, ASSETS, LEASES, Resource

__all__ = [
    "ASSETLOCKS",
    "ASSETS",
    "LEASES",
    "AnswerLost",
    "Api",
    "ApiError",
    "ClientError",
    "Config",
    "ConfigError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "Object",
    "Resource",
    "Unauthorized",
    "Unreachable",
    "Watch",
    "load_config",
]
