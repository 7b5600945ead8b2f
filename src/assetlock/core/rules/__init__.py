"""The steps in the life of a lock, one module each; `core.decide` has their order.

- `granting`: claim, record, announce, renew; `lease_bodies`: the Leases that these write
- `stamping`, `fencing_namespaces`: put the fence up, and take it down
- `ending`: expiry, release, timeouts, removal of finished locks; `revoking`: forced release
- `quarantine`: keep an asset from everybody until a person has looked
- `maintenance`: AssetLocks of windows; `refreshing`: status that is out of date
- `live_reads`: what is read again before a write
"""
