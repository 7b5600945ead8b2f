"""Admission: what the API server asks us before it commits a write.

The policies in ``manifests/`` are the wall and need none of this. What runs here is courtesy and
bookkeeping: refusals that say who holds a lock and until when, identities and times that are stamped rather
than believed, and a record of the holder's own writes.
"""
