"""Cycles of waiters: who may be in one (`suspects`), the `graph` of who waits for whom, who yields (`decide`)."""
