"""The resources: what users write, what CRDs are made from."""
