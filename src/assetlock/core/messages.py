"""What a refused requester reads: who holds it, since when, until when, and what to do.

Text only, and bounded: however many hold a lock, and however they are called, a message stays readable.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import unicodedata
from collections.abc import Sequence

from assetlock.model import durations

_MARGIN = datetime.timedelta(minutes=1)
_STEP = datetime.timedelta(minutes=5)

MOST_HOLDERS = 10
LONGEST_NAME = 100
LONGEST_CREDENTIAL = 19
"""``X509SHA256=`` and eight digits: what tells one credential from another."""

_CONTROL = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that break a line or fool a terminal; `assetlock.model.limits.CONTROL` has the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class HeldBy:
    """A holder, as far as it is known. Only ``who`` always is. ``quarantined``: nobody, and ``reason`` says why."""

    who: str
    pod: str | None = None
    credential: str | None = None
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    reason: str | None = None
    maintenance: bool = False
    quarantined: bool = False

    def __str__(self) -> str:
        parts = [shortened(self.who)]
        if self.pod:
            parts.append(f"in pod {shortened(self.pod)}")
        if self.credential:
            parts.append(f"with credential {credential(self.credential)}")
        if self.since:
            parts.append(f"since {moment(self.since)}")
        if self.until:
            parts.append(f"until {moment(self.until)}")
        if self.reason:
            parts.append(f"({shortened(self.reason)})")
        return " ".join(parts)


def locked(
    what: str, asset: str, namespace: str, holders: Sequence[HeldBy], now: datetime.datetime | None = None
) -> str:
    """Why a write to ``what``, a target of the asset, was refused. Without ``now`` the advice is a general one."""
    held = _held(asset, namespace, holders, now)
    return f"{what} is locked through asset {asset} in namespace {namespace}: {held}"


def orphaned(what: str, asset: str, namespace: str, holders: Sequence[HeldBy]) -> str:
    """Why a write was refused because of an asset that is not there, and how to free what it left locked."""
    return (
        f"{what} is locked through asset {asset} in namespace {namespace}, which does not exist any more "
        f"(held by {listed(holders) if holders else 'somebody'}). To free it, create an Asset of that name with this "
        "object among its targets, or run: assetlock uninstall, if assetlock is to go"
    )


def asset_locked(
    asset: str, namespace: str, holders: Sequence[HeldBy], now: datetime.datetime | None = None
) -> str:
    """Why a write to the asset itself was refused."""
    return f"asset {asset} in namespace {namespace} is locked: {_held(asset, namespace, holders, now)}"


def namespace_locked(namespace: str, held: Sequence[tuple[str, Sequence[HeldBy]]]) -> str:
    """Why a namespace can't be deleted: the locks in it, each with what is locked and who holds it."""
    locks = "; ".join(f"{what} is held by {listed(holders)}" for what, holders in held[:MOST_HOLDERS])
    rest = len(held) - MOST_HOLDERS
    more = f"; and {rest} more" if rest > 0 else ""
    return f"namespace {namespace} can't be deleted while others hold locks in it: {locks}{more}"


def ending(what: str, asset: str, namespace: str) -> str:
    """Why a write was refused although the lock has just ended."""
    return f"{what} was locked through asset {asset} in namespace {namespace} and is being freed: try again"


def dropped(refusal: str) -> str:
    """The warning to a client that gets the old content back: it must not take the success for one."""
    return f"nothing was written, the change was dropped: {refusal}"


def named(kind: str, name: str, namespace: str) -> str:
    """An object, as people speak of it."""
    return f"{kind} {name} in namespace {namespace}" if namespace else f"{kind} {name}"


def acquired_by(holder: str, lock: str | None, token: int) -> str:
    """Whose an acquisition is, in the words of every Event about one."""
    return f"{shortened(holder)} ({f'AssetLock {lock}' if lock else 'Lease'}, token {token})"


def lease_held(name: str, holder: str, held: HeldBy, *, asset: str) -> str:
    """Why a Lease that somebody holds can't be changed, taken or deleted."""
    return (
        f"Lease {name} is held as {shortened(holder)!r} by {held}. Wait for its end; to end the lock of others "
        f'one needs the verb "unlock" on asset {asset}'
    )


def lease_of_lock(name: str, lock: str, *, asset: str) -> str:
    """Why the Lease behind an AssetLock can't be changed by hand."""
    return (
        f"Lease {name} is managed by AssetLock {lock}; edit or delete that instead. "
        f'To end the lock of others one needs the verb "unlock" on asset {asset}'
    )


def lease_expired(name: str, expired: datetime.datetime) -> str:
    """Why an expired Lease can't be taken by an update: the operator frees it first."""
    return f"Lease {name} ran out at {moment(expired)} and is being freed: try again in a second"


def has_ended(lock: str, state: str, why: str) -> str:
    """Why an AssetLock can't be renewed any more."""
    return f"AssetLock {lock} has ended: {state}{f', {why}' if why else ''}; to lock again, create another"


def listed(holders: Sequence[HeldBy]) -> str:
    """The first holders, and how many more there are."""
    names = ", ".join(str(holder) for holder in holders[:MOST_HOLDERS])
    rest = len(holders) - MOST_HOLDERS
    return f"{names} and {rest} more" if rest > 0 else names


def moment(when: datetime.datetime) -> str:
    """A time as Kubernetes writes it, in whole seconds."""
    return when.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_printable(text: str) -> bool:
    """Whether it stays on one line, and does nothing to a terminal."""
    return text.isprintable() or not any(map(_is_control, text))


def printable(text: str) -> str:
    """The text on one line, with nothing in it that could fool a terminal."""
    if is_printable(text):
        return text
    return "".join("\ufffd" if _is_control(character) else character for character in " ".join(text.split()))


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CONTROL


def credential(identifier: str) -> str:
    """The id of a credential, as far as people need it."""
    short = identifier[:LONGEST_CREDENTIAL]
    return printable(short if short == identifier else f"{short}…")


def shortened(text: str) -> str:
    """At most a hundred characters, on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= LONGEST_NAME else line[:LONGEST_NAME] + "…"


def _held(asset: str, namespace: str, holders: Sequence[HeldBy], now: datetime.datetime | None) -> str:
    kept = next((holder for holder in holders if holder.quarantined), None)
    if kept is not None:
        since = f" since {moment(kept.since)}" if kept.since else ""
        return f"nobody may write{since}, {kept.reason}"
    closed = all(holder.maintenance for holder in holders)
    held = f"{'under maintenance' if closed else 'held'} by {listed(holders) if holders else 'somebody'}"
    return (
        f"{held}. Wait, or queue: create an AssetLock in namespace {namespace} "
        f"with assetName: {asset} and wait: {_long_enough(holders, now)}"
    )


def _long_enough(holders: Sequence[HeldBy], now: datetime.datetime | None) -> str:
    """A wait that outlasts the present holders, if they do not renew; in steps of five minutes."""
    ends = [holder.until for holder in holders if holder.until is not None]
    if now is None or not ends or len(ends) < len(holders):
        return "30m"
    steps = math.ceil((max(ends) - now + _MARGIN) / _STEP)
    return durations.shown(max(1, steps) * _STEP)
