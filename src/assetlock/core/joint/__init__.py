"""Locks over several assets: `choosing` which, `progress` on each of them, and `decide` for all."""
