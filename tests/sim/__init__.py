"""A simulated API server, virtual time, and the tests that use them."""
