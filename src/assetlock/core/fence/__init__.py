"""What keeps other writers out: the stamp on a target, the fence on a namespace, and the break-glass record."""
