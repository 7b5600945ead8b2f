"""What locks cost, each figure beside its yardstick from the same run: ``make bench``."""
