"""Cycles of waiters: the `graph` of who waits for whom, and which lock yields (`decide`)."""
