"""For programs that lock: a thin way to the API server, and what is built on it. Loads nothing heavy."""
