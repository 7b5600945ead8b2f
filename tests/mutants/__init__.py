"""Plausible bugs, kept to show that the tests find each of them: `make mutants`."""
