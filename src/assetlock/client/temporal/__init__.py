"""`needs_lock` on Temporal's activities: the worker takes the lock, around the activity and its executor."""
