"""Which requests are refused or changed: one module for each kind of object."""
