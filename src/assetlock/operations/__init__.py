"""What a caller can do with assets and locks, as plain async functions over the API server.

Each takes an `Api` that acts as the caller: the API server authenticates, authorizes and records who it is, and
nothing here uses rights of its own. Command line, HTTP API and pages call these, and add only their own words.

- `locking`: ask for a lock, wait for it, renew it, release it
- `assets`: read an asset, record what was done to it, check a fencing token
- `revoke`: end the lock of others
"""
