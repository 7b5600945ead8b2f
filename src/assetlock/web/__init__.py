"""The HTTP API: for systems without a Kubernetes client. A process of its own, beside controller and admission.

Callers bring a bearer token of the cluster, and every request to the API server is made with that token: the API
server authenticates and authorizes the caller, and stamps who holds. This process has no right to lock anything.

- `main`: the process; `settings`; `app`: routes, errors, and the OpenAPI document
- `callers`: who asks, and what they may see
- `locks`, `assets`: one module for the routes of each; `schemas`: what goes in and out
- `asking`: from a request to a lock; `answers`: how it is shown, or who has it
- `problems`: errors as `application/problem+json`; `limits`: sizes, slow clients, cross-site requests, rates
- `cache`: Assets and AssetLocks as the API server's watch shows them
"""
