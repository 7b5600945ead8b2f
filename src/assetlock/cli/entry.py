"""Where `assetlock` and `kubectl assetlock` start: the version is said before anything else is loaded."""

from __future__ import annotations

import sys

from assetlock.version import VERSION


def main() -> None:
    """Run the command line and exit."""
    if sys.argv[1:] == ["--version"]:
        print(f"assetlock, version {VERSION}")
        return
    from assetlock.cli.main import main as run

    run()
