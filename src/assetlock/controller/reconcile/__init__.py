"""From a decision to writes: one module for each thing that is reconciled, `loop` and `writer` for all."""
