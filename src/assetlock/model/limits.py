"""Limits of the API that those need too who load no models."""

MOST_SLOTS = 64
"""No asset has a larger capacity: each holder is in the asset's status and on every target."""

LONGEST_ASSET_NAME = 63
"""An asset's name is in label values."""

LONGEST_USERNAME = 1024
"""Nobody with a longer name holds a lock: the name is on one line of a stamp, and in statuses."""

CONTROL = r"[\pC\x{2028}\x{2029}]"
"""Characters that break a line or fool a terminal, as the API server's regular expressions (RE2) write them."""

MOST_ANNOTATIONS = 500
"""What has more is not stamped: the policy looks no further, as looking costs the square of their number."""

MOST_NAMESPACE_ANNOTATIONS = 2000
"""The same for what closes subresources in a namespace: about a thousand assets fit there."""
