"""What users read: status and conditions of Assets, AssetLocks and MaintenanceWindows.

- `asset`, `assetlock`, `window`: the status of each kind
- `reporting`: when a condition changes; `overcommitted`: Leases that hold nothing
- `fenced_places`: where stamps of an asset may be
"""
