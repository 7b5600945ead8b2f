"""Decisions: pure functions from what is observed to the writes that follow. No I/O, no asyncio, no clock.

- `observation`, `situation`, `acquisition`: what is known of one asset, and what it means
- `decide`, `decision`: the rules in order, and the writes that they order
- `identity`, `names`, `messages`, `selection`, `pods`: shared vocabulary
- `locks`: what one AssetLock says of itself, the queue, the Leases that it holds
- `windows`: cron schedules, closures, and the gate that every grant passes
- `fence`: stamps on targets, fences on namespaces, break-glass writes
- `rules`: one module for each step in the life of a lock
- `joint`, `deadlocks`: locks over several assets, and cycles among waiters
- `status`: conditions and status of Assets, AssetLocks and MaintenanceWindows
"""
