"""The Helm chart, and the programs that render and check it."""
