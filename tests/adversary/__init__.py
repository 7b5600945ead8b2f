"""Attacks on the lock, each by a user with ordinary rights against a real API server: one story a file.

eddie has the built-in ClusterRole ``edit`` in the namespace and nothing of ours. mallory has ``edit`` and
``assetlock-user``, as has alice, who holds the lock. root is bound to ``cluster-admin``. Nobody breaks the glass.
"""
