"""What the API server asks before it commits a write. The policies in ``manifests/`` fence without any of this.

What runs here answers in words (423, who, until when), stamps identities and server-side times, and records the
holder's own writes.

- `app`, `main`, `settings`, `metrics`: the process; `webhooks`: path by path, which rule answers
- `review`, `verdict`: a request and its answer; `facts`, `asset_cache`, `access`: what rules may ask
- `rules`: one module for each kind of request
- `upkeep`: certificates, the webhooks' own configuration, and recorded activity
"""
