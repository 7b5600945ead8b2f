"""Limits of the API that those need too who load no models."""

MOST_SLOTS = 64
"""No asset has a larger capacity: each holder is in the asset's status and on every target."""

LONGEST_ASSET_NAME = 63
"""An asset's name is in label values."""
