"""What one lock is: the AssetLock as its spec and status describe it, its place in the queue, its Leases."""
