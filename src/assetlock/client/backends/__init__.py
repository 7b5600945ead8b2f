"""Where locks are kept: each backend is loaded only when it is used."""
