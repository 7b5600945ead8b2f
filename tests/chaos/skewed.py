"""The operator on a machine whose clock is wrong: `python -m tests.chaos.skewed SECONDS operator controller …`.

All of the process reads the time of day from `datetime`; that is where it is led astray, once everything is loaded.
"""

import datetime
import sys

import assetlock.admission.main
import assetlock.controller.main  # noqa: F401
from assetlock.cli.main import main

_RIGHT = datetime.datetime


class _Skewed(datetime.datetime):
    by = datetime.timedelta(seconds=float(sys.argv[1]))

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        return _RIGHT.now(tz) + cls.by


if __name__ == "__main__":
    del sys.argv[1]
    datetime.datetime = _Skewed  # type: ignore[misc]
    sys.exit(main())
