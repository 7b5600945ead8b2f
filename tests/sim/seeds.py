"""Seeds that have failed at least once, on any version: each found a bug, or a judge that was wrong."""

FAILED_ONCE = (
    5208,
    7621,
    8504,
    9661,
    10563,
    10736,
    11641,
    12207,
    13106,
    13788,
    14500,
    15493,
    15568,
    16155,
    18933,
    19031,
    19378,
    20123,
)
