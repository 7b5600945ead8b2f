"""The operator on a machine whose clock is wrong: `python -m tests.chaos.skewed SECONDS operator controller …`.

The controller reads the time of day in one place; that is where it is led astray.
"""

import datetime
import sys

from assetlock.cli.main import main
from assetlock.controller import operator
from assetlock.controller.clock import SystemClock


class _Skewed(SystemClock):
    by = datetime.timedelta(seconds=float(sys.argv[1]))

    def now(self) -> datetime.datetime:
        return super().now() + self.by


if __name__ == "__main__":
    del sys.argv[1]
    operator.SystemClock = _Skewed  # type: ignore[misc]
    sys.exit(main())
