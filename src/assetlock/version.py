"""The version of this package, for those who have no time to look for its metadata."""

VERSION = "0.1.0"
