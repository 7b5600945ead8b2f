"""Programs for developers of the chart; not part of the package."""
