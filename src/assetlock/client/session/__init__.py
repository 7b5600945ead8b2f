"""One AssetLock from asking for it to its release, renewed by threads of its own: what commands are built on."""
