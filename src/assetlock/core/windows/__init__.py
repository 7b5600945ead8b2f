"""Maintenance windows: when they are open, what they close, and what that means for a grant.

- `cron`, `wall`, `zones`, `calendar`: from a schedule to moments and periods
- `closures`: what all windows together make of an asset at a moment
- `gate`: the check before a grant; `term`: how long a grant may last
- `window_locks`: the AssetLocks by which windows close assets
"""
