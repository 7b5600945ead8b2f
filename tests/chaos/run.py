"""Hurts a real control plane with the operator in it: `python -m tests.chaos.run --minutes 10`.

Prints a table, and puts it and a picture into docs/ with `--docs`. Exit code 1 when something was not as it must be.
"""

import argparse
import asyncio
import pathlib
import re
import secrets
import sys

from tests.chaos.picture import picture
from tests.chaos.play import play
from tests.chaos.report import table

DOCS = pathlib.Path(__file__).parents[2] / "docs"
_GENERATED = re.compile(r"(?<=<!-- make chaos: begin -->\n).*(?=\n<!-- make chaos: end -->)", re.DOTALL)


def main() -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: %(default)s)")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="which troubles, in which order")
    parser.add_argument("--docs", action="store_true", help="put the table and the picture into docs/")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    outcome = asyncio.run(play(options.minutes * 60, options.seed))
    print(table(outcome))
    for complaint in outcome.complaints:
        print(complaint)
    if options.docs:
        (DOCS / "proof.svg").write_text(picture(outcome))
        page = (DOCS / "proof.md").read_text()
        (DOCS / "proof.md").write_text(_GENERATED.sub(lambda _: table(outcome), page))
    return 1 if outcome.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
