"""The objects that assets stand for: watched as metadata, claimed, and probed for whether they can be fenced."""
