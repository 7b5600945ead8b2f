"""What can befall a client's requests and watches, drawn from a seed, so that every run can be had again.

Each draw has a number. A failing run is made smaller by muting numbers: the draws stay the same, the fault does not
happen. `quiet()` ends all trouble, for the part of a simulation that shows that things heal.
"""

import enum
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass


class Trouble(enum.StrEnum):
    """The kinds of faults of a single request."""

    UNREACHABLE = "unreachable"  # never left; the client knows
    LOST_REQUEST = "lost-request"  # never arrived; the client does not know
    LATE_REQUEST = "late-request"  # arrives after a delay, perhaps when the client has given up
    LOST_REPLY = "lost-reply"  # executed; the connection breaks
    LATE_REPLY = "late-reply"  # executed at once; the answer takes long
    THROTTLED = "throttled"  # 429, not executed
    ERROR = "error"  # 500, not executed
    ERROR_AFTER = "error-after"  # 504, executed
    EXPIRED_PAGE = "expired-page"  # 410 on a list's further pages


class WatchTrouble(enum.StrEnum):
    """The kinds of faults of a watch."""

    REFUSED = "refused"  # 429 or 500 in place of the stream
    DROPPED = "dropped"  # the connection breaks after a while
    CLOSED = "closed"  # the server ends it in order, early
    SILENT = "silent"  # open, but nothing comes any more, not even bookmarks
    LATE = "late"  # events arrive in order, but late
    EXPIRED = "expired"  # 410 in place of the events


@dataclass(frozen=True, slots=True)
class Drawn:
    """A fault that was drawn: its number, its kind, and how long it takes."""

    number: int
    kind: str
    delay: float


class Faults:
    """One client's troubles. `rates` maps kinds to probabilities; what is not named does not happen.

    `drag`: so many seconds later than they are made come all answers.
    """

    def __init__(
        self,
        seed: int | str = 0,
        rates: Mapping[str, float] | None = None,
        *,
        latency: float = 0.004,
        longest: float = 20.0,
        muted: Collection[int] = (),
    ) -> None:
        self.drawn: list[Drawn] = []
        self.rates = dict(rates or {})
        self.drag = 0.0
        self._random = random.Random(f"faults/{seed}")
        self._latency = latency
        self._longest = longest
        self._muted = frozenset(muted)
        self._number = 0

    def quiet(self) -> None:
        """From now on everything works."""
        self.rates.clear()
        self.drag = 0.0

    def latency(self) -> float:
        """How long a message is under way when nothing is wrong."""
        return self._random.uniform(0, 2 * self._latency)

    def jitter(self) -> float:
        """A number between 0 and 1, for the pauses between a client's retries."""
        return self._random.random()

    def for_request(self) -> Drawn | None:
        """What befalls the next request, if anything."""
        return self._draw(Trouble)

    def for_watch(self) -> Drawn | None:
        """What befalls the next watch, if anything."""
        return self._draw(WatchTrouble)

    def _draw(self, kinds: type[enum.StrEnum]) -> Drawn | None:
        if not self.rates:
            return None
        chance, delay = self._random.random(), self._random.uniform(0, self._longest)
        self._number += 1
        for kind in kinds:
            chance -= self.rates.get(kind, 0.0)
            if chance < 0:
                return self._drawn(kind, delay)
        return None

    def _drawn(self, kind: enum.StrEnum, delay: float) -> Drawn | None:
        if self._number in self._muted:
            return None
        drawn = Drawn(self._number, str(kind), delay)
        self.drawn.append(drawn)
        return drawn


def rough(scale: float = 1.0) -> dict[str, float]:
    """A rough network: every kind of trouble now and then."""
    rates = dict.fromkeys(Trouble, 0.01) | dict.fromkeys(WatchTrouble, 0.05)
    return {str(kind): rate * scale for kind, rate in rates.items()}
