"""The reconciler as a process: kopf watches at the edge, our own queue and cache behind it.

- `main`: starts and stops it; `controller`: cache, queue and workers; `workqueue`, `keys`: what is due
- `leadership`: one process at a time; `health`: readiness; `events`: Events for users
- `cache`: what the watches have brought, and the observation of one asset
- `reconcile`: decide, write, repeat, for assets, joint locks, windows and deadlocks
- `targets`: the objects that assets stand for, and whether they can be fenced
- `namespaces`, `pods`, `target_rights`: what else a decision needs to know
"""
