"""The operator with one rule of its core taken out: it announces locks whose targets it did not stamp."""

from assetlock.cli.main import main
from assetlock.core import decide
from assetlock.core.rules import stamping

decide._RULES = tuple(rule for rule in decide._RULES if rule is not stamping.stamp)

if __name__ == "__main__":
    main()
