"""What can be asked of a schedule, by the troubles that are in it, and the times that everybody is allowed."""

import dataclasses

SKEW = 1.0
CUT = (
    1.0  # Creation times are cut to whole seconds, so a wait may be over this much earlier than it may last.
)
PROMPT = 1.0


@dataclasses.dataclass(slots=True)
class Strictness:
    """What can be asked of this schedule besides safety. `patience` is added to every time allowed.

    `in_order`: nothing delays or misleads the controllers, so that they see all waiters. `on_time`: deadlines
    are kept, if only seconds after the last trouble. `full_terms`: no clock is off, so nobody loses time.
    """

    in_order: bool = True
    on_time: bool = True
    full_terms: bool = True
    patience: float = 0.1
