"""What must become of each write: rules from the most special to the most general, the first that fits decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from tests.cluster.matrix import objects, verbs
from tests.cluster.matrix.cells import Outage, Outcome
from tests.cluster.matrix.objects import OURS, STAMPED, Thing
from tests.cluster.matrix.requesters import (
    ADMIN,
    COLLECTOR,
    CONTROLLER,
    GLASS_BREAKER,
    HOLDER,
    NAMESPACE_CONTROLLER,
    POWERFUL_STRANGER,
    Requester,
)
from tests.cluster.matrix.verbs import Verb

Answer = Mapping[Outage, Outcome]


def always(outcome: Outcome) -> Answer:
    """The same, whatever is down."""
    return dict.fromkeys(Outage, outcome)


def _courteous(up: Outcome, down: Outcome) -> Answer:
    """One answer by the webhook, another by the policy behind it."""
    return {**always(down), Outage.NONE: up}


YES = always(Outcome.ADMITTED)
REFUSED = _courteous(Outcome.LOCKED, Outcome.FORBIDDEN)
FORBIDDEN = always(Outcome.FORBIDDEN)
REPAIRED = _courteous(Outcome.KEPT, Outcome.FORBIDDEN)
RETRIED = _courteous(Outcome.LATER, Outcome.FORBIDDEN)
COURTESY = _courteous(Outcome.LOCKED, Outcome.ADMITTED)
DROPPED = _courteous(Outcome.DROPPED, Outcome.FORBIDDEN)
NEEDS_WEBHOOK = _courteous(Outcome.ADMITTED, Outcome.UNANSWERED)
KEPT_BY_WEBHOOK = _courteous(Outcome.KEPT, Outcome.UNANSWERED)
LOCKED_BUT_UNANSWERED = _courteous(Outcome.LOCKED, Outcome.UNANSWERED)
FORBIDDEN_BUT_UNANSWERED = _courteous(Outcome.FORBIDDEN, Outcome.UNANSWERED)


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """An answer, to whom, for what, on what; no names mean all."""

    answer: Answer
    who: Collection[Requester] = ()
    what: Collection[Verb] = ()
    on: Collection[Thing] = ()

    def fits(self, verb: Verb, thing: Thing, by: Requester) -> bool:
        """Whether the rule speaks of this cell."""
        return (
            (not self.who or by in self.who)
            and (not self.what or verb in self.what)
            and (not self.on or thing in self.on)
        )


def expected(verb: Verb, thing: Thing, by: Requester, outage: Outage) -> Outcome:
    """What must become of a write."""
    return next(rule.answer[outage] for rule in RULES if rule.fits(verb, thing, by))


CONTENT = (
    verbs.UPDATE,
    verbs.UPDATE_UNCONDITIONALLY,
    verbs.REPLACE,
    verbs.JSON,
    verbs.MERGE_PATCH,
    verbs.STRATEGIC_PATCH,
    verbs.APPLY_BY_FORCE,
)
STAMPS = (verbs.UNLABEL, verbs.STRIP, verbs.FORGE, verbs.COPY, verbs.PUT_BACK, verbs.REPLACE)
DELETIONS = (verbs.DELETE, verbs.DELETE_BY_FORCE, verbs.DELETE_COLLECTION)
STREAMS = (verbs.EXEC, verbs.ATTACH, verbs.PORT_FORWARD)
MAY_UNLOCK = (ADMIN, POWERFUL_STRANGER)
COLLECTORS = (COLLECTOR, NAMESPACE_CONTROLLER)
LEASE_KEEPERS = (HOLDER, *MAY_UNLOCK, *COLLECTORS)
LOCKS = (objects.THE_LOCK, objects.LOCKS_LEASE, objects.HANDMADE_LEASE)

RULES = (
    Rule(YES, who=[GLASS_BREAKER]),
    # Nobody else can tell whether what an AssetLock asks for is in order, so such writes wait for the webhook.
    Rule(NEEDS_WEBHOOK, who=[HOLDER, *MAY_UNLOCK], what=CONTENT, on=[objects.THE_LOCK]),
    Rule(FORBIDDEN_BUT_UNANSWERED, what=CONTENT, on=[objects.THE_LOCK]),
    # Who set an asset's targets is written down by the webhook alone, and stays.
    Rule(KEPT_BY_WEBHOOK, who=[HOLDER], what=STAMPS, on=[objects.THE_ASSET]),
    Rule(LOCKED_BUT_UNANSWERED, what=STAMPS, on=[objects.THE_ASSET]),
    # Never fenced: they decide where a pod runs, or make something that is not the object.
    Rule(YES, what=[verbs.BIND, verbs.TOKEN]),
    # What carries no labels is read from the namespace. Controllers do not come this way, but for autoscalers.
    Rule(YES, who=[HOLDER], what=[*STREAMS, verbs.SCALE, verbs.EVICT]),
    Rule(RETRIED, what=[verbs.EVICT]),
    Rule(REFUSED, what=[*STREAMS, verbs.SCALE]),
    # Only the webhook knows that a name is locked of which there is no object.
    Rule(YES, who=[HOLDER, CONTROLLER], what=[verbs.CREATE]),
    Rule(COURTESY, what=[verbs.CREATE]),
    # A namespace goes with all that is locked in it, so it is kept; what is written on it is the operator's.
    Rule(YES, who=[HOLDER], what=DELETIONS, on=[objects.THE_NAMESPACE]),
    Rule(REFUSED, what=DELETIONS, on=[objects.THE_NAMESPACE]),
    Rule(REPAIRED, what=STAMPS, on=[objects.THE_NAMESPACE]),
    # What is not locked is nobody's business, but for stamps that are not the operator's.
    Rule(REPAIRED, what=[verbs.FORGE], on=[objects.UNLOCKED, objects.SLICE]),
    Rule(YES, on=objects.OTHERS),
    # Status is what controllers report, and ours is the operator's. Custom resources take no metadata through it,
    # which the webhook can't know.
    Rule(FORBIDDEN, what=[verbs.STATUS, verbs.STATUS_METADATA], on=OURS),
    Rule(YES, what=[verbs.STATUS]),
    Rule(YES, who=[HOLDER, CONTROLLER], what=[verbs.STATUS_METADATA]),
    Rule(COURTESY, what=[verbs.STATUS_METADATA], on=[objects.WIDGET, objects.OLD_WIDGET]),
    Rule(REFUSED, what=[verbs.STATUS_METADATA], on=STAMPED),
    # Stamps are the operator's alone; the holder's other changes go through.
    Rule(REPAIRED, who=[HOLDER, CONTROLLER], what=STAMPS, on=STAMPED),
    Rule(YES, who=[HOLDER], on=STAMPED),
    # What is going already may be finished by whoever must.
    Rule(YES, what=[*DELETIONS, verbs.FINALIZERS], on=[objects.TERMINATING]),
    # Controllers finish what the holder began, but begin no deletion, and give nothing to another owner.
    Rule(DROPPED, who=[CONTROLLER], what=[verbs.ORPHAN], on=[objects.WARNED]),
    Rule(REFUSED, who=[CONTROLLER], what=[*DELETIONS, verbs.ORPHAN], on=STAMPED),
    Rule(YES, who=[CONTROLLER], on=STAMPED),
    # What is left is refused; or dropped, if it can be, where the asset says so.
    Rule(REFUSED, what=DELETIONS, on=[objects.WARNED]),
    Rule(DROPPED, on=[objects.WARNED]),
    Rule(REFUSED, on=STAMPED),
    Rule(YES, who=[HOLDER], on=[objects.THE_ASSET]),
    Rule(REFUSED, on=[objects.THE_ASSET]),
    # Locks are their holder's, and theirs who may unlock; the built-in collectors may end them.
    Rule(YES, who=COLLECTORS, what=[verbs.ORPHAN, verbs.FINALIZERS, *DELETIONS], on=LOCKS),
    Rule(YES, who=[HOLDER, *MAY_UNLOCK], on=[objects.THE_LOCK]),
    Rule(FORBIDDEN, on=[objects.THE_LOCK]),
    # What makes a Lease a lock is nobody's to change, and of an AssetLock's Lease nothing is its holder's.
    Rule(REFUSED, who=[HOLDER], on=[objects.LOCKS_LEASE]),
    Rule(FORBIDDEN, who=LEASE_KEEPERS, what=[verbs.UNLABEL, verbs.REPLACE]),
    Rule(REPAIRED, who=LEASE_KEEPERS, what=[verbs.STRIP, verbs.FORGE]),
    Rule(YES, who=[HOLDER, *MAY_UNLOCK]),
    Rule(FORBIDDEN, who=COLLECTORS),
    Rule(REFUSED),
)
