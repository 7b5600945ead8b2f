"""How `assetlock run` runs a command: in a process group of its own, that does not outlive the lock."""
