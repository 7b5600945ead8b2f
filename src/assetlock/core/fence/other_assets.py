"""One object that several assets stand for: none is granted over it while another's stamp names somebody else.

Otherwise whoever may make an Asset could shut the holder of another out. Who has it first has it: the stamp is on the
object, and is written by compare-and-swap. The same user may hold several of the assets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from assetlock.core import names
from assetlock.core.fence.stamp import Stamp, stamp_of
from assetlock.core.messages import shortened
from assetlock.core.observation import ObservedTarget

REASON = "TargetLocked"
MOST_NAMED = 3


def shut_out(targets: Iterable[ObservedTarget], own_key: str, usernames: Collection[str]) -> str | None:
    """Why somebody else would be shut out by a stamp for these users on the targets, ready to be read."""
    for target in targets:
        if target.wanted and target.uid is not None and (why := shut_out_of(target, own_key, usernames)):
            return why
    return None


def shut_out_of(target: ObservedTarget, own_key: str, usernames: Collection[str]) -> str | None:
    """The same of one target. One that has our own stamp already has been decided on."""
    if target.uid is None or target.labels.get(names.FENCED_LABEL) != "true":
        return None
    if stamp_of(target.annotations, own_key, target.uid):
        return None
    for (namespace, asset), stamp in _stamps(target):
        stamped = {line.identity.username for line in stamp.holders}
        others = sorted(name for name in stamped if not _is_one_of(name, usernames))
        if others:
            named = ", ".join(shortened(username) for username in others[:MOST_NAMED])
            what = f"{target.target.kind} {target.target.name}"
            return f"{what} is locked through asset {asset} in namespace {namespace}, held by {named}"
    return None


def _is_one_of(stamped: str, usernames: Collection[str]) -> bool:
    """Whether a line is for one of these: where somebody closed an asset it goes on with the reason."""
    return any(stamped == username or stamped.startswith(f"{username}: ") for username in usernames)


def _stamps(target: ObservedTarget) -> Iterator[tuple[tuple[str, str], Stamp]]:
    for key in sorted(target.annotations):
        if not key.endswith(names.STAMP_SUFFIX):
            continue
        claimant = names.claimant(key)
        stamp = stamp_of(target.annotations, key, target.uid or "")
        if claimant is not None and stamp is not None:
            yield claimant, stamp
